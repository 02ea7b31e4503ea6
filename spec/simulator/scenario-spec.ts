import { expect } from 'chai';
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadScenario, parseScenario } from '../../lib/simulator/index.ts';
import { readScenario } from '../../lib/simulator/scenario/parseScenario.ts';

const scenario = {
  name: 'a spec',
  forMs: 1000,
  load: [{ arrivals: { kind: 'poisson', perMinute: 60 }, model: 'm' }],
  upstreams: { main: { requestsPerMinute: 60 } },
};
const load = (changes: object): object => ({ load: [{ ...scenario.load[0], ...changes }] });

describe('parseScenario', () => {
  it('takes what is right, and says nothing of what is left out', () => {
    expect(parseScenario(scenario)).to.deep.equal(scenario);
  });

  const wrong: [object, string][] = [
    [{ name: undefined }, 'name: expected the name of the scenario, as text that is not empty, got nothing'],
    [{ forMs: 0 }, 'forMs: expected a number above 0, got 0'],
    [
      { forms: 3 },
      'forms: expected one of name, seed, forMs, load, upstreams, networkMs, policy, strategies, phases, chunks, got "forms"; did you mean "forMs"?',
    ],
    [{ load: [] }, 'load: expected a list of loads, not empty, got a list of 0'],
    [
      load({ modle: 'm' }),
      'load[0].modle: expected one of arrivals, model, tenant, priority, promptTokens, outputLimit, conversations, leavesAfterMs, deadlineMs, fromMs, toMs, got "modle"; did you mean "model"?',
    ],
    [
      load({ arrivals: { kind: 'often' } }),
      'load[0].arrivals.kind: expected arrivals of the kind constant, poisson, bursts, daily, workers or trace, got "often"',
    ],
    [
      load({ arrivals: { kind: 'constant', perMinute: 0 } }),
      'load[0].arrivals.perMinute: expected a number above 0, got 0',
    ],
    [
      load({ arrivals: { kind: 'daily', perMinute: 1, peak: 3 } }),
      'load[0].arrivals.peak: expected a number from 1 to 2, got 3',
    ],
    [
      load({ promptTokens: 'many' }),
      'load[0].promptTokens: expected a number of 0 or more, or { median, sigma, max }, got "many"',
    ],
    [
      load({ conversations: { share: 2, count: 1 } }),
      'load[0].conversations.share: expected a number above 0 and at most 1, got 2',
    ],
    [
      load({ arrivals: { kind: 'trace', calls: [{ atMs: 0 }, { atMs: -1 }] } }),
      'load[0].arrivals.calls[1].atMs: expected a number of 0 or more, got -1',
    ],
    [{ upstreams: {} }, 'upstreams: expected at least one client, got none'],
    [{ upstreams: { main: { models: { n: {} } } } }, 'load[0].model: expected one of n, got "m"'],
    [
      { upstreams: { main: { dialect: 'opneai' } } },
      'upstreams.main.dialect: expected one of openai, azure, anthropic, gemini, groq, none, got "opneai"; did you mean "openai"?',
    ],
    [
      { upstreams: { main: { script: [{ kind: 'explode' }] } } },
      'upstreams.main.script[0].kind: expected one of pass, reply, error, cut, reset, stall, slow, ',
    ],
    [{ policy: { deadlineMs: -1 } }, 'policy.deadlineMs: expected a number above 0, or null for no bound, got -1'],
    [{ policy: { models: { default: { client: 'other' } } } }, 'policy.models.default.client: expected '],
    [{ strategies: [{ kind: 'sluice', policy: { deadlineMs: 'x' } }] }, 'strategies[0].policy.deadlineMs: expected '],
    [
      { strategies: [{ kind: 'magic' }] },
      'strategies[0].kind: expected a strategy of the kind bare, sdk, fixed, backoff, recipe or sluice, got "magic"',
    ],
    [
      { strategies: [{ kind: 'sdk', retries: -1 }] },
      'strategies[0].retries: expected a whole number of at least 0, got -1',
    ],
  ];
  for (const [changes, message] of wrong) {
    it(`says: ${message.slice(0, 70)}`, () => {
      const { problems, scenario: read } = readScenario({ ...scenario, ...changes });
      expect(read).to.be.undefined;
      expect(problems.map((problem) => problem.message.slice(0, message.length))).to.deep.equal([message]);
    });
  }

  it('names everything that is wrong at once', () => {
    const { problems } = readScenario({ ...scenario, forMs: 'x', seed: 0.5, policy: { maxInFlight: 0 } });
    expect(problems.map(({ at }) => at)).to.have.members(['forMs', 'seed', 'policy.maxInFlight']);
  });

  it('takes a million recorded calls', () => {
    const calls = Array.from({ length: 1_000_000 }, (_, i) => ({ atMs: i }));
    const read = parseScenario({ ...scenario, ...load({ arrivals: { kind: 'trace', calls } }) });
    expect((read.load[0]?.arrivals as { calls: unknown }).calls).to.equal(calls);
  });
});

describe('loadScenario', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-scenario-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const yaml = (more: string): string => `name: a spec\nforMs: 1000\nupstreams: { main: {} }\n${more}`;

  it('reads a policy and recorded calls from the files that it names', () => {
    file('policy.yaml', 'deadlineMs: 4000');
    file('calls.csv', 'atMs,tenant,outputTokens\n5,acme,\n10,,20\n');
    const path = file(
      'scenario.yaml',
      yaml('policy: policy.yaml\nload: [{ model: m, arrivals: { kind: trace, file: calls.csv } }]'),
    );
    const read = loadScenario(path);
    expect(read.policy).to.deep.equal({ deadlineMs: 4000 });
    expect(JSON.parse(JSON.stringify(read.load[0]?.arrivals))).to.deep.equal({
      kind: 'trace',
      calls: [
        { atMs: 5, tenant: 'acme' },
        { atMs: 10, outputTokens: 20 },
      ],
    });
  });

  it('names line and column of what is wrong', () => {
    const path = file('wrong.yaml', yaml('load:\n  - model: m\n    arrivals: { kind: poisson, perMinute: -4 }\n'));
    expect(() => loadScenario(path)).to.throw(
      'wrong.yaml has 1 problem:\n  line 6, column 32: load[0].arrivals.perMinute',
    );
  });

  it('says which file cannot be read', () => {
    expect(() => loadScenario(join(folder, 'absent.yaml'))).to.throw(
      'absent.yaml cannot be read: there is no such file',
    );
    const path = file(
      'refers.yaml',
      yaml('policy: nowhere.yaml\nload: [{ model: m, arrivals: { kind: constant, perMinute: 1 } }]'),
    );
    expect(() => loadScenario(path)).to.throw('nowhere.yaml cannot be read: there is no such file');
    file('odd.csv', 'atMs,tenant\n5\n');
    const trace = file('odd.yaml', yaml('load: [{ model: m, arrivals: { kind: trace, file: odd.csv } }]'));
    expect(() => loadScenario(trace)).to.throw('the trace odd.csv must be CSV with a line of column names');
  });

  it('reads every scenario of the examples', () => {
    const files = readdirSync('examples/scenarios').filter((name) => name.endsWith('.yaml'));
    expect(files).to.not.be.empty;
    for (const name of files) expect(() => loadScenario(join('examples/scenarios', name)), name).to.not.throw();
  });
});
