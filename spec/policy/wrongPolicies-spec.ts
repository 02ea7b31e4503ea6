import { expect } from 'chai';
import { isSluiceError } from '../../lib/core/errors.ts';
import { parsePolicy, policyProblems } from '../../lib/policy/parsePolicy.ts';

const model = (settings: unknown): unknown => ({ models: { m: settings } });

const above0OrOff = 'a number above 0, or null for no bound';
const wholeOrOff = 'a whole number of at least 1, or null for no bound';
const rates = 'requestsPerMinute, burstRequests, tokensPerMinute, burstTokens';
const rules = 'settle, refundOn, arrivalMarginMs, cooldown, exhaustedMs';
const top =
  'preset, clients, deadlineMs, totalMs, maxInFlight, maxAttempts, quota, models, tenants, priorities, retryBudget, ' +
  'conversations, spend, store, telemetry, gateway';
const listed = 'a model that models lists, or `default: {}` there for those that it does not';

/** What is wrong, and the path, expectation, value and suggestion that must be told, in one sentence each. */
const WRONG: readonly (readonly [value: unknown, ...sentences: string[]])[] = [
  // No policy at all.
  [5, 'expected an object, got 5'],
  ['policy.yaml', 'expected an object, got "policy.yaml"'],
  [[], 'expected an object, got a list of 0'],
  [true, 'expected an object, got true'],

  // Misspelled.
  [{ deadlinems: 5 }, `deadlinems: expected one of ${top}, got "deadlinems"; did you mean "deadlineMs"?`],
  [{ modles: {} }, `modles: expected one of ${top}, got "modles"; did you mean "models"?`],
  [{ max_in_flight: 5 }, `max_in_flight: expected one of ${top}, got "max_in_flight"; did you mean "maxInFlight"?`],
  [{ somethingElse: 5 }, `somethingElse: expected one of ${top}, got "somethingElse"`],
  [
    model({ retry: { attempt: 3 } }),
    'models.m.retry.attempt: expected one of attempts, baseMs, capMs, jitter, maxHintMs, got "attempt"; did you mean "attempts"?',
  ],
  [
    { quota: { account: { requestPerMinute: 60 } } },
    `quota.account.requestPerMinute: expected one of ${rates}, ${rules}, maxWaiting, maxWaitMs, passShare, got "requestPerMinute"; did you mean "requestsPerMinute"?`,
  ],
  [
    { tenants: { acme: { wieght: 2 } } },
    `tenants.acme.wieght: expected one of ${rates}, maxInFlight, reservedInFlight, weight, got "wieght"; did you mean "weight"?`,
  ],
  [
    { conversations: { maxWait: 5 } },
    'conversations.maxWait: expected one of maxWaiting, maxWaitMs, header, got "maxWait"; did you mean "maxWaitMs"?',
  ],
  [{ store: { onLos: 'share' } }, 'store.onLos: expected one of onLoss, url, got "onLos"; did you mean "onLoss"?'],
  [
    model({ retry: { jitter: 'ful' } }),
    'models.m.retry.jitter: expected one of full, equal, decorrelated, none, got "ful"; did you mean "full"?',
  ],
  [
    model({ class: 'Cheap' }),
    'models.m.class: expected one of cheap, main, expensive, lastResort, got "Cheap"; did you mean "cheap"?',
  ],
  [
    { preset: 'first-aid' },
    'preset: expected one of firstAid, interactive, batch, got "first-aid"; did you mean "firstAid"?',
  ],
  [
    model({ fallbackOn: { context_to_long: [] } }),
    /^models\.m\.fallbackOn\.context_to_long: expected one of rate_limited, .*, got "context_to_long"; did you mean "context_too_long"\?$/ as never,
  ],
  [
    { models: { a: { fallback: ['bb-larg'] }, 'bb-large': {} } },
    `models.a.fallback[0]: expected ${listed}, got "bb-larg"; did you mean "bb-large"?`,
  ],
  [
    { priorities: { order: ['interactive', 'batch'], bacth: { maxInFlight: 5 } } },
    'priorities.bacth: expected a priority of order: interactive, batch, got "bacth"; did you mean "batch"?',
  ],

  // Of the wrong kind.
  [{ deadlineMs: '60s' }, `deadlineMs: expected ${above0OrOff}, got "60s"`],
  [{ deadlineMs: {} }, `deadlineMs: expected ${above0OrOff}, got an object`],
  [{ models: [] }, 'models: expected an object that maps models to settings, got a list of 0'],
  [{ models: null }, 'models: expected an object that maps models to settings, got null'],
  [{ models: { m: 3 } }, 'models.m: expected an object, got 3'],
  [model({ retry: 5 }), 'models.m.retry: expected an object, got 5'],
  [model({ retry: { attempts: null } }), 'models.m.retry.attempts: expected a whole number of at least 1, got null'],
  [model({ fallback: 'other' }), 'models.m.fallback: expected a list of names of models, got "other"'],
  [model({ fallback: [5] }), 'models.m.fallback[0]: expected the name of a model, as text that is not empty, got 5'],
  [model({ deployments: {} }), 'models.m.deployments: expected a list of deployments, not empty, got an object'],
  [model({ canContinue: 'yes' }), 'models.m.canContinue: expected true or false, got "yes"'],
  [
    model({ params: { rename: { a: 1 } } }),
    'models.m.params.rename.a: expected the new name, as text that is not empty, got 1',
  ],
  [model({ client: 7 }), 'models.m.client: expected the name of a client, as text that is not empty, got 7'],
  [{ telemetry: { captureContent: 1 } }, 'telemetry.captureContent: expected true or false, got 1'],
  [{ conversations: { header: 5 } }, 'conversations.header: expected the name of a header, or null for none, got 5'],
  [{ priorities: { batch: 15 } }, 'priorities.batch: expected an object, got 15'],
  [{ spend: { perTenantPerDay: 5 } }, 'spend.perTenantPerDay: expected an object that maps tenants to amounts, got 5'],
  [{ gateway: { keys: { a: 1 } } }, 'gateway.keys: expected a list of keys, got an object'],
  [
    { gateway: { keys: [5] } },
    'gateway.keys[0]: expected the SHA-256 of a key, in 64 hexadecimal digits, or an object with hash, tenant, priority, got 5',
  ],

  // Out of range.
  [{ deadlineMs: 0 }, `deadlineMs: expected ${above0OrOff}, got 0`],
  [{ deadlineMs: NaN }, `deadlineMs: expected ${above0OrOff}, got NaN`],
  [{ deadlineMs: -Infinity }, `deadlineMs: expected ${above0OrOff}, got -Infinity`],
  [{ maxInFlight: 0 }, `maxInFlight: expected ${wholeOrOff}, got 0`],
  [{ maxInFlight: 1.5 }, `maxInFlight: expected ${wholeOrOff}, got 1.5`],
  [{ maxAttempts: -1 }, `maxAttempts: expected ${wholeOrOff}, got -1`],
  [
    { quota: { account: { requestsPerMinute: 0 } } },
    'quota.account.requestsPerMinute: expected a number above 0, got 0',
  ],
  [
    { quota: { account: { requestsPerMinute: Infinity } } },
    'quota.account.requestsPerMinute: expected a number above 0, got Infinity',
  ],
  [
    { quota: { account: { requestsPerMinute: 60, burstRequests: 0.5 } } },
    'quota.account.burstRequests: expected a number of 1 or more, got 0.5',
  ],
  [model({ retry: { attempts: 0 } }), 'models.m.retry.attempts: expected a whole number of at least 1, got 0'],
  [model({ retry: { baseMs: -1 } }), 'models.m.retry.baseMs: expected a number of 0 or more, got -1'],
  [
    model({ breaker: { errorRatio: 25 } }),
    'models.m.breaker.errorRatio: expected a number above 0 and at most 1, or null for never, got 25',
  ],
  [
    model({ breaker: { halfOpenShare: 0 } }),
    'models.m.breaker.halfOpenShare: expected a number above 0 and at most 1, got 0',
  ],
  [
    model({ concurrency: { decrease: 1 } }),
    'models.m.concurrency.decrease: expected a number above 0 and below 1, got 1',
  ],
  [model({ deployments: [] }), 'models.m.deployments: expected a list of deployments, not empty, got a list of 0'],
  [{ retryBudget: { ratio: 20 } }, 'retryBudget.ratio: expected a number from 0 to 1, got 20'],
  [{ tenants: { acme: { weight: 0 } } }, 'tenants.acme.weight: expected a number above 0, got 0'],
  [
    { priorities: { order: [] } },
    'priorities.order: expected a list of names of priorities, not empty, got a list of 0',
  ],
  [
    { conversations: { header: 'a b' } },
    'conversations.header: expected the name of a header, or null for none, got "a b"',
  ],
  [model({ price: { inputPerMTok: 2 } }), 'models.m.price.outputPerMTok: expected a number of 0 or more, got nothing'],
  [
    model({ client: '' }),
    'models.m.client: expected the name of a client, as text that is not empty, got an empty string',
  ],
  [{ models: { '': {} } }, 'models[""]: expected a name that is not empty, got ""'],

  // Right one by one, and not together.
  [model({ concurrency: { min: 9, max: 3 } }), 'models.m.concurrency.min: expected at most max (3), got 9'],
  [
    model({ concurrency: { initial: 2, min: 4, max: 8 } }),
    'models.m.concurrency.initial: expected from min (4) to max (8), got 2',
  ],
  [
    model({ deployments: [{ concurrency: { initial: 99, max: 8 } }] }),
    'models.m.deployments[0].concurrency.initial: expected from min (4) to max (8), got 99',
  ],
  [model({ concurrency: { limit: 5, min: 2 } }), 'models.m.concurrency.limit: expected no limit beside min, got 5'],
  [
    model({ breaker: { openMs: 500, openCapMs: 100 } }),
    'models.m.breaker.openCapMs: expected at least openMs (500), got 100',
  ],
  [
    { maxInFlight: 10, tenants: { a: { reservedInFlight: 6 }, b: { reservedInFlight: 5 } } },
    'tenants: expected reservedInFlight of all tenants together at most maxInFlight (10), got 11',
  ],
  [
    { tenants: { a: { reservedInFlight: 6, maxInFlight: 5 } } },
    'tenants.a.reservedInFlight: expected at most its maxInFlight (5), got 6',
  ],
  [
    { tenants: { default: { reservedInFlight: 1 } } },
    'tenants.default.reservedInFlight: expected 0, since tenants not listed are without number, got 1',
  ],
  [
    { quota: { account: { burstTokens: 5 } } },
    'quota.account.tokensPerMinute: expected a rate beside burstTokens, got nothing',
  ],
  [
    model({ deployments: [{}, { quota: { burstRequests: 5 } }] }),
    'models.m.deployments[1].quota.requestsPerMinute: expected a rate beside burstRequests, got nothing',
  ],
  [
    { tenants: { acme: { burstRequests: 5 } } },
    'tenants.acme.requestsPerMinute: expected a rate beside burstRequests, got nothing',
  ],
  [model({ midStream: 'continue' }), 'models.m.canContinue: expected true, since midStream is continue, got false'],
  [model({ fallback: ['m'] }), 'models.m.fallback[0]: expected another model, got "m"'],
  [
    { models: { default: { fallback: ['default'] } } },
    'models.default.fallback[0]: expected another model, got "default"',
  ],
  [
    { models: { default: {}, a: { fallback: ['x', 'y', 'x'] } } },
    'models.a.fallback[2]: expected each model once, got "x"',
  ],
  [{ models: { a: { fallback: ['x'] } } }, `models.a.fallback[0]: expected ${listed}, got "x"`],
  [
    { models: { a: { fallback: ['b'] }, b: { fallback: ['a'] } } },
    'models.a.fallback: expected no way back to the model itself, got a -> b -> a',
  ],
  [
    { models: { a: { fallback: ['b'] }, b: { fallback: ['c'] }, c: { fallback: ['d', 'b'] }, d: {} } },
    'models.b.fallback: expected no way back to the model itself, got b -> c -> b',
  ],
  [
    { models: { a: { fallbackOn: { timeout: ['b'] } }, b: { fallbackOn: { timeout: ['a'] } } } },
    'models.a.fallbackOn.timeout: expected no way back to the model itself, got a -> b -> a',
  ],
  [
    { models: { default: { fallback: ['y'] }, x: {}, y: { fallback: ['x'] } } },
    'models.x.fallback: expected no way back to the model itself, got x -> y -> x',
  ],
  [{ priorities: { order: ['x', 'y', 'x'] } }, 'priorities.order[2]: expected each priority once, got "x"'],
  [{ priorities: { order: ['order'] } }, 'priorities.order[0]: expected another name, got "order"'],
  [{ priorities: { order: ['ageingMs'] } }, 'priorities.order[0]: expected another name, got "ageingMs"'],
  [
    { priorities: { ageingMs: -1 } },
    'priorities.ageingMs: expected a number of 0 or more, or null for no bound, got -1',
  ],
  [{ quota: { account: { passShare: -1 } } }, 'quota.account.passShare: expected a number of 0 or more, got -1'],
  [{ quota: { account: { exhaustedMs: 0 } } }, 'quota.account.exhaustedMs: expected a number above 0, got 0'],
  [
    { gateway: { keys: [{ hash: 'a'.repeat(64), priority: 'bacth' }] } },
    'gateway.keys[0].priority: expected a priority of order: interactive, batch, got a string of 5 characters; did you mean "batch"?',
  ],
  [
    { gateway: { keys: ['a'.repeat(64), { hash: 'A'.repeat(64) }] } },
    'gateway.keys[1]: expected each key once, got the key of gateway.keys[0]',
  ],
  [
    { clients: { main: {} }, models: { m: { client: 'mian' } } },
    'models.m.client: expected one of "main", got "mian"; did you mean "main"?',
  ],
];

