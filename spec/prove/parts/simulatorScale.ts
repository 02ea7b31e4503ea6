import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Scenario } from '../../../lib/simulator/index.ts';

/** Two million calls a day. */
const PER_MINUTE = 2_000_000 / 1_440;
/** Of the mean load. At the peak the load is just below the quota. */
const QUOTA = 1.15;
const PEAK = 1.1;

const quota = {
  requestsPerMinute: PER_MINUTE * QUOTA,
  burstRequests: 30,
  tokensPerMinute: PER_MINUTE * QUOTA * 1_000,
};

/** So many calls at the rate of two million a day, with all that a policy can ask for, and the swing of a day. */
export function scaleScenario(calls: number): Scenario {
  const forMs = (calls / PER_MINUTE) * 60_000;
  const daily = (share: number) =>
    ({ kind: 'daily', perMinute: share * PER_MINUTE, peak: PEAK, periodMs: forMs }) as const;
  return {
    name: `${calls} calls`,
    forMs,
    load: [
      {
        arrivals: daily(0.7),
        model: 'main-model',
        tenant: 'acme',
        promptTokens: { median: 400, sigma: 0.8, max: 8_000 },
        outputLimit: 300,
        conversations: { share: 0.5, count: 2_000 },
      },
      { arrivals: daily(0.3), model: 'main-model', tenant: 'nightly', priority: 'batch', outputLimit: 300 },
    ],
    upstreams: {
      main: {
        ...quota,
        firstTokenMs: { median: 320, sigma: 0.35, max: 2_000 },
        tokenMs: 12,
        tokens: { median: 120, sigma: 0.6, max: 300 },
        randomFaults: [{ kind: 'error', error: 'server_error', probability: 0.002 }],
      },
      other: { firstTokenMs: 400, tokenMs: 15, tokens: 120 },
    },
    networkMs: { median: 15, sigma: 0.4, max: 80 },
    policy: {
      deadlineMs: 60_000,
      maxInFlight: 1_000,
      quota: { account: quota, clients: { other: {} } },
      models: {
        'main-model': {
          client: 'main',
          retry: { attempts: 4 },
          breaker: { errorRatio: 0.25 },
          concurrency: { initial: 100, min: 10, max: 400 },
          fallback: ['other-model'],
          price: { inputPerMTok: 2.5, outputPerMTok: 10 },
          timeouts: { headersMs: 10_000, firstContentMs: 30_000, idleMs: 30_000 },
        },
        'other-model': { client: 'other', price: { inputPerMTok: 0.5, outputPerMTok: 2 } },
      },
      tenants: { default: {}, acme: { weight: 2 }, nightly: { maxInFlight: 200 } },
      priorities: { order: ['interactive', 'batch'], batch: { maxInFlight: 100 } },
      retryBudget: { ratio: 0.2, minPerSecond: 1 },
      spend: { perTenantPerDay: { default: 1_000_000 } },
    },
    strategies: [{ kind: 'sluice' }],
  };
}

export interface ScaleResult {
  readonly results: readonly {
    readonly name: string;
    readonly calls: number;
    readonly answered: number;
    readonly attempts: number;
    readonly rateLimited: number;
    readonly p95Ms: number;
    readonly cpuSeconds: number;
  }[];
  /** Of the whole process, at its highest. */
  readonly peakBytes: number;
}

const program = fileURLToPath(new URL('simulatorScaleChild.ts', import.meta.url));

/** In a process of its own. */
export async function simulateApart(calls: number, progress: (text: string) => void): Promise<ScaleResult> {
  const child = fork(program, [String(calls)], { execArgv: [] });
  let result: ScaleResult | undefined;
  child.on('message', (message: { readonly progress?: string; readonly result?: ScaleResult }) => {
    if (message.progress !== undefined) progress(message.progress);
    result = message.result ?? result;
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (result === undefined) throw new Error(`the simulation ended with exit code ${String(code)}`);
  return result;
}
