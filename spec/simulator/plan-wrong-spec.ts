import { expect } from 'chai';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadPlan } from '../../lib/simulator/plan/loadPlan.ts';
import { parsePlan, readPlan } from '../../lib/simulator/plan/parsePlan.ts';

const scenario = {
  name: 'a spec',
  forMs: 1000,
  load: [{ arrivals: { kind: 'poisson', perMinute: 60 }, model: 'gpt-5.5' }],
  upstreams: { main: { requestsPerMinute: 60, models: { 'gpt-5.5': {}, mini: {} } } },
  policy: { quota: { account: { requestsPerMinute: 60 } } },
};
const two = { ...scenario, upstreams: { main: {}, azure: {} } };
const quota = { kind: 'quota', rate: 'requestsPerMinute' };
const plan = { scenario, target: { firstContentP95Ms: 900 }, find: [quota] };
const finding = (search: object, of: object = scenario): object => ({ ...plan, scenario: of, find: [search] });
const policy = (search: object): object => finding({ kind: 'policy', ...search });

const SEARCHES = 'a search of the kind quota, deployments, modelShare, load or policy';

/** Plans, and all that is told of each; of a line that ends in `...`, what comes before. */
const WRONG: readonly (readonly [plan: unknown, problems: readonly string[]])[] = [
  [
    undefined,
    [
      'target: expected an object, got nothing',
      'find: expected a list of numbers to look for, not empty, got nothing',
      'scenario: expected a scenario, or the path of its file, got nothing',
    ],
  ],
  ['x', ['expected an object, got "x"']],
  [{ ...plan, target: {} }, ['target: expected at least one target, got none']],
  [{ ...plan, target: { firstContentP95: 3 } }, ['target.firstContentP95: expected one of firstContentP50Ms, ...']],
  [{ ...plan, target: { answeredShare: 2 } }, ['target.answeredShare: expected a number from 0 to 1, got 2']],
  [
    { ...plan, target: { costPerMonth: 3 } },
    ['target.costPerMonth: expected a price of gpt-5.5 in the policy, got none'],
  ],
  [
    { ...plan, target: { tenants: { acme: {} } } },
    ['target.tenants.acme: expected a tenant of the load, which has none, got "acme"'],
  ],
  [
    {
      ...plan,
      scenario: { ...scenario, load: [{ ...scenario.load[0], tenant: 'acme' }] },
      target: { tenants: { amce: { totalP95Ms: 3 } } },
    },
    ['target.tenants.amce.totalP95Ms: expected one of firstContentP50Ms, ...'],
  ],
  [
    {
      ...plan,
      scenario: { ...scenario, load: [{ ...scenario.load[0], tenant: 'acme' }] },
      target: { tenants: { amce: {} } },
    },
    ['target.tenants.amce: expected one of acme, got "amce"; did you mean "acme"?'],
  ],
  [{ ...plan, scenario: undefined }, ['scenario: expected a scenario, or the path of its file, got nothing']],
  [{ ...plan, scenario: { ...scenario, forMs: -1 } }, ['scenario.forMs: expected a number above 0, got -1']],
  [{ ...plan, find: [] }, ['find: expected a list of numbers to look for, not empty, got a list of 0']],
  [finding({ kind: 'qouta' }), [`find[0].kind: expected ${SEARCHES}, got "qouta"; did you mean "quota"?`]],
  [finding({ rate: 'x' }), [`find[0].kind: expected ${SEARCHES}, got nothing`]],
  [
    finding({ kind: 'quota', rate: 'requestPerMinute' }),
    [
      'find[0].rate: expected one of requestsPerMinute, tokensPerMinute, burstRequests, burstTokens, got "requestPerMinute"; did you mean "requestsPerMinute"?',
    ],
  ],
  [finding({ ...quota, client: 'mian' }), ['find[0].client: expected one of main, got "mian"; did you mean "main"?']],
  [finding(quota, two), ['find[0].client: expected one of main, azure, as there are several, got nothing']],
  [
    finding({ ...quota, model: 'gpt-5' }),
    ['find[0].model: expected a model that calls ask for: gpt-5.5, got "gpt-5"; did you mean "gpt-5.5"?'],
  ],
  [finding({ ...quota, from: 9, to: 3 }), ['find[0].to: expected a number above from (9), got 3']],
  [
    { ...plan, find: [quota, { ...quota, client: 'main' }] },
    ['find[1]: expected each number once, got that of find[0]'],
  ],
  [
    { ...plan, seeds: 2, precision: 0, callsPerRun: 3, seed: 1 },
    [
      'seeds: expected a whole number of at least 3, got 2',
      'precision: expected a number above 0 and below 1, got 0',
      'callsPerRun: expected a whole number of at least 100, got 3',
      'seed: expected one of name, scenario, target, find, seeds, precision, callsPerRun, got "seed"; did you mean "seeds"?',
    ],
  ],
  [
    policy({ path: 'maxInflight', from: 1, to: 3 }),
    ['find[0].path: expected a setting of the policy, and of them one of preset, ...'],
  ],
  [
    policy({ path: 'models.default.retyr.attempts', from: 1, to: 3 }),
    ['find[0].path: expected a setting of the policy, and of them one of class, ...'],
  ],
  [
    policy({ path: '', from: 1, to: 3 }),
    [
      'find[0].path: expected the path of a setting of the policy, such as maxInFlight, or a list of its names, got an empty string',
    ],
  ],
  [
    policy({ path: 'quota.account', from: 1, to: 3 }),
    ['find[0].from: expected what the policy takes, at quota.account an object, got 1'],
  ],
  [policy({ path: 'maxInFlight', from: 1 }), ['find[0]: expected from and to, or values, got neither of them in full']],
  [
    policy({ path: 'maxInFlight', from: 1, to: 3, values: [1, 2] }),
    ['find[0].values: expected no values beside from and to, got a list of 2'],
  ],
  [
    policy({ path: 'maxInFlight', from: 0, to: 3 }),
    [
      'find[0].from: expected what the policy takes, at maxInFlight a whole number of at least 1, or null for no bound, got 0',
    ],
  ],
  [
    policy({ path: 'retryBudget.ratio', from: 0, to: 3 }),
    ['find[0].to: expected what the policy takes, at retryBudget.ratio a number from 0 to 1, got 3'],
  ],
  [
    policy({ path: 'models.default.retry.jitter', values: ['none', 'ful'] }),
    ['find[0].values[1]: expected what the policy takes, at models.default.retry.jitter one of full, ...'],
  ],
  [
    policy({ path: 'maxInFlight', values: [1, null] }),
    ['find[0].values[1]: expected a number, a text, true or false, got null'],
  ],
  [
    policy({ path: 'maxInFlight', from: 1, to: 3, search: 'least' }),
    ['find[0].search: expected one of smallest, largest, best, got "least"'],
  ],
  [
    finding({ kind: 'modelShare', model: 'gpt', cheaper: 'mni' }),
    [
      'find[0].model: expected a model that calls ask for: gpt-5.5, got "gpt"',
      'find[0].cheaper: expected one of gpt-5.5, mini, got "mni"; did you mean "mini"?',
    ],
  ],
  [
    finding({ kind: 'deployments' }, { ...scenario, policy: { models: { default: { deployments: [{}] } } } }),
    ['find[0].kind: expected a policy whose models list no deployments, got those of default'],
  ],
  [
    finding({ kind: 'deployments', client: 'azure' }, two),
    ['find[0].client: expected a client that serves a model, got "azure"'],
  ],
  [finding({ kind: 'load', from: 20 }), ['find[0].from: expected a number below to (10), got 20']],
  [finding({ kind: 'deployments', to: 1 }), ['find[0].to: expected a number above from (1), got 1']],
  [
    finding(quota, {
      ...scenario,
      policy: { models: { default: { deployments: [{}, { quota: { requestsPerMinute: 6 } }] } } },
    }),
    [
      'find[0].rate: expected a limit that the policy has in one place, got one that models.default.deployments[1].quota.requestsPerMinute holds too',
    ],
  ],
  [finding({ kind: 'load', from: 0 }), ['find[0].from: expected a number above 0, got 0']],
];