describe('wrong policies', () => {
  for (const [value, ...sentences] of WRONG) {
    it(`are told by path, expectation and value: ${String(sentences[0]).slice(0, 90)}`, () => {
      const problems = policyProblems(value);
      expect(problems).to.have.length(sentences.length);
      for (const [i, problem] of problems.entries()) {
        const sentence: unknown = sentences[i];
        if (sentence instanceof RegExp) expect(problem.message).to.match(sentence);
        else expect(problem.message).to.equal(sentence);
        expect(problem.message).to.include(problem.expected).and.include(problem.got).and.include(problem.at);
      }
      expect(() => parsePolicy(value))
        .to.throw()
        .that.satisfies((error: unknown) => isSluiceError(error) && error.code === 'invalid_policy');
    });
  }

  it('are more than fifty here, each told in its own words', () => {
    expect(new Set(WRONG.map(([, sentence]) => String(sentence))))
      .to.have.property('size', WRONG.length)
      .above(50);
  });

  it('are told in one error, one problem a line', () => {
    const value = { deadlineMs: -1, modles: {}, models: { a: { retry: { attempts: 'five' }, fallback: ['a'] } } };
    expect(() => parsePolicy(value)).to.throw(
      [
        'the policy has 4 problems:',
        `  deadlineMs: expected ${above0OrOff}, got -1`,
        '  models.a.retry.attempts: expected a whole number of at least 1, got "five"',
        `  modles: expected one of ${top}, got "modles"; did you mean "models"?`,
        '  models.a.fallback[0]: expected another model, got "a"',
      ].join('\n'),
    );
    expect(() => parsePolicy({ deadlineMs: -1 })).to.throw('the policy has 1 problem:\n');
  });

  it('tell nothing of what comes of a setting that is wrong itself', () => {
    const min = { concurrency: { min: 'many', max: 2 } };
    expect(policyProblems(model(min))).to.have.length(1);
    expect(policyProblems(model({ midStream: 'continue', canContinue: 'yes' }))).to.have.length(1);
    expect(policyProblems({ priorities: { order: 'x', y: {} } })).to.have.length(1);
    expect(policyProblems({ maxInFlight: 'ten', tenants: { a: { reservedInFlight: 400 } } })).to.have.length(1);
  });

  it('are told up to a hundred lines', () => {
    const models = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`m${i}`, 5]));
    expect(policyProblems({ models })).to.have.length(150);
    expect(() => parsePolicy({ models })).to.throw(
      /the policy has 150 problems:(\n {2}models\.m\d+: .*){100}\n {2}and 50 more$/,
    );
  });

  it('keep to one line, whatever a name holds', () => {
    const [problem] = policyProblems({ models: { 'a b\nc': 5, default: {} } });
    expect(problem?.message).to.equal('models["a b\\nc"]: expected an object, got 5');
    expect(problem?.path).to.deep.equal(['models', 'a b\nc']);
  });

  it('name the place of a setting that stands at another', () => {
    const placeOf = (value: unknown): unknown => policyProblems(value)[0]?.belongsAt;
    expect(placeOf(model({ requestsPerMinute: 60 }))).to.equal('models.m.quota.requestsPerMinute');
    expect(placeOf(model({ deployments: [{ tokensPerMinute: 60 }] }))).to.equal(
      'models.m.deployments[0].quota.tokensPerMinute',
    );
    expect(placeOf(model({ quota: { fallback: [] } }))).to.equal('models.m.fallback');
    expect(placeOf({ timeouts: {} })).to.equal('models.default.timeouts');
    expect(placeOf({ tenants: { acme: { deadlineMs: 5 } } })).to.equal('deadlineMs');
    expect(placeOf({ tenants: { acme: { constructor: 5 } } })).to.equal(undefined);
    expect(policyProblems(model({ maxInFlight: 5 }))[0]?.message).to.match(
      /, got "maxInFlight"; it belongs at maxInFlight$/,
    );
    // One that is misspelled is where it should be.
    expect(placeOf(model({ retyr: {} }))).to.equal(undefined);
  });

  it('name the clients that there are', () => {
    const value = {
      quota: { clients: { azure: {} } },
      models: { default: { client: 'main' }, m: { deployments: [{ client: 'azrue' }] } },
    };
    const told = (clients: readonly string[]): string[] =>
      policyProblems(value, { clients }).map(({ message }) => message);
    expect(policyProblems(value)).to.deep.equal([]);
    expect(told(['main', 'azure'])).to.deep.equal([
      'models.m.deployments[0].client: expected one of "main", "azure", got "azrue"; did you mean "azure"?',
    ]);
    expect(told([])).to.include('quota.clients.azure: expected a client, and there is none, got "azure"');
    expect(policyProblems({}, { clients: [] })[0]?.at).to.equal('models.default.client');
  });

  it('show no keys, addresses or long texts', () => {
    const secret = 'sk-live-1234567890';
    const values = [
      { gateway: { keys: secret } },
      { gateway: { keys: [{ hash: secret, tenant: secret }, { key: secret }, { [secret]: 1 }, [secret]] } },
      { gateway: { keys: [secret, secret] } },
      { clients: { main: { apiKey: [secret], baseURL: { [secret]: 1 }, headers: { authorization: [secret] } } } },
      { clients: { main: secret } },
      { [secret]: 1 },
      { deadlineMs: secret },
      { store: { url: [secret], onLoss: `redis://user:${secret}@host` } },
      model({ client: [`x${'-'.repeat(50)}${secret}`], midStream: `x${'-'.repeat(50)}${secret}` }),
    ];
    for (const value of values) {
      const problems = policyProblems(value);
      expect(problems).to.not.deep.equal([]);
      expect(JSON.stringify(problems.map(({ message, got }) => [message, got]))).to.not.include(secret);
    }
    expect(policyProblems({ gateway: { keys: secret } })[0]?.got).to.equal('a string of 18 characters');
  });
});
