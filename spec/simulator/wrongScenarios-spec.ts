import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readScenarioFile } from '../../lib/simulator/scenario/loadScenario.ts';

const NAME = 'name: a service';
const LENGTH = 'forMs: 60000';
const LOAD = 'load: [{ model: m, arrivals: { kind: poisson, perMinute: 60 } }]';
const UPSTREAMS = 'upstreams: { main: {} }';

/** A file of four lines, of which some are others. */
function file({ name = NAME, length = LENGTH, load = LOAD, upstreams = UPSTREAMS, more = '' }): string {
  return [name, length, load, upstreams, more].join('\n');
}
const loaded = (load: string): string => file({ load: `load: [${load}]` });
const served = (upstream: string): string => file({ upstreams: `upstreams: { main: { ${upstream} } }` });
const asking = (more: string): string => loaded(`{ model: m, arrivals: { kind: poisson, perMinute: 60 }, ${more} }`);

const KINDS = 'arrivals of the kind constant, poisson, bursts, daily, workers or trace';
const OF_LOADS =
  'arrivals, model, tenant, priority, promptTokens, outputLimit, conversations, leavesAfterMs, deadlineMs, fromMs, toMs';

/** Files, and all that is told of each; of a line that ends in `...`, what comes before. */
const WRONG: readonly (readonly [what: string, text: string, problems: readonly string[]])[] = [
  [
    'nothing',
    '',
    [
      'name: expected the name of the scenario, as text that is not empty, got nothing',
      'forMs: expected a number above 0, got nothing',
      'load: expected a list of loads, not empty, got nothing',
      'upstreams: expected an object that maps clients to providers, got nothing',
    ],
  ],
  ['a text', 'hello', ['expected an object, got "hello"']],
  ['a list', '- 1', ['expected an object, got a list of 1']],
  ['what is no YAML', 'name: [', ['line 1, column 8: expected YAML, got flow sequence in block collection...']],
  ['a tab', 'name: a\n\tforMs: 3', ['line 2, column 1: expected YAML, got tabs are not allowed as indentation']],
  ['a key twice', `${file({})}\n${NAME}`, ['line 6, column 1: expected YAML, got map keys must be unique']],
  ['two documents', `${file({})}\n---\n${NAME}`, ['line 6, column 1: expected one document, got a second one']],
  ['no length', file({ length: 'forMs: null' }), ['line 2, column 1: forMs: expected a number above 0, got null']],
  [
    'a length as text',
    file({ length: 'forMs: 1 h' }),
    ['line 2, column 1: forMs: expected a number above 0, got "1 h"'],
  ],
  [
    'a length without end',
    file({ length: 'forMs: .inf' }),
    ['line 2, column 1: forMs: expected a number above 0, got Infinity'],
  ],
  [
    'a misspelled key',
    file({ length: 'forMS: 60000' }),
    [
      'forMs: expected a number above 0, got nothing',
      'line 2, column 1: forMS: expected one of name, seed, forMs, load, upstreams, networkMs, policy, strategies, phases, chunks, got "forMS"; did you mean "forMs"?',
    ],
  ],
  [
    'one load, and not a list',
    file({ load: 'load: { model: m }' }),
    ['line 3, column 1: load: expected a list of loads, not empty, got an object'],
  ],
  [
    'an empty load',
    loaded('{}'),
    [
      `line 3, column 8: load[0].arrivals: expected ${KINDS}, got nothing`,
      'line 3, column 8: load[0].model: expected the name of a model, as text that is not empty, got nothing',
    ],
  ],
  ['a load that is none', loaded('m'), ['line 3, column 8: load[0]: expected an object, got "m"']],
  [
    'arrivals of a name',
    loaded('{ model: m, arrivals: poisson }'),
    [`line 3, column 20: load[0].arrivals: expected ${KINDS}, got "poisson"`],
  ],
  [
    'a misspelled kind',
    loaded('{ model: m, arrivals: { kind: poison, perMinute: 3 } }'),
    [`line 3, column 32: load[0].arrivals.kind: expected ${KINDS}, got "poison"; did you mean "poisson"?`],
  ],
  [
    'settings of another kind',
    loaded('{ model: m, arrivals: { kind: bursts, perMinute: 3 } }'),
    [
      'line 3, column 20: load[0].arrivals.size: expected a whole number of at least 1, got nothing',
      'line 3, column 20: load[0].arrivals.everyMs: expected a number above 0, got nothing',
      'line 3, column 46: load[0].arrivals.perMinute: expected one of kind, size, everyMs, got "perMinute"',
    ],
  ],
  [
    'workers that cannot be',
    loaded('{ model: m, arrivals: { kind: workers, workers: 0, thinkMs: -1, calls: 1.5 } }'),
    [
      'line 3, column 47: load[0].arrivals.workers: expected a whole number of at least 1, got 0',
      'line 3, column 59: load[0].arrivals.thinkMs: expected a number of 0 or more, got -1',
      'line 3, column 72: load[0].arrivals.calls: expected a whole number of at least 1, got 1.5',
    ],
  ],
  [
    'a swing that would go below 0',
    loaded('{ model: m, arrivals: { kind: daily, perMinute: 3, peak: 2.5 } }'),
    ['line 3, column 59: load[0].arrivals.peak: expected a number from 1 to 2, got 2.5'],
  ],
  [
    'a distribution by its mean',
    asking('promptTokens: { mean: 300, sigma: 1 }'),
    [
      'line 3, column 64: load[0].promptTokens.median: expected a number above 0, got nothing',
      'line 3, column 80: load[0].promptTokens.mean: expected one of median, sigma, max, got "mean"; did you mean "median"?',
    ],
  ],
  [
    'a distribution as a list',
    asking('promptTokens: [1, 2]'),
    [
      'line 3, column 64: load[0].promptTokens: expected a number of 0 or more, or { median, sigma, max }, got a list of 2',
    ],
  ],
  [
    'conversations that cannot be',
    asking('conversations: { share: 0, count: 0, hare: 1 }'),
    [
      'line 3, column 81: load[0].conversations.share: expected a number above 0 and at most 1, got 0',
      'line 3, column 91: load[0].conversations.count: expected a whole number of at least 1, got 0',
      'line 3, column 101: load[0].conversations.hare: expected one of share, count, got "hare"; did you mean "share"?',
    ],
  ],
  [
    'a setting that no load has',
    asking('modle: m'),
    [`line 3, column 64: load[0].modle: expected one of ${OF_LOADS}, got "modle"; did you mean "model"?`],
  ],
  [
    'a load that ends before it begins',
    asking('fromMs: 900, toMs: 100'),
    ['line 3, column 77: load[0].toMs: expected a number above fromMs (900), got 100'],
  ],
  [
    'a load that never begins',
    asking('fromMs: 60000'),
    ['line 3, column 64: load[0].fromMs: expected a number below forMs (60000), got 60000'],
  ],
  [
    'a priority that the policy does not know',
    `${asking('priority: bacth')}\npolicy: { priorities: { order: [people, batch] } }`,
    ['line 3, column 64: load[0].priority: expected one of people, batch, got "bacth"; did you mean "batch"?'],
  ],
  [
    'recorded calls that are none',
    loaded('{ model: m, arrivals: { kind: trace, calls: [{ atMs: 1, modle: x }, 3, { atMs: -1 }] } }'),
    [
      'line 3, column 64: load[0].arrivals.calls[0].modle: expected one of atMs, model, tenant, priority, conversation, promptTokens, outputTokens, got "modle"; did you mean "model"?',
      'line 3, column 76: load[0].arrivals.calls[1]: expected an object, got 3',
      'line 3, column 81: load[0].arrivals.calls[2].atMs: expected a number of 0 or more, got -1',
    ],
  ],
  [
    'recorded calls of a model and a priority that there are not',
    file({
      load: 'load: [{ model: m, arrivals: { kind: trace, calls: [{ atMs: 1 }, { atMs: 2, model: x, priority: low }] } }]',
      upstreams: 'upstreams: { main: { models: { m: {} } } }',
    }),
    [
      'line 3, column 77: load[0].arrivals.calls[1].model: expected one of m, got "x"',
      'line 3, column 87: load[0].arrivals.calls[1].priority: expected one of interactive, batch, got "low"',
    ],
  ],
  [
    'no recorded calls',
    loaded('{ model: m, arrivals: { kind: trace, calls: [] } }'),
    ['line 3, column 45: load[0].arrivals.calls: expected a list of calls, each with atMs, not empty, got a list of 0'],
  ],
  [
    'no provider',
    file({ upstreams: 'upstreams: {}' }),
    ['line 4, column 1: upstreams: expected at least one client, got none'],
  ],
  [
    'a provider of nothing',
    file({ upstreams: 'upstreams: { main: null }' }),
    ['line 4, column 14: upstreams.main: expected an object, got null'],
  ],
  [
    'settings that a provider does not have',
    served('requestPerMinute: 3, firstTokenMs: fast, tokens: maximum, settle: used'),
    [
      'line 4, column 43: upstreams.main.firstTokenMs: expected a number of 0 or more, or { median, sigma, max }, got "fast"',
      'line 4, column 63: upstreams.main.tokens: expected a number of 0 or more, { median, sigma, max }, or max, got "maximum"',
      'line 4, column 80: upstreams.main.settle: expected one of reserved, usage, got "used"',
      'line 4, column 22: upstreams.main.requestPerMinute: expected one of requestsPerMinute, burstRequests, ...',
    ],
  ],
  [
    'a model that the provider does not have',
    served('models: { gpt-5: {} }'),
    ['line 3, column 10: load[0].model: expected one of gpt-5, got "m"'],
  ],
  [
    'a dialect of a model',
    served('models: { m: { dialect: openai, tokensPerMinute: 0 } }'),
    [
      'line 4, column 54: upstreams.main.models.m.tokensPerMinute: expected a number above 0, got 0',
      'line 4, column 37: upstreams.main.models.m.dialect: expected one of requestsPerMinute, ...',
    ],
  ],
  [
    'bursts without their rates',
    served('burstRequests: 4, models: { m: { burstTokens: 5 } }'),
    [
      'line 4, column 14: upstreams.main.requestsPerMinute: expected a rate beside burstRequests, got nothing',
      'line 4, column 50: upstreams.main.models.m.tokensPerMinute: expected a rate beside burstTokens, got nothing',
    ],
  ],
  [
    'faults that cannot be',
    served(
      'script: [{ kind: error, error: overlaoded }, { kind: reset, after: 1, extra: 3 }, 3], outages: [{ kind: reset, after: 1, fromMs: 5, toMs: 1 }], randomFaults: [{ kind: cut, after: 3 }]',
    ),
    [
      'line 4, column 46: upstreams.main.script[0].error: expected one of requests, tokens, too_large, concurrency, slow_down, quota_exhausted, daily, overloaded, server_error, bad_request, context_too_long, content_filtered, prefix_refused, model_not_found, auth, got "overlaoded"; did you mean "overloaded"?',
      'line 4, column 92: upstreams.main.script[1].extra: expected absent, as reset has no such field, got 3',
      'line 4, column 104: upstreams.main.script[2]: expected an object with a kind, got 3',
      'line 4, column 181: upstreams.main.randomFaults[0].probability: expected a value, got nothing',
      'line 4, column 154: upstreams.main.outages[0].toMs: expected a number above fromMs (5), got 1',
    ],
  ],
  [
    'changes that cannot be',
    served(
      'models: { m: {} }, changes: [{ account: { requestsPerMinute: 0 } }, { atMs: 3, acount: {} }, { atMs: 5, models: { n: {} } }]',
    ),
    [
      'line 4, column 51: upstreams.main.changes[0].atMs: expected a number of 0 or more, got nothing',
      'line 4, column 64: upstreams.main.changes[0].account.requestsPerMinute: expected a number above 0, got 0',
      'line 4, column 101: upstreams.main.changes[1].acount: expected one of atMs, account, models, got "acount"; did you mean "account"?',
    ],
  ],
  [
    'a change of a model that there is not',
    served('models: { m: {} }, changes: [{ atMs: 5, models: { n: {} } }]'),
    ['line 4, column 72: upstreams.main.changes[0].models.n: expected one of m, got "n"'],
  ],
  [
    'a wrong policy',
    file({ more: 'policy: { deadlineMs: -1, models: { m: { client: mian } } }' }),
    [
      'line 5, column 11: policy.deadlineMs: expected a number above 0, or null for no bound, got -1',
      'line 5, column 42: policy.models.m.client: expected one of "main", got "mian"; did you mean "main"?',
    ],
  ],
  [
    'strategies that cannot be',
    file({
      more: 'strategies: [bare, { kind: backof }, { kind: fixed, delay: 3 }, { name: x }, { kind: sluice, policy: { deadlineMs: 0 } }]',
    }),
    [
      'line 5, column 14: strategies[0]: expected a strategy of the kind bare, sdk, fixed, backoff, recipe or sluice, got "bare"',
      'line 5, column 22: strategies[1].kind: expected a strategy of the kind bare, sdk, fixed, backoff, recipe or sluice, got "backof"; did you mean "backoff"?',
      'line 5, column 53: strategies[2].delay: expected one of kind, name, attempts, delayMs, got "delay"; did you mean "delayMs"?',
      'line 5, column 65: strategies[3].kind: expected a strategy of the kind bare, sdk, fixed, backoff, recipe or sluice, got nothing',
      'line 5, column 104: strategies[4].policy.deadlineMs: expected a number above 0, or null for no bound, got 0',
    ],
  ],
  [
    'a fallback that no provider has',
    `${served('models: { m: {} }')}strategies: [{ kind: backoff, fallback: mm }]`,
    ['line 5, column 31: strategies[0].fallback: expected one of m, got "mm"'],
  ],
  [
    'phases that cannot be',
    file({ more: 'phases: [{ name: x, fromMs: 5, toMs: 1 }]' }),
    ['line 5, column 32: phases[0].toMs: expected a number above fromMs (5), got 1'],
  ],
  [
    'many things at once',
    'nmae: a\nforMs: 60000\nseed: 0.5\nchunks: every\nload: [{ model: m, arrivals: { kind: constant } }]\nupstreams: { main: { rpm: 3 } }\nnetworkMs: { median: 3 }',
    [
      'name: expected the name of the scenario, as text that is not empty, got nothing',
      'line 3, column 1: seed: expected a whole number of at least 0, got 0.5',
      'line 5, column 20: load[0].arrivals.perMinute: expected a number above 0, got nothing',
      'line 6, column 22: upstreams.main.rpm: expected one of requestsPerMinute, ...',
      'line 7, column 1: networkMs.sigma: expected a number of 0 or more, got nothing',
      'line 4, column 1: chunks: expected one of ends, all, got "every"',
      'line 1, column 1: nmae: expected one of name, seed, ...',
    ],
  ],
];

describe('wrong scenario files', () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), 'sluice-wrong-'))));
  after(() => rmSync(folder, { recursive: true }));

  for (const [what, text, expected] of WRONG) {
    it(`are told of everything that is wrong with them: ${what}`, () => {
      const path = join(folder, 'scenario.yaml');
      writeFileSync(path, text);
      const { problems, scenario } = readScenarioFile(path);
      expect(scenario).to.be.undefined;
      const told = problems.map(({ message }, i) => {
        const start = expected[i]?.endsWith('...') === true ? expected[i].slice(0, -3) : undefined;
        return start !== undefined && message.startsWith(start) ? `${start}...` : message;
      });
      expect(told).to.deep.equal(expected);
    });
  }

  it('is right when nothing is changed in it', () => {
    const path = join(folder, 'scenario.yaml');
    writeFileSync(path, file({}));
    expect(readScenarioFile(path).problems).to.deep.equal([]);
  });
});
