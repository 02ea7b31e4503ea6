import type { Load, Scenario, StrategyInput, Upstream } from '../../../lib/simulator/index.ts';

export interface FidelityCase {
  readonly name: string;
  readonly scenario: Scenario;
}

const quota = { requestsPerMinute: 1800, burstRequests: 30 };
const answers: Upstream = {
  firstTokenMs: { median: 300, sigma: 0.35, max: 2_000 },
  tokenMs: 6,
  tokens: { median: 40, sigma: 0.5, max: 120 },
};
const load = (changes: Partial<Load>): Load => ({
  arrivals: { kind: 'poisson', perMinute: 1620 },
  model: 'm',
  promptTokens: { median: 200, sigma: 0.6, max: 2_000 },
  outputLimit: 150,
  ...changes,
});
interface Changes {
  readonly load?: Partial<Load>;
  readonly upstream?: Partial<Upstream>;
  readonly policy?: Scenario['policy'];
}

function caseOf(name: string, forMs: number, { load: loads = {}, upstream = {}, policy = {} }: Changes): FidelityCase {
  const provider = { ...answers, ...quota, ...upstream };
  const { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens } = provider;
  const account = { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens };
  return {
    name,
    scenario: {
      name,
      seed: 11,
      forMs,
      load: [load(loads)],
      upstreams: { main: provider },
      policy: { deadlineMs: 8_000, quota: { account }, ...policy },
    },
  };
}

/** Each of them makes another part of the model count. */
export function fidelityCases(forMs: number): readonly FidelityCase[] {
  return [
    caseOf('within the quota', forMs, {}),
    caseOf('4/3 of the quota', forMs, { load: { arrivals: { kind: 'poisson', perMinute: 2400 } } }),
    caseOf('bursts of 80', forMs, {
      load: { arrivals: { kind: 'bursts', size: 80, everyMs: 5_000 } },
      upstream: { requestsPerMinute: 1200, burstRequests: 20 },
    }),
    caseOf('25 workers', forMs, {
      load: { arrivals: { kind: 'workers', workers: 25, thinkMs: { median: 300, sigma: 0.5, max: 2_000 } } },
    }),
    caseOf('faults and an outage', forMs, {
      load: { arrivals: { kind: 'poisson', perMinute: 1200 } },
      upstream: {
        randomFaults: [
          { kind: 'error', error: 'server_error', probability: 0.06 },
          { kind: 'reset', after: 'headers', probability: 0.03 },
          { kind: 'cut', after: 5, probability: 0.02 },
          { kind: 'error', error: 'slow_down', probability: 0.03 },
        ],
        outages: [{ kind: 'error', error: 'overloaded', fromMs: 0.3 * forMs, toMs: 0.4 * forMs }],
      },
    }),
    caseOf('another user takes 40 % of the quota', forMs, { upstream: { noiseShare: 0.4 } }),
    caseOf('a quota of tokens, long answers', forMs, {
      load: { arrivals: { kind: 'poisson', perMinute: 900 }, outputLimit: 800 },
      upstream: {
        requestsPerMinute: 6_000,
        burstRequests: 100,
        tokensPerMinute: 700_000,
        burstTokens: 30_000,
        tokens: { median: 300, sigma: 0.5, max: 800 },
        tokenMs: 3,
      },
    }),
    caseOf('conversations, and users that leave', forMs, {
      load: {
        arrivals: { kind: 'poisson', perMinute: 1400 },
        conversations: { share: 0.5, count: 25 },
        leavesAfterMs: { median: 1_500, sigma: 0.7 },
      },
    }),
    caseOf('half of the quota from the middle on', forMs, {
      load: { arrivals: { kind: 'poisson', perMinute: 1200 } },
      upstream: { changes: [{ atMs: forMs / 2, account: { requestsPerMinute: 900, burstRequests: 15 } }] },
    }),
  ];
}

export const FIDELITY_STRATEGIES: readonly StrategyInput[] = [
  { kind: 'bare' },
  { kind: 'backoff' },
  { kind: 'sluice' },
];
