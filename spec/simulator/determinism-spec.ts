import { expect } from 'chai';
import { simulate } from '../../lib/simulator/index.ts';
import type { Scenario, StrategyInput } from '../../lib/simulator/index.ts';

const STRATEGIES: readonly StrategyInput[] = [
  { kind: 'bare' },
  { kind: 'sdk', retries: 2 },
  { kind: 'fixed' },
  { kind: 'backoff' },
  { kind: 'backoff', jitter: 'full', heedHints: true, fallback: 'small' },
  {
    kind: 'recipe',
    conversations: true,
    fallback: ['small'],
    retry: { attempts: 3, jitter: 'full', hints: 'floor' },
    breaker: { failures: 5 },
    buckets: { account: { requestsPerMinute: 900, burstRequests: 10 } },
    inFlight: { initial: 16, min: 4, max: 64, decrease: 0.7, growEveryMs: 1_000 },
  },
  { kind: 'sluice' },
];

/** Something of everything that is drawn. */
const scenario = (seed: number, strategy: StrategyInput): Scenario => ({
  name: 'all that is drawn',
  seed,
  forMs: 20_000,
  load: [
    {
      arrivals: { kind: 'poisson', perMinute: 900 },
      model: 'big',
      promptTokens: { median: 200, sigma: 0.7 },
      conversations: { share: 0.4, count: 9 },
      leavesAfterMs: { median: 4_000, sigma: 1 },
    },
    { arrivals: { kind: 'workers', workers: 5, thinkMs: { median: 300, sigma: 0.5 } }, model: 'small', tenant: 'acme' },
  ],
  upstreams: {
    main: {
      requestsPerMinute: 900,
      burstRequests: 10,
      firstTokenMs: { median: 250, sigma: 0.4 },
      tokens: { median: 50, sigma: 0.5 },
      randomFaults: [{ kind: 'error', error: 'server_error', probability: 0.03 }],
    },
  },
  networkMs: { median: 15, sigma: 0.5 },
  policy: {
    quota: { account: { requestsPerMinute: 900, burstRequests: 10 } },
    models: { default: { price: { inputPerMTok: 1, outputPerMTok: 4 } }, big: { fallback: ['small'] } },
  },
  strategies: [strategy],
});

describe('a simulation', () => {
  for (const strategy of STRATEGIES) {
    it(`gives the same to the last digit for the same seed, and something else for another: ${JSON.stringify(strategy)}`, () => {
      const [first, again, other] = [5, 5, 6].map((seed) => simulate(scenario(seed, strategy)));
      expect(JSON.stringify(again)).to.equal(JSON.stringify(first));
      expect(JSON.stringify(other!.strategies)).to.not.equal(JSON.stringify(first!.strategies));
      expect(JSON.stringify(other!.best)).to.not.equal(JSON.stringify(first!.best));
      expect(first!.strategies[0]!.calls).to.be.above(200);
    });
  }
});
