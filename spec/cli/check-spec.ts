import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../lib/cli/runCli.ts';
import { explain } from '../../lib/policy/explain.ts';
import { loadPolicy } from '../../lib/policy/loadPolicy.ts';
import { policyJsonSchema } from '../../lib/policy/policyJsonSchema.ts';

describe('sluice check', () => {
  let folder: string;
  let path: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-check-'));
    path = join(folder, 'policy.yaml');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function check(...args: string[]) {
    const printed: string[] = [];
    const complained: string[] = [];
    const code = await runCli(['check', ...args], {
      print: (line) => void printed.push(line),
      complain: (line) => void complained.push(line),
      write: () => {},
      live: undefined,
      interrupted: async () => {},
      onReload: () => () => {},
    });
    return { code, out: printed.join('\n'), err: complained.join('\n') };
  }

  it('explains a policy that is right, and ends with 0', async () => {
    writeFileSync(path, 'preset: firstAid\n');
    expect(await check(path)).to.deep.equal({ code: 0, out: explain(loadPolicy(path)), err: '' });
  });

  it('tells everything that is wrong with another, and ends with 1', async () => {
    writeFileSync(path, 'deadlineMs: -1\nmodles: {}\n');
    const { code, out, err } = await check(path);
    expect({ code, out }).to.deep.equal({ code: 1, out: '' });
    expect(err.split('\n').map((line) => line.replace(/ expected .*/, ''))).to.deep.equal([
      `${path} has 2 problems:`,
      '  line 1, column 1: deadlineMs:',
      '  line 2, column 1: modles:',
    ]);
  });

  it('ends with 1 for warnings if it is to be strict', async () => {
    writeFileSync(path, 'deadlineMs: 100\n');
    const { code, out } = await check(path);
    expect(code).to.equal(0);
    expect(out).to.include('Warnings:\n  models.default.retry.baseMs: ');
    expect(await check(path, '--strict')).to.deep.equal({ code: 1, out, err: '' });
    writeFileSync(path, '');
    expect((await check(path, '--strict')).code).to.equal(0);
  });

  it('knows the clients that it is told of', async () => {
    writeFileSync(path, 'models: { m: { client: azure } }\n');
    expect((await check(path)).code).to.equal(0);
    expect((await check(path, '--client', 'main', '--client', 'azure')).code).to.equal(0);
    const { code, err } = await check(path, '--client', 'main');
    expect(code).to.equal(1);
    expect(err).to.include('models.m.client: expected one of "main", got "azure"');
  });

  it('prints JSON: problems, or warnings and the policy without its keys and addresses', async () => {
    writeFileSync(path, 'deadlineMs: 0\n');
    const wrong = await check(path, '--json');
    expect(wrong).to.include({ code: 1, err: '' });
    expect(JSON.parse(wrong.out)).to.deep.equal({
      ok: false,
      problems: [
        {
          path: ['deadlineMs'],
          at: 'deadlineMs',
          expected: 'a number above 0, or null for no bound',
          got: '0',
          position: { line: 1, column: 1 },
          message: 'line 1, column 1: deadlineMs: expected a number above 0, or null for no bound, got 0',
        },
      ],
      warnings: [],
    });

    writeFileSync(
      path,
      [
        'deadlineMs: 100',
        'clients: { main: { apiKey: secret, baseURL: http://secret, headers: { authorization: secret } } }',
        'store: { url: redis://secret }',
        `gateway: { keys: ['${'a'.repeat(64)}', { hash: '${'b'.repeat(64)}', tenant: acme }] }`,
      ].join('\n'),
    );
    const right = await check(path, '--json');
    expect(right.code).to.equal(0);
    expect(right.out).to.not.include('secret');
    const { ok, warnings, policy } = JSON.parse(right.out) as {
      ok: boolean;
      warnings: { at: string }[];
      policy: { deadlineMs: number; gateway: { keys: unknown[] } };
    };
    expect(ok).to.equal(true);
    expect(warnings.map(({ at }) => at)).to.deep.equal(['models.default.retry.baseMs']);
    expect(policy).to.include({ deadlineMs: 100 });
    expect(policy.gateway.keys[1]).to.deep.equal({ hash: '[redacted]', tenant: 'acme' });
  });

  it('prints the schema', async () => {
    const { code, out } = await check('--schema');
    expect(code).to.equal(0);
    expect(JSON.parse(out)).to.deep.equal(policyJsonSchema());
  });

  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /^sluice check: name the file of the policy; see `sluice check --help`$/],
    [['/nowhere/at/all.yaml'], /^sluice check: \/nowhere\/at\/all\.yaml cannot be read: there is no such file; see/],
    [['a.yaml', 'b.yaml'], /there is no use for "b.yaml" here/],
    [['--schema', 'a.yaml'], /--schema takes no file/],
    [['--sceham'], /there is no flag --sceham/],
  ];
  for (const [args, sentence] of wrong) {
    it(`answers \`check ${args.join(' ')}\` with one sentence and exit code 2`, async () => {
      const { code, out, err } = await check(...args);
      expect({ code, out }).to.deep.equal({ code: 2, out: '' });
      expect(err).to.match(sentence).and.not.include('\n');
    });
  }

  it('has help', async () => {
    const { code, out } = await check('--help');
    expect(code).to.equal(0);
    for (const flag of ['--client', '--strict', '--json', '--schema']) expect(out).to.include(flag);
  });
});
