import { expect } from 'chai';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSluiceError } from '../../lib/core/errors.ts';
import { loadPolicy } from '../../lib/policy/loadPolicy.ts';
import { parsePolicy } from '../../lib/policy/parsePolicy.ts';
import type { LoadPolicyOptions, Policy } from '../../lib/policy/Policy.ts';

describe('loadPolicy', () => {
  let folder: string;

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'sluice-policy-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  function load(text: string, options: LoadPolicyOptions = { env: {} }, name = 'policy.yaml'): Policy {
    writeFileSync(join(folder, name), text);
    return loadPolicy(join(folder, name), options);
  }

  /** The lines below the first one of the error. */
  function wrong(text: string, options?: LoadPolicyOptions, name?: string): readonly string[] {
    try {
      load(text, options, name);
    } catch (error) {
      if (!isSluiceError(error) || error.code !== 'invalid_policy') throw error;
      const [first, ...lines] = error.message.replace(folder, '').split('\n');
      expect(first).to.match(/^\/policy\.\w+ has (1 problem|\d+ problems):$/);
      return lines.map((line) => line.trim());
    }
    throw new Error('nothing was wrong');
  }

  it('reads the policy in which every setting stands', () => {
    const policy = loadPolicy('spec/fixtures/policies/every-setting.yaml', { env: {}, clients: ['main', 'azure'] });
    expect(policy).to.include({ deadlineMs: 60_000, maxInFlight: 200 });
    const model = policy.models['gpt-5.5'];
    expect(model?.deployments.map(({ client, model: name }) => [client, name])).to.deep.equal([
      ['main', undefined],
      ['azure', 'gpt-55-eu'],
    ]);
    expect(model?.deployments[1]?.quota).to.include({ requestsPerMinute: 300, burstRequests: 5 });
    expect(model).to.deep.include({ fallback: ['deepseek-v3.2'], fallbackOn: { context_too_long: ['gpt-5.5-long'] } });
    expect(policy.tenants['acme']).to.include({ reservedInFlight: 20, burstRequests: 120 });
    expect(policy.priorities.levels).to.deep.equal({
      interactive: { maxInFlight: Infinity },
      batch: { maxInFlight: 15 },
    });
    expect(policy.spend.perTenantPerDay).to.deep.equal({ default: 5 });
    expect(parsePolicy(JSON.parse(JSON.stringify(policy)))).to.deep.equal(policy);
  });

  it('reads JSON where the name ends in .json', () => {
    const value = { deadlineMs: 5, models: { m: { retry: { attempts: 2 } } } };
    const text = JSON.stringify(value, undefined, '\t');
    expect(load(text, { env: {} }, 'policy.json')).to.deep.equal(parsePolicy(value));
    expect(load(`\uFEFF${text}`, { env: {} }, 'policy.JSON')).to.deep.equal(parsePolicy(value));
  });

  it('takes an empty file, and one of comments, for an empty policy', () => {
    for (const text of ['', '# nothing yet\n', '---\n', 'null']) expect(load(text)).to.deep.equal(parsePolicy({}));
  });

  it('reads .inf, null and ~ as no bound', () => {
    for (const off of ['.inf', 'null', '~']) expect(load(`deadlineMs: ${off}`).deadlineMs).to.equal(Infinity);
  });

  it('takes what is left blank for left out, and a blank name for one with the usual settings', () => {
    const policy = load('deadlineMs:\nquota:\nretryBudget:\n  ratio:\nmodels:\n  a:\ntenants:\n  acme:\n');
    expect(policy).to.deep.equal(parsePolicy({ models: { a: {} }, tenants: { acme: {} } }));
  });

  it('follows anchors and merge keys', () => {
    const policy = load('models:\n  a: &m { retry: { attempts: 2 } }\n  b: *m\n  c: { <<: *m, client: x }\n');
    expect(policy.models['b']).to.deep.equal(policy.models['a']);
    expect(policy.models['c']).to.deep.include({ client: 'x', retry: policy.models['a']?.retry });
  });

  describe('environment', () => {
    const text = 'clients:\n  main: { apiKey: "${KEY}", baseURL: "${HOST:-http://here}/v1" }\n';

    it('puts variables into texts', () => {
      expect(load(text, { env: { KEY: 'k', HOST: 'http://there' } }).clients['main']).to.deep.equal({
        apiKey: 'k',
        baseURL: 'http://there/v1',
      });
    });

    it('takes the default for a variable that is unset or empty', () => {
      for (const HOST of [undefined, '']) {
        expect(load(text, { env: { KEY: 'k', HOST } }).clients['main']?.baseURL).to.equal('http://here/v1');
      }
      expect(load('store: { url: "${A:-}b" }').store.url).to.equal('b');
    });

    it('reads the environment of the process unless it is given another', () => {
      process.env['SLUICE_SPEC_VARIABLE'] = 'here';
      try {
        expect(load('store: { url: "${SLUICE_SPEC_VARIABLE}" }', {}).store.url).to.equal('here');
        expect(wrong('store: { url: "${SLUICE_SPEC_VARIABLE}" }', { env: {} })).to.have.length(1);
      } finally {
        delete process.env['SLUICE_SPEC_VARIABLE'];
      }
    });

    it('names the path and the variable that is not set, and nothing else of that path', () => {
      expect(wrong(`${text}  other: { apiKey: "\${A}\${B}" }\n`)).to.deep.equal([
        'line 2, column 11: clients.main.apiKey: expected the environment variable KEY to be set, got nothing',
        'line 3, column 12: clients.other.apiKey: expected the environment variable A to be set, got nothing',
        'line 3, column 12: clients.other.apiKey: expected the environment variable B to be set, got nothing',
      ]);
    });

    it('names a misspelled setting also where what it holds is not set', () => {
      expect(wrong('client: { main: { apiKey: "${KEY}" } }').map((line) => line.slice(0, 50))).to.deep.equal([
        'line 1, column 19: client.main.apiKey: expected th',
        'line 1, column 1: client: expected one of preset, ',
      ]);
    });

    it('gives texts, never numbers, and shows no value', () => {
      const env = { D: '31337', M: 'secret-name' };
      const told = wrong('deadlineMs: ${D}\nmodels: { a: { class: "${M}", fallback: ["${M}"] } }', { env });
      expect(told).to.deep.equal([
        'line 1, column 1: deadlineMs: expected a number above 0, or null for no bound, got a text from the environment',
        'line 2, column 16: models.a.class: expected one of cheap, main, expensive, lastResort, got a text from the environment',
        'line 2, column 42: models.a.fallback[0]: expected a model that models lists, or `default: {}` there for those that it does not, got a text from the environment',
      ]);
    });

    it('leaves names of settings alone, and $${ as ${', () => {
      const policy = load('models: { "${A}": { params: { set: { stop: "$${x}", cost: "$5 and $" } } } }');
      expect(policy.models['${A}']?.params.set).to.deep.equal({ stop: '${x}', cost: '$5 and $' });
    });

    it('says when something looks like a variable and is none', () => {
      for (const part of ['${', '${A', '${1A}', '${a b}', '${}', '${A-b}']) {
        expect(wrong(`store: { url: "${part}" }`)[0]).to.include(
          'store.url: expected ${NAME} or ${NAME:-default}, or $${ for the characters themselves',
        );
      }
    });
  });

  describe('faults of the text', () => {
    const cases: readonly (readonly [string, ...string[]])[] = [
      ['deadlineMs: 1\ndeadlineMs: 2', 'line 2, column 1: expected YAML, got map keys must be unique'],
      ['models:\n\ta: 1', 'line 2, column 1: expected YAML, got tabs are not allowed as indentation'],
      [
        'models: [1, 2',
        'line 1, column 14: expected YAML, got flow sequence in block collection must be sufficiently indented and end with a ]',
      ],
      ['models: !own {}', 'line 1, column 9: expected YAML, got unresolved tag: !own'],
      ['models: *a', 'expected YAML, got unresolved alias (the anchor must be set before the alias): a'],
      ['deadlineMs: 1\n---\ndeadlineMs: 2', 'line 2, column 1: expected one document, got a second one'],
      ['? [a, b]\n: 1', 'line 1, column 3: expected a name, got a key that is no text'],
      ['just a text', 'expected an object, got "just a text"'],
      ['__proto__: { a: 1 }', 'line 1, column 1: __proto__: expected another name, got "__proto__"'],
    ];
    for (const [text, ...sentences] of cases) {
      it(`names line and column: ${JSON.stringify(text)}`, () => expect(wrong(text)).to.deep.equal(sentences));
    }

    it('says that a variable between brackets needs quotes', () => {
      expect(wrong('clients: { main: { apiKey: ${KEY} } }')[0]).to.match(
        /^line 1, column 29: expected YAML, got unexpected .* \(between \[ \] and \{ \}, write "\$\{NAME\}" in quotes\)$/,
      );
    });

    it('shows nothing of the text', () => {
      expect(wrong('a: "sk-secret" sk-secret: "sk-secret').join()).to.not.include('sk-secret');
      expect(wrong('{"a": sk-secret', { env: {} }, 'policy.json').join()).to.not.include('sk-secret');
    });

    const json: readonly (readonly [string, string])[] = [
      ['', 'expected JSON, got nothing'],
      ['{"deadlineMs": 5,}', 'line 1, column 18: expected JSON, got something else'],
      ['{"deadlineMs": 5, "deadlineMs": 6}', 'line 1, column 19: expected JSON, got map keys must be unique'],
      [
        '{\n\t"deadlineMs": -5\n}',
        'line 2, column 2: deadlineMs: expected a number above 0, or null for no bound, got -5',
      ],
    ];
    for (const [text, sentence] of json) {
      it(`holds JSON to be JSON: ${JSON.stringify(text)}`, () => {
        expect(wrong(text, { env: {} }, 'policy.json')).to.deep.equal([sentence]);
      });
    }

    it('does not fall for a text that is very deep or grows very wide', () => {
      expect(wrong('['.repeat(3000)).length).to.be.at.most(5);
      const bomb = [
        'a0: &a0 [x, x]',
        ...Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`),
      ];
      expect(wrong(bomb.join('\n')).length).to.be.at.least(1);
    });
  });

  it('gives the line of each problem, also through anchors', () => {
    const text =
      'models:\n  a: &m\n    retry:\n      attempts: 0\n  b: *m\n  c:\n    price: { inputPerMTok: 1 }\nzzz: 1\n';
    expect(wrong(text).map((line) => line.split(':').slice(0, 2).join(':'))).to.deep.equal([
      'line 4, column 7: models.a.retry.attempts',
      'line 4, column 7: models.b.retry.attempts',
      'line 7, column 5: models.c.price.outputPerMTok',
      'line 8, column 1: zzz',
    ]);
  });

  it('passes the clients on', () => {
    expect(wrong('models: { m: { client: x } }', { env: {}, clients: ['main'] })[0]).to.include(
      'expected one of "main"',
    );
  });

  describe('a file that cannot be read', () => {
    const message = (path: string): string => {
      try {
        loadPolicy(path);
      } catch (error) {
        if (isSluiceError(error) && error.code === 'invalid_policy') return error.message;
      }
      throw new Error('it was read');
    };

    it('is one clear sentence', () => {
      const missing = join(folder, 'missing.yaml');
      expect(message(missing)).to.equal(`${missing} cannot be read: there is no such file`);
      expect(message(folder)).to.equal(`${folder} cannot be read: it is a directory`);
      const file = join(folder, 'policy.yaml');
      writeFileSync(file, '');
      expect(message(join(file, 'inner'))).to.equal(`${file}/inner cannot be read: a part of its path is no directory`);
      if (process.getuid?.() === 0) return;
      chmodSync(file, 0);
      expect(message(file)).to.equal(`${file} cannot be read: this process may not read it`);
    });
  });
});