describe('parsePlan', () => {
  for (const [wrong, expected] of WRONG) {
    it(`says: ${expected[0]?.slice(0, 70) ?? ''}`, () => {
      const { problems, plan: read } = readPlan(wrong);
      expect(read).to.be.undefined;
      const told = problems.map(({ message }, i) => {
        const start = expected[i]?.endsWith('...') === true ? expected[i].slice(0, -3) : undefined;
        return start !== undefined && message.startsWith(start) ? `${start}...` : message;
      });
      expect(told).to.deep.equal(expected);
    });
  }

  it('takes what is right, and finds settings of models whose names have dots', () => {
    expect(parsePlan(plan)).to.deep.equal(plan);
    for (const path of [
      'models.gpt-5.5.retry.attempts',
      ['models', 'gpt-5.5', 'retry', 'attempts'],
      'tenants.a.maxInFlight',
    ]) {
      expect(readPlan(policy({ path, from: 1, to: 4 })).problems).to.deep.equal([]);
    }
  });

  it('names everything that is wrong at once, in the plan, its scenario and its policy', () => {
    const wrong = {
      ...plan,
      seeds: 1,
      scenario: { ...scenario, seed: -1, policy: { maxInFlight: 0 } },
      find: [{ kind: 'x' }],
    };
    expect(readPlan(wrong).problems.map(({ at }) => at)).to.have.members([
      'seeds',
      'find[0].kind',
      'scenario.seed',
      'scenario.policy.maxInFlight',
    ]);
    expect(() => parsePlan(wrong)).to.throw('the plan has 4 problems:\n  ');
  });
});

