import { expect } from 'chai';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../lib/cli/runCli.ts';
import { loadPolicy } from '../../lib/policy/loadPolicy.ts';

const CLEAR_LINE = '\r\u001b[2K';

describe('sluice plan', () => {
  let folder: string;
  let path: string;

  const plan = `
scenario:
  name: two minutes
  forMs: 120000
  load: [{ model: m, arrivals: { kind: poisson, perMinute: 100 } }]
  upstreams: { main: { requestsPerMinute: 120, burstRequests: 3 } }
  policy: { quota: { account: { requestsPerMinute: 120, burstRequests: 3 } } }
target: { firstContentP95Ms: 1500 }
find: [{ kind: quota, rate: requestsPerMinute, from: 60, to: 600 }]
seeds: 3
precision: 0.3
`;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-plan-'));
    path = join(folder, 'plan.yaml');
    writeFileSync(path, plan);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function run(
    args: readonly string[],
    { columns, interrupt }: { columns?: number; interrupt?: Promise<void> } = {},
  ) {
    const printed: string[] = [];
    const complained: string[] = [];
    const status: string[] = [];
    const code = await runCli(['plan', ...args], {
      print: (line) => void printed.push(`${line}\n`),
      complain: (line) => void complained.push(line),
      write: (text) => void printed.push(text),
      live: { columns: 80 },
      ...(columns !== undefined && { status: { columns, write: (text) => void status.push(text) } }),
      interrupted: () => interrupt ?? new Promise(() => {}),
      onReload: () => () => {},
    });
    return { code, out: printed.join(''), err: complained.join('\n'), status };
  }

  it('prints a policy that can be checked, with why and what was tried in its comments', async () => {
    const { code, out, err } = await run([path]);
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    const policy = join(folder, 'policy.yaml');
    writeFileSync(policy, out);
    expect((await runCheck(policy)).code).to.equal(0);
    const { requestsPerMinute, burstRequests } = loadPolicy(policy).quota.account;
    expect(burstRequests).to.equal(3);
    expect(out).to.match(
      new RegExp(`^# ${requestsPerMinute ?? ''} requests a minute of main\\. The smallest of 60 to 600`, 'm'),
    );
    expect(out).to.match(
      /^ +# The smallest of 60 to 600 that will do: at \d+ time to first (?:.|\n +#)*\n +requestsPerMinute: \d/m,
    );
    expect(out).to.match(/^# time to first content, p95 +at most 1\.5 s +\d/m);
    expect(out).to.match(/^# 60 +1 +.* !/m);
    expect(out).to.contain('# Each run: 2 min, the whole load.');
  });

  it('prints the same as JSON', async () => {
    const { code, out } = await run([path, '--json']);
    const told = JSON.parse(out) as { ok: boolean; found: { value: number }[]; policy: object; tried: unknown[] };
    expect({ code, ok: told.ok }).to.deep.equal({ code: 0, ok: true });
    expect(told.policy).to.deep.equal({
      quota: { account: { requestsPerMinute: told.found[0]?.value, burstRequests: 3 } },
    });
    expect(told.tried).to.have.length.above(3);
  });

  it('prints no keys', async () => {
    const keyed = plan.replace('policy: { ', 'policy: { clients: { main: { apiKey: sk-very-secret } }, ');
    writeFileSync(path, keyed);
    for (const args of [[path], [path, '--json']]) {
      const { code, out } = await run(args);
      expect(code).to.equal(0);
      expect(out).to.contain('requestsPerMinute').and.not.contain('very-secret');
    }
  });

  it('draws otherwise for another seed, and runs as often and as long as it is told', async () => {
    const told = async (...args: string[]) => JSON.parse((await run([path, '--json', ...args])).out) as Told;
    interface Told {
      simulated: { seeds: number; forMs: number; runs: number };
      tried: { figures: unknown }[];
    }
    const first = await told();
    expect(await told()).to.deep.equal(first);
    expect((await told('--seed', '7')).tried).to.not.deep.equal(first.tried);
    expect((await told('--seeds', '4')).simulated.seeds).to.equal(4);
    writeFileSync(path, plan.replace('forMs: 120000', 'forMs: 30000000').replace('perMinute: 100', 'perMinute: 10'));
    expect((await told('--calls', '120')).simulated.forMs).to.equal(720_000);
  });

  it('says why the targets cannot be met, with nothing on standard output, and ends with 1', async () => {
    writeFileSync(path, plan.replace('firstContentP95Ms: 1500', 'firstContentP95Ms: 50'));
    const { code, out, err } = await run([path]);
    expect({ code, out }).to.deep.equal({ code: 1, out: '' });
    expect(err).to.match(/^two minutes: the targets are not met\n\n- time to first content, p95: /);
    expect(err).to.contain('that is what the model itself and the network take');
    const json = await run([path, '--json']);
    expect(json.code).to.equal(1);
    expect(JSON.parse(json.out)).to.include({ ok: false, reached: false });
  });

  it('shows a line on standard error where a person watches, no wider than it is, and clears it', async () => {
    expect((await run([path])).status).to.deep.equal([]);
    const { status, out } = await run([path], { columns: 30 });
    expect(status.some((text) => text.includes('#') && text.includes('search'))).to.be.true;
    for (const text of status) expect(text.slice(CLEAR_LINE.length).length).to.be.below(30);
    expect(status.at(-1)).to.equal(CLEAR_LINE);
    expect(out).to.not.contain(CLEAR_LINE);
  });

  it('ends with 130 when it is interrupted, and leaves nothing', async () => {
    const { code, out, err, status } = await run([path], { columns: 80, interrupt: Promise.resolve() });
    expect({ code, out, err }).to.deep.equal({
      code: 130,
      out: '',
      err: 'sluice plan: interrupted; there is no result',
    });
    expect(status.at(-1)).to.equal(CLEAR_LINE);
    expect(readdirSync(folder)).to.deep.equal(['plan.yaml']);
  });

  it('tells everything that is wrong, with its place, and ends with 1', async () => {
    writeFileSync(path, plan.replace('forMs: 120000', 'forMs: -1').replace('rate:', 'rates:'));
    const { code, err } = await run([path]);
    expect(code).to.equal(1);
    expect(err).to.contain('line 4, column 3: scenario.forMs: expected a number above 0, got -1');
    expect(err).to.contain(
      'find[0].rates: expected one of kind, rate, client, model, from, to, got "rates"; did you mean "rate"?',
    );
    const { out } = await run([path, '--json']);
    expect(JSON.parse(out)).to.include({ ok: false }).and.have.property('problems').with.length(3);
  });

  it('ends with 2 for a file that there is not, for none, and for flags that cannot be', async () => {
    expect(await run([join(folder, 'absent.yaml')])).to.include({ code: 2 });
    expect((await run([])).err).to.contain('name the file of the plan');
    expect((await run([path, '--seeds', '2'])).err).to.contain('--seeds must be a whole number of at least 3');
    expect((await run([path, '--calls', 'x'])).err).to.contain('--calls must be a number');
  });
});

async function runCheck(path: string) {
  const complained: string[] = [];
  const code = await runCli(['check', path], {
    print: () => {},
    complain: (line) => void complained.push(line),
    write: () => {},
    live: undefined,
    interrupted: async () => {},
    onReload: () => () => {},
  });
  expect(complained).to.deep.equal([]);
  return { code };
}
