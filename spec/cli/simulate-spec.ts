import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../lib/cli/runCli.ts';

const CLEAR_LINE = '\r\u001b[2K';

describe('sluice simulate', () => {
  let folder: string;
  let path: string;

  const scenario = `
name: two minutes
forMs: 120000
load: [{ model: m, arrivals: { kind: poisson, perMinute: 100 } }]
upstreams: { main: { requestsPerMinute: 120, burstRequests: 3 } }
policy: { quota: { account: { requestsPerMinute: 120, burstRequests: 3 } } }
strategies: [{ kind: bare }, { kind: sluice, name: ours }]
`;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-simulate-'));
    path = join(folder, 'scenario.yaml');
    writeFileSync(path, scenario);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  interface Watched {
    /** Of a terminal at standard error. */
    readonly columns?: number;
    /** Ends it after so many lines of progress. */
    readonly interruptAfter?: number;
  }

  async function simulate(args: readonly string[], { columns, interruptAfter = Infinity }: Watched = {}) {
    const printed: string[] = [];
    const complained: string[] = [];
    const written: string[] = [];
    let interrupt = (): void => {};
    const interrupted = new Promise<void>((resolve) => (interrupt = resolve));
    const write = (text: string): void => {
      written.push(text);
      if (written.length === interruptAfter) interrupt();
    };
    const code = await runCli(['simulate', ...args], {
      print: (line) => void printed.push(line),
      complain: (line) => void complained.push(line),
      write: (text) => void printed.push(text),
      live: undefined,
      status: columns === undefined ? undefined : { columns, write },
      interrupted: () => interrupted,
      onReload: () => () => {},
    });
    return { code, out: printed.join('\n'), err: complained.join('\n'), written };
  }

  it('prints the yardstick and what Sluice does, or all that the scenario compares', async () => {
    const { code, out } = await simulate([path]);
    expect(code).to.equal(0);
    expect(out.split('\n')[2]).to.match(/^ +best possible +ours$/);
    expect(out).to.match(/^answered +100\.00 % +100\.00 %$/m);
    expect((await simulate([path, '--compare'])).out.split('\n')[2]).to.match(/^ +best possible +bare +ours$/);
  });

  it('prints the same for the same seed, and something else for another', async () => {
    const first = await simulate([path, '--json']);
    expect((await simulate([path, '--json'])).out).to.equal(first.out);
    expect((await simulate([path, '--json', '--seed', '9'])).out).to.not.equal(first.out);
    expect(JSON.parse(first.out)).to.include({ ok: true, scenario: 'two minutes', seed: 1 });
  });

  it('runs Sluice where the scenario names no strategies', async () => {
    writeFileSync(path, scenario.replace(/^strategies.*$/m, ''));
    expect((await simulate([path])).out.split('\n')[2]).to.match(/^ +best possible +sluice$/);
  });

  it('takes every chunk where that is asked for', async () => {
    const [ends, all] = [await simulate([path, '--json']), await simulate([path, '--json', '--chunks'])];
    expect(all.out).to.equal(ends.out);
  });

  it('prints what calls failed of, and by tenant, where there is something to tell', async () => {
    writeFileSync(path, scenario.replace('model: m,', 'model: m, tenant: acme,'));
    const { out } = await simulate([path, '--compare']);
    expect(out).to.match(/^What calls failed of:\n\n.*\nrate_limited +0 +\d+ +0$/m);
    expect(out).to.match(/^acme: calls +\d+ +\d+ +\d+$/m);
    writeFileSync(path, scenario);
    expect((await simulate([path])).out).to.not.match(/What calls failed of|By tenant/);
  });

  it('shows how far it is on a terminal, no wider than that, and leaves nothing there', async () => {
    const { written, out } = await simulate([path, '--compare'], { columns: 80 });
    expect(written[0]).to.match(/\.{30} {3}0 % best possible/);
    expect(written.some((text) => text.endsWith('% ours') || text.includes('% ours,'))).to.be.true;
    expect(written.at(-1)).to.equal(CLEAR_LINE);
    expect(out).to.not.include(CLEAR_LINE);
    for (const text of (await simulate([path], { columns: 20 })).written) {
      expect(text.slice(CLEAR_LINE.length).length).to.be.below(20);
    }
    expect((await simulate([path])).written).to.be.empty;
  });

  it('ends at once when it is interrupted, says where it was, and writes nothing', async () => {
    const report = join(folder, 'report.html');
    const { code, out, err, written } = await simulate([path, '--html', report], { columns: 80, interruptAfter: 1 });
    expect(code).to.equal(130);
    expect(out).to.equal('');
    expect(err).to.equal('sluice simulate: interrupted in "best possible", at 0 %; there is no result');
    expect(written.at(-1)).to.equal(CLEAR_LINE);
    expect(() => readFileSync(report)).to.throw('ENOENT');
  });

  it('ends at Ctrl-C also in a process of its own, in the middle of a long run', async function () {
    this.timeout(30_000);
    writeFileSync(path, scenario.replace('perMinute: 100', 'perMinute: 100000').replace('forMs: 120000', 'forMs: 9e9'));
    // Somebody watches, so that it tells when it has begun.
    const program = `
      import { processTerminal } from './lib/cli/processTerminal.ts';
      import { runCli } from './lib/cli/runCli.ts';
      const status = { columns: 80, write: (text) => process.stderr.write(text) };
      process.exitCode = await runCli(['simulate', process.argv[1]], { ...processTerminal, status });
    `;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program, path], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (part: Buffer) => (out += String(part)));
    child.stderr.on('data', (part: Buffer) => (err += String(part)));
    child.stderr.once('data', () => child.kill('SIGINT'));
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code).to.equal(130);
    const [, said = ''] = err.split(`${CLEAR_LINE}sluice`);
    expect(`sluice${said}`).to.match(
      /^sluice simulate: interrupted in "best possible", at \d+ %; there is no result\n$/,
    );
    expect(out).to.equal('');
  });

  it('writes a report, with the files of the scenario and the command that makes it again', async () => {
    const report = join(folder, 'report.html');
    writeFileSync(join(folder, 'policy.yaml'), '# ours\nquota: { account: { requestsPerMinute: 120 } }\n');
    writeFileSync(path, `# a remark\n${scenario.replace(/^policy: .*$/m, 'policy: policy.yaml')}`);
    const { code, out } = await simulate([path, '--html', report, '--seed', '7', '--json']);
    expect(code).to.equal(0);
    const page = readFileSync(report, 'utf8');
    expect(page).to.include('npx sluice simulate scenario.yaml --seed 7 --html report.html');
    expect(page).to.include('# a remark').and.include('<h3>policy.yaml</h3>').and.include('# ours');
    expect(out).to.not.include('timeline');
    expect(JSON.parse(out)).to.deep.equal(JSON.parse((await simulate([path, '--seed', '7', '--json'])).out));
  });

  it('says before it begins that a report cannot be written', async () => {
    mkdirSync(join(folder, 'there'));
    for (const target of [join(folder, 'absent', 'report.html'), join(folder, 'there')]) {
      const { code, err, written } = await simulate([path, '--html', target], { columns: 80 });
      expect(code).to.equal(2);
      expect(err).to.match(/^sluice simulate: --html (?:cannot be written|must be a file)/);
      expect(written).to.be.empty;
    }
  });

  it('tells everything that is wrong, with its place, and ends with 1', async () => {
    writeFileSync(path, scenario.replace('forMs: 120000', 'forMs: -1').replace('perMinute: 100', 'perMinutes: 100'));
    const { code, err } = await simulate([path]);
    expect(code).to.equal(1);
    expect(err).to.match(/has 3 problems:\n {2}line 3, column 1: forMs: expected a number above 0, got -1\n/);
    const { out } = await simulate([path, '--json']);
    expect((JSON.parse(out) as { problems: unknown }).problems).to.have.length(3);
  });

  it('ends with 2 for a file that there is not, and for none', async () => {
    expect(await simulate([join(folder, 'absent.yaml')])).to.include({ code: 2 });
    expect((await simulate([])).err).to.contain('name the file of the scenario');
  });
});
