import type { CallOptions, PolicyInput } from '../../../lib/index.ts';

const MUCH = 1e9;
const rates = { requestsPerMinute: MUCH, burstRequests: MUCH, tokensPerMinute: MUCH * 1_000 };

/** Every part of a policy at work, and none that makes a call wait. */
export const fullPolicy: PolicyInput = {
  deadlineMs: 60_000,
  maxInFlight: 10_000,
  quota: { account: { ...rates, settle: 'usage' } },
  models: {
    default: {},
    'gpt-5.5': {
      quota: rates,
      retry: { attempts: 5, baseMs: 250, capMs: 8_000 },
      breaker: { consecutiveFailures: 5, errorRatio: 0.25, windowMs: 30_000, minCalls: 10 },
      concurrency: { initial: 1_000, min: 1_000, max: 1_000 },
      fallback: ['deepseek-v3.2'],
      fallbackOn: { context_too_long: ['gpt-5.5-long'] },
      price: { inputPerMTok: 2.5, outputPerMTok: 10 },
      timeouts: { headersMs: 10_000, firstContentMs: 30_000, idleMs: 30_000 },
    },
  },
  tenants: { default: { maxInFlight: 1_000 }, acme: { ...rates, maxInFlight: 1_000, reservedInFlight: 20 } },
  priorities: { order: ['interactive', 'batch'], batch: { maxInFlight: 15 } },
  retryBudget: { ratio: 0.2, minPerSecond: 1 },
  conversations: { maxWaiting: 20, maxWaitMs: 60_000, header: 'x-conversation' },
  spend: { perTenantPerDay: { default: MUCH } },
};

/** With these, every part of {@link fullPolicy} has to do with the call. */
export const fullOptions: CallOptions = { conversation: 'c-17', tenant: 'acme', priority: 'interactive' };

const messages: { role: 'user'; content: string }[] = [{ role: 'user', content: 'Say hello.' }];

export const request: { model: string; messages: typeof messages } = { model: 'gpt-5.5', messages };
