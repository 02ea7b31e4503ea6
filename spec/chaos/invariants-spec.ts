import { expect } from 'chai';
import { invariants } from './invariants/invariants.ts';
import { calls, notices, planOf, words } from './sabotage/smallPlans.ts';
import type { Part } from './sabotage/smallPlans.ts';
import * as sabotages from './sabotage/sabotages.ts';

const rates = { requestsPerMinute: 60, burstRequests: 2 };
const failing: object = { script: [{ kind: 'error', error: 'server_error', times: 'always' }] };
const keeps = { refundOn: { unanswered: 'none', server_error: 'none', overloaded: 'none' } } as const;

/** Who is broken how, and in which plan the invariant must notice. */
const cases: readonly (readonly [invariant: string, sabotage: keyof typeof sabotages, part: Part])[] = [
  [
    'neverAboveQuota',
    'ignoresQuota',
    {
      options: { ...rates, dialect: 'none' },
      policy: { quota: { account: { ...rates, ...keeps } } },
      calls: calls({ atMs: 0 }),
    },
  ],
  [
    'tenantsStayWithinTheirRates',
    'ignoresTenants',
    { policy: { tenants: { acme: rates } }, calls: calls({ tenant: 'acme' }) },
  ],
  ['inFlightStaysWithinLimits', 'ignoresCeilings', { policy: { maxInFlight: 2 }, calls: calls({ atMs: 0 }) }],
  [
    'inFlightStaysWithinLimits',
    'ignoresTenants',
    { policy: { tenants: { acme: { maxInFlight: 1 } } }, calls: calls({ atMs: 0, tenant: 'acme' }) },
  ],
  ['everyGrantIsSettled', 'forgetsToSettle', {}],
  ['turnsComeInOrder', 'ignoresConversations', { calls: calls({ atMs: 0, conversation: 'c' }) }],
  ['textArrivesOnceAndWhole', 'repeatsAChunk', {}],
  ['textArrivesOnceAndWhole', 'losesAChunk', {}],
  ['textArrivesOnceAndWhole', 'takesPartsForAnswers', { options: { script: [{ kind: 'cut', after: 3 }] } }],
  [
    'attemptsStayWithinTheirNumber',
    'triesForEver',
    { options: failing, policy: { models: { gold: { retry: { attempts: 2 } } }, retryBudget: { minPerSecond: 100 } } },
  ],
  [
    'retriesStayWithinTheBudget',
    'ignoresTheRetryBudget',
    {
      options: failing,
      policy: {
        models: { gold: { breaker: { consecutiveFailures: null, errorRatio: null } } },
        retryBudget: { ratio: 0.1, minPerSecond: 0.1 },
      },
    },
  ],
  ['nothingStartsAfterTheDeadline', 'ignoresDeadlines', { policy: { quota: { account: rates }, deadlineMs: 2_000 } }],
  [
    'nothingHappensAfterTheCallerLeft',
    'goesOnWithoutItsCaller',
    { calls: calls({ leaves: { how: 'unsubscribe', afterMs: 60 } }) },
  ],
  ['openBreakersSendNothing', 'openBreakersLeak', { options: failing }],
  ['everyCallEndsOnce', 'losesTimers', { options: { script: [{ kind: 'stall', after: 2, times: 'always' }] } }],
  ['everyCallEndsOnce', 'forgetsTheEnd', {}],
  ['everySpanEnds', 'forgetsTheEnd', {}],
  ['aPromptIsNeverTold', 'saysWhatWasAsked', {}],
  ['nothingIsLeft', 'leavesTimers', { policy: { deadlineMs: 60_000 } }],
  ['nothingIsLeft', 'leaksPermits', {}],
];

describe('chaos: each invariant can fail', () => {
  it('has a client that breaks it for every one', () => {
    const broken = new Set(cases.map(([name]) => name));
    expect(invariants.map(({ name }) => name).filter((name) => !broken.has(name))).to.deep.equal([]);
    const used = new Set<string>(cases.map(([, name]) => name));
    expect(Object.keys(sabotages).filter((name) => !used.has(name))).to.deep.equal([]);
  });

  for (const [name, sabotage, part] of cases) {
    it(`${name} notices a client that ${words(sabotage)}, and no other`, () =>
      notices(name, sabotages[sabotage], planOf(part)));
  }
});
