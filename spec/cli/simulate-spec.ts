import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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

  async function simulate(args: readonly string[], columns?: number) {
    const printed: string[] = [];
    const complained: string[] = [];
    const written: string[] = [];
    const code = await runCli(['simulate', ...args], {
      print: (line) => void printed.push(line),
      complain: (line) => void complained.push(line),
      write: (text) => void written.push(text),
      live: columns === undefined ? undefined : { columns },
      interrupted: async () => {},
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

  it('shows a bar on a terminal, no wider than it is', async () => {
    const { written } = await simulate([path], 60);
    expect(written.some((text) => text.includes('##') && text.includes('calls'))).to.be.true;
    const lines = (await simulate([path], 20)).written.map((text) => text.slice(CLEAR_LINE.length));
    for (const line of lines) expect(line.length).to.be.below(20);
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
