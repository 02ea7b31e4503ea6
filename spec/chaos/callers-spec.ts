import { expect } from 'chai';
import { invariants } from './invariants/invariants.ts';
import type { CallerKind, PlannedCall, WorldName } from './plan/ChaosPlan.ts';
import type { Sabotage } from './sabotage/Sabotage.ts';
import * as everywhere from './sabotage/sabotages.ts';
import * as overHttp from './sabotage/sabotagesOverHttp.ts';
import { notices, planOf, words } from './sabotage/smallPlans.ts';
import type { Part } from './sabotage/smallPlans.ts';

const sabotages: Readonly<Record<string, Sabotage>> = { ...everywhere, ...overHttp };

interface Case extends Omit<Part, 'calls'> {
  /** What is said of all calls. */
  readonly call?: Partial<PlannedCall>;
}

const rates = { requestsPerMinute: 1_200, burstRequests: 2 };
const keeps = { refundOn: { unanswered: 'none', server_error: 'none', overloaded: 'none' } } as const;
const failing: object = { script: [{ kind: 'error', error: 'server_error', times: 'always' }] };
const cut: object = { script: [{ kind: 'cut', after: 3, times: 'always' }] };
const noBreaker = { breaker: { consecutiveFailures: null, errorRatio: null } } as const;
const patient: Case['policy'] = {
  models: { gold: { ...noBreaker, retry: { attempts: 9, baseMs: 30, capMs: 30, jitter: 'none' } } },
  retryBudget: { minPerSecond: 100 },
};
const leaving: Case['call'] = { leaves: { how: 'unsubscribe', afterMs: 40 } };

/** Who is broken how, and in which plan the invariant must notice that it is. */
const both: readonly (readonly [invariant: string, sabotage: string, plan?: Case])[] = [
  [
    'neverAboveQuota',
    'ignoresQuota',
    {
      options: { ...rates, dialect: 'none' },
      policy: { quota: { account: { ...rates, ...keeps } }, models: { gold: { retry: { attempts: 1 } } } },
    },
  ],
  ['tenantsStayWithinTheirRates', 'ignoresTenants', { policy: { tenants: { acme: rates } }, call: { tenant: 'acme' } }],
  ['inFlightStaysWithinLimits', 'ignoresCeilings', { policy: { maxInFlight: 2 } }],
  ['everyGrantIsSettled', 'forgetsToSettle'],
  ['turnsComeInOrder', 'ignoresConversations', { call: { conversation: 'c' } }],
  ['textArrivesOnceAndWhole', 'hearsAChunkTwice'],
  ['textArrivesOnceAndWhole', 'missesAChunk'],
  [
    'attemptsStayWithinTheirNumber',
    'triesForEver',
    {
      options: failing,
      policy: {
        models: { gold: { retry: { attempts: 2, baseMs: 1 }, ...noBreaker } },
        retryBudget: { minPerSecond: 100 },
      },
    },
  ],
  [
    'retriesStayWithinTheBudget',
    'ignoresTheRetryBudget',
    {
      options: failing,
      policy: {
        models: { gold: { retry: { baseMs: 1, capMs: 2 }, ...noBreaker } },
        retryBudget: { ratio: 0.1, minPerSecond: 0.1 },
      },
    },
  ],
  ['nothingStartsAfterTheDeadline', 'ignoresDeadlines', { policy: { quota: { account: rates }, deadlineMs: 60 } }],
  ['nothingHappensAfterTheCallerLeft', 'goesOnWithoutItsCaller', { call: leaving }],
  ['openBreakersSendNothing', 'openBreakersLeak', { options: failing, policy: patient }],
  ['everyCallEndsOnce', 'forgetsTheEnd'],
  ['everySpanEnds', 'forgetsTheEnd'],
  ['aPromptIsNeverTold', 'namesATalkByItsPrompt'],
  ['nothingIsLeft', 'listensForEver'],
];
const cases: Readonly<Record<CallerKind, typeof both>> = {
  call: both,
  fetch: [
    ...both,
    ['textArrivesOnceAndWhole', 'givesAnSdkAChunkTwice'],
    ['textArrivesOnceAndWhole', 'keepsAChunkFromAnSdk'],
    ['textArrivesOnceAndWhole', 'completesWhatIsCut', { options: cut }],
    ['nothingHappensAfterTheCallerLeft', 'doesNotHearAnAbort', { call: leaving }],
    ['everyCallEndsOnce', 'letsAnSdkTryAgain', { options: failing }],
  ],
  gateway: [
    ['textArrivesOnceAndWhole', 'repeatsAFrame'],
    [
      'textArrivesOnceAndWhole',
      'repeatsAFrame',
      { options: { script: [{ kind: 'cut', after: 3 }] }, call: { midStream: 'restart' } },
    ],
    ['textArrivesOnceAndWhole', 'mishearsTheMode', { options: cut, call: { midStream: 'buffer' } }],
    ['nothingHappensAfterTheCallerLeft', 'servesNobody', { options: failing, policy: patient, call: leaving }],
  ],
};

describe('chaos: each invariant can fail for callers of every kind', () => {
  it('has one that is broken for every invariant, and every one that can be broken', () => {
    const names = invariants.map(({ name }) => name);
    expect(names.filter((name) => !both.some(([broken]) => broken === name))).to.deep.equal([]);
    const used = new Set(Object.values(cases).flatMap((some) => some.map(([, sabotage]) => sabotage)));
    expect(Object.keys(overHttp).filter((name) => !used.has(name))).to.deep.equal([]);
  });

  for (const [world, by] of [
    ['virtual', 'call'],
    ['virtual', 'fetch'],
    ['http', 'call'],
    ['http', 'fetch'],
    ['http', 'gateway'],
  ] satisfies [WorldName, CallerKind][]) {
    // Most of the time they wait, so that all are played at once.
    it(`${world === 'http' ? 'over HTTP' : 'in virtual time'}, of those by ${by}`, async () => {
      const played = cases[by].map(async ([name, sabotage, { call, ...part } = {}]) => {
        const calls = planOf({})
          .calls.slice(0, 4)
          .map((one, i) => ({ ...one, by, ...call, atMs: i * 5 }));
        try {
          await notices(name, sabotages[sabotage] as Sabotage, planOf({ world, calls, ...part }));
        } catch (error) {
          return `${name} and one that ${words(sabotage)}: ${String(error)}`;
        }
        return undefined;
      });
      expect((await Promise.all(played)).filter((failure) => failure !== undefined)).to.deep.equal([]);
    }).timeout(60_000);
  }
});
