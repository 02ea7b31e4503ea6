import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './freePort.ts';

const COMMANDS = ['prometheus', 'promtool'];

const missing = COMMANDS.filter((command) => spawnSync(command, ['--version']).error !== undefined);

/** Registers `body` where Prometheus is installed. Where not, it shows as skipped, and in CI as failed. */
export function withPrometheus(body: () => void): void {
  if (missing.length === 0) return body();
  const title = `needs ${missing.join(' and ')}: package prometheus of Debian`;
  if (process.env['CI'] === 'true') it(title, () => Promise.reject(new Error(title)));
  else it.skip(title);
}

/** Runs promtool, with `input` if it reads that; rejects with what it printed unless it is content. */
export function promtool(args: readonly string[], cwd: string, input?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('promtool', args, { cwd, timeout: 20_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`promtool ${args.join(' ')}: ${error.message}\n${stdout}\n${stderr}`));
    });
    child.stdin?.end(input ?? '');
  });
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Prometheus {
  readonly url: string;
  /** Present values of an expression. Rejects unless it can be evaluated. */
  query(expression: string): Promise<readonly Sample[]>;
  /** Asks again, five times a second, until `enough` of the answer. Rejects after ten seconds. */
  until(expression: string, enough: (samples: readonly Sample[]) => boolean): Promise<readonly Sample[]>;
  /** Ends the process and removes what it wrote. */
  close(): Promise<void>;
}

/** A Prometheus of its own, on a free port of loopback, with these files; `prometheus.yml` is what it starts from. */
export async function startPrometheus(files: Readonly<Record<string, string>>): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    'prometheus',
    ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${address}`],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => void (log += part));
  const ended = once(child, 'close');

  const query = async (expression: string): Promise<readonly Sample[]> => {
    const answer = await fetch(
      `http://${address}/api/v1/query?${new URLSearchParams({ query: expression }).toString()}`,
    );
    const { status, error, data } = (await answer.json()) as {
      status: string;
      error?: string;
      data?: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    if (status !== 'success') throw new Error(`${expression}: ${error}`);
    return (data?.result ?? []).map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
  };
  const prometheus: Prometheus = {
    url: `http://${address}`,
    query,
    async until(expression, enough) {
      let last: unknown;
      for (let round = 0; round < 50; round++) {
        last = await query(expression).catch((error: unknown) => error);
        if (Array.isArray(last) && enough(last as readonly Sample[])) return last as readonly Sample[];
        if (child.exitCode !== null) break;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      throw new Error(`${expression} is ${JSON.stringify(last)}${String(last)}\n${log}`);
    },
    async close() {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
  // It answers queries once it has read its log of writes.
  await prometheus
    .until('vector(1)', (samples) => samples.length === 1)
    .catch(async (error: unknown) => {
      await prometheus.close();
      throw error;
    });
  return prometheus;
}
