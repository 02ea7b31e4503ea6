import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Terminal } from '../../lib/cli/Command.ts';
import { runCli } from '../../lib/cli/runCli.ts';
import type { EmulatorReport } from '../../lib/emulator/index.ts';

const chat = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] });

/** Starts the command in this process; `stop` is Ctrl-C. */
function emulate(...args: string[]) {
  const printed: string[] = [];
  const complained: string[] = [];
  let stop = (): void => {};
  const interrupted = new Promise<void>((resolve) => (stop = resolve));
  let listening: (line: string) => void = () => {};
  const first = new Promise<string>((resolve) => (listening = resolve));
  const terminal: Terminal = {
    print(line) {
      printed.push(line);
      listening(line);
    },
    complain: (line) => void complained.push(line),
    write: () => {},
    live: undefined,
    interrupted: () => interrupted,
    onReload: () => () => {},
  };
  const code = runCli(['emulate', '--port', '0', ...args], terminal);
  return { code, first, stop: () => stop(), printed, complained };
}

async function askTwice(baseURL: string): Promise<number[]> {
  const statuses = [];
  for (let i = 0; i < 2; i++) {
    const response = await fetch(`${baseURL}/chat/completions`, { method: 'POST', body: chat });
    await response.text();
    statuses.push(response.status);
  }
  return statuses;
}

describe('sluice emulate', () => {
  it('prints its address, serves, and reports as JSON when interrupted', async () => {
    const { code, first, stop, printed } = emulate('--rpm', '60', '--latency', '1', '--cadence', '0');
    const line = await first;
    expect(line).to.match(/^Listening on http:\/\/127\.0\.0\.1:\d+\/v1$/);
    expect(await askTwice(line.replace('Listening on ', ''))).to.deep.equal([200, 429]);
    stop();
    expect(await code).to.equal(0);
    const report = JSON.parse(printed[1] ?? '') as EmulatorReport;
    expect(report).to.include({ requests: 2, answered: 1 });
    expect(report.rateLimited).to.deep.equal({ requests: 1, total: 1 });
  });

  const flags: readonly [readonly string[], readonly [number, number]][] = [
    [[], [200, 200]],
    [
      ['--rpm', '60', '--burst', '2'],
      [200, 200],
    ],
    [
      ['--rpm', '60', '--burst', '1', '--no-count-rejected', '--noise', '0.5'],
      [200, 429],
    ],
    [
      ['--tpm', '300'],
      [200, 429],
    ],
    [
      ['--tpm', '3000', '--burst-tokens', '300'],
      [200, 429],
    ],
    [
      ['--tpm', '3000', '--burst-tokens', '100'],
      [429, 429],
    ],
    [
      ['--model', 'a', '--model', 'b'],
      [404, 404],
    ],
    [
      ['--model', 'm'],
      [200, 200],
    ],
  ];
  for (const [args, statuses] of flags) {
    it(`answers ${statuses.join(' and ')} with ${args.join(' ') || 'no flags'}`, async () => {
      const { code, first, stop } = emulate('--json', '--latency', '1', '--tokens', '1', ...args);
      const { baseURL, url, port } = JSON.parse(await first) as { baseURL: string; url: string; port: number };
      expect(baseURL).to.equal(`${url}/v1`);
      expect(url).to.equal(`http://127.0.0.1:${port}`);
      expect(await askTwice(baseURL)).to.deep.equal(statuses);
      stop();
      expect(await code).to.equal(0);
    });
  }

  it('passes on latency, cadence, tokens, chunk, seed and dialect', async () => {
    const timed = async (...args: string[]) => {
      const { code, first, stop } = emulate('--json', ...args);
      const { baseURL } = JSON.parse(await first) as { baseURL: string };
      const startMs = performance.now();
      const body = JSON.stringify({ ...(JSON.parse(chat) as object), stream: true });
      const response = await fetch(`${baseURL}/chat/completions`, { method: 'POST', body });
      const text = await response.text();
      stop();
      await code;
      const chunks = text.match(/"delta":\{"content":"[^"]/g)?.length;
      return { chunks, text, ms: performance.now() - startMs, headers: response.headers };
    };
    const plain = await timed('--latency', '0', '--cadence', '0', '--tokens', '6');
    expect(plain.chunks).to.equal(6);
    expect(plain.headers.has('x-request-id')).to.equal(true);
    const other = await timed(
      '--latency',
      '60',
      '--cadence',
      '20',
      '--tokens',
      '6',
      '--chunk',
      '2',
      '--dialect',
      'none',
      '--seed',
      '2',
    );
    expect(other.chunks).to.equal(3);
    expect(other.ms).to.be.above(150);
    expect(other.headers.has('x-request-id')).to.equal(false);
    const textOf = (text: string) => /"content":"(\w+)"/.exec(text)?.[1];
    expect(textOf(other.text)).not.to.equal(textOf(plain.text));
  });

  it('takes a script from a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-'));
    try {
      const path = join(folder, 'script.json');
      await writeFile(path, '[{"kind":"error","error":"overloaded"}]');
      const { code, first, stop } = emulate('--json', '--latency', '1', '--script', path);
      const { baseURL } = JSON.parse(await first) as { baseURL: string };
      expect(await askTwice(baseURL)).to.deep.equal([503, 200]);
      stop();
      await code;
      await writeFile(path, '{');
      const broken = emulate('--script', path);
      expect(await broken.code).to.equal(2);
      expect(broken.complained.join()).to.match(/--script: .* is not JSON/);
      await writeFile(path, '[{"kind":"odd"}]');
      expect(await emulate('--script', path).code).to.equal(2);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  const wrong: readonly [readonly string[], RegExp][] = [
    [['--rpm', 'many'], /--rpm must be a number, got "many"/],
    [['--rpm', '0'], /--rpm must be finite and above 0, got 0/],
    [['--rpm', ''], /--rpm must be a number/],
    [['--noise', '2'], /--noise must be from 0 to 1/],
    [['--tokens', '1.5'], /--tokens must be a whole number/],
    [['--dialect', 'odd'], /--dialect must be one of openai, azure/],
    [['--port', '70000'], /port must be at most 65535/],
    [['--script', '/nowhere/at/all.json'], /--script: cannot read/],
    [['--host', '192.0.2.1'], /--host is no address of this machine/],
  ];
  for (const [args, sentence] of wrong) {
    it(`answers ${args.join(' ')} with one sentence and exit code 2`, async () => {
      const { code, complained, printed } = emulate(...args);
      expect(await code).to.equal(2);
      expect(printed).to.deep.equal([]);
      expect(complained.join('\n')).to.match(sentence).and.not.include('\n');
    });
  }

  it('says when its port is taken', async () => {
    const { first, stop, code } = emulate('--json');
    const { port } = JSON.parse(await first) as { port: number };
    const second = emulate('--port', String(port));
    expect(await second.code).to.equal(2);
    expect(second.complained.join()).to.include(`port ${port} is taken`);
    stop();
    await code;
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`ends with exit code 0 and its report on ${signal}`, async () => {
      const child = spawn(process.execPath, ['lib/cli/main.ts', 'emulate', '--json']);
      let out = '';
      const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
      child.stdout.on('data', (part: Buffer) => {
        if (out === '') child.kill(signal);
        out += part.toString();
      });
      expect(await closed).to.equal(0);
      expect(JSON.parse(out.slice(out.indexOf('\n')))).to.include({ requests: 0 });
    });
  }
});