describe('loadPlan', () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), 'sluice-plans-'))));
  after(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const rest = 'target: { totalP95Ms: 900 }\nfind: [{ kind: quota, rate: requestsPerMinute }]\n';
  const service =
    'name: a\nforMs: 1000\nload: [{ model: m, arrivals: { kind: poisson, perMinute: 6 } }]\nupstreams: { main: {} }\n';

  it('takes a scenario in the plan, or in a file of its own, with the files that it names', () => {
    file('policy.yaml', 'deadlineMs: 4000');
    file('service.yaml', `${service}policy: policy.yaml\n`);
    const apart = loadPlan(file('apart.yaml', `scenario: service.yaml\n${rest}`));
    const inside = loadPlan(
      file('inside.yaml', `scenario:\n${service.replace(/^/gm, '  ')}policy: policy.yaml\n${rest}`),
    );
    expect(apart.scenario.policy).to.deep.equal({ deadlineMs: 4000 });
    expect(inside).to.deep.equal(apart);
  });

  it('names line and column, and the file where it is another', () => {
    file('wrong.yaml', service.replace('1000', '-1'));
    const path = file('refers.yaml', `scenario: wrong.yaml\n${rest}seeds: 1\n`);
    expect(() => loadPlan(path)).to.throw(
      'refers.yaml has 2 problems:\n' +
        '  line 4, column 1: seeds: expected a whole number of at least 3, got 1\n' +
        '  wrong.yaml, line 2, column 1: scenario.forMs: expected a number above 0, got -1',
    );
    const inside = file('within.yaml', `scenario:\n${service.replace(/^/gm, '  ').replace('1000', '-1')}\n${rest}`);
    expect(() => loadPlan(inside)).to.throw('within.yaml has 1 problem:\n  line 3, column 3: scenario.forMs: expected');
    expect(() => loadPlan(file('none.yaml', `scenario: absent.yaml\n${rest}`))).to.throw('absent.yaml cannot be read');
  });

  it('reads every plan of the examples', () => {
    const files = readdirSync('examples/plans').filter((name) => name.endsWith('.yaml'));
    expect(files).to.not.be.empty;
    for (const name of files) expect(() => loadPlan(join('examples/plans', name)), name).to.not.throw();
  });
});
