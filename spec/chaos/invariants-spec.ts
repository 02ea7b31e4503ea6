import { expect } from 'chai';
import { invariants } from './invariants/invariants.ts';
import type { ChaosPlan, PlannedCall } from './plan/ChaosPlan.ts';
import { runPlan } from './run/runPlan.ts';
import type { Sabotage } from './sabotage/Sabotage.ts';
import * as sabotages from './sabotage/sabotages.ts';

const call: PlannedCall = { atMs: 0, api: 'chat', model: 'gold', words: 2, outputLimit: 50 };
const provider = { tokens: 8, firstTokenMs: 50, tokenMs: 5 };

/** Twelve calls in two seconds to a provider without limits or faults, but for what is named. */
function planOf({ options, policy, ...changes }: Part): ChaosPlan {
  return {
    seed: 1,
    world: 'virtual',
    policy: { quota: {}, models: { gold: {} }, ...policy },
    providers: { main: { networkMs: [5, 5], options: { ...provider, ...options } } },
    calls: calls({}),
    shocks: [],
    ...changes,
  };
}

interface Part extends Partial<Omit<ChaosPlan, 'policy' | 'providers'>> {
  readonly policy?: ChaosPlan['policy'];
  readonly options?: object;
}

function calls(changes: Partial<PlannedCall>, count = 12): PlannedCall[] {
  return Array.from({ length: count }, (_, i) => ({ ...call, atMs: i * 150, ...changes }));
}

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

/** Over real HTTP, with clients of a gateway: most of the time they wait, so that all are played at once. */
const throughGateway: typeof cases = [
  ['textArrivesOnceAndWhole', 'repeatsAFrame', {}],
  [
    'nothingHappensAfterTheCallerLeft',
    'servesNobody',
    {
      options: { script: [{ kind: 'error', error: 'server_error', times: 'always' }] },
      policy: {
        models: {
          gold: {
            retry: { attempts: 9, baseMs: 100, capMs: 100, jitter: 'none' },
            breaker: { consecutiveFailures: null, errorRatio: null },
          },
        },
        retryBudget: { minPerSecond: 100 },
      },
      calls: calls({ by: 'gateway', leaves: { how: 'unsubscribe', afterMs: 60 } }, 3),
    },
  ],
];

describe('chaos: each invariant can fail', () => {
  it('has a client that breaks it for every one', () => {
    const broken = new Set(cases.map(([name]) => name));
    expect(invariants.map(({ name }) => name).filter((name) => !broken.has(name))).to.deep.equal([]);
    const used = new Set<string>([...cases, ...throughGateway].map(([, name]) => name));
    expect(Object.keys(sabotages).filter((name) => !used.has(name))).to.deep.equal([]);
  });

  async function notices(name: string, sabotage: keyof typeof sabotages, plan: ChaosPlan): Promise<void> {
    const [invariant] = invariants.filter((one) => one.name === name);
    expect(invariant?.promise).to.be.a('string');
    const watching = { invariants: invariant ? [invariant] : [] };
    const { violations: none } = await runPlan(plan, watching);
    expect(none).to.deep.equal([]);
    const { violations } = await runPlan(plan, { ...watching, sabotage: sabotages[sabotage] as Sabotage });
    expect(violations).to.not.have.length(0);
    expect(violations[0]?.invariant).to.equal(name);
  }

  for (const [name, sabotage, part] of cases) {
    it(`${name} notices a client that ${words(sabotage)}, and no other`, () => notices(name, sabotage, planOf(part)));
  }

  it('notices a gateway that repeats a frame, or serves one that has gone, and no other', async () => {
    const played = throughGateway.map(([name, sabotage, part]) =>
      notices(name, sabotage, planOf({ world: 'http', calls: calls({ by: 'gateway' }, 3), ...part })),
    );
    for (const one of await Promise.allSettled(played)) if (one.status === 'rejected') throw one.reason;
  }).timeout(60_000);
});

function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
