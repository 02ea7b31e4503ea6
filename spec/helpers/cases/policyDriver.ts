import type OpenAI from 'openai';
import { defer } from 'rxjs';
import { createSluice } from '../../../lib/client/createSluice.ts';
import type { CallOptions } from '../../../lib/client/CallOptions.ts';
import { CallScope } from '../../../lib/core/CallScope.ts';
import type { DeploymentSnapshot } from '../../../lib/core/ports.ts';
import { scoped } from '../../../lib/operators/scoped.ts';
import type { PolicyInput } from '../../../lib/policy/PolicyInput.ts';
import type { CallsInput, Step } from './callsCase.ts';
import { breakerSettings, costOf, requestRates } from './CallsDriver.ts';
import type { MakeDriver } from './CallsDriver.ts';
import type { CountedRuntime } from './CaseTime.ts';

/** What only the case itself knows of a call, by its `user`, on its way out. */
type Preflights = Map<string, number>;

/** All calls through one `createSluice`, whose policy says what the case configures. */
export const policyDriver: MakeDriver = (input, client, runtime) => {
  const { config = {}, steps } = input;
  const limits: number[] = [];
  const preflights: Preflights = new Map();
  const sluice = createSluice(waiting(client, preflights, runtime), policyOf(input), { runtime });
  sluice.events$.subscribe((event) => event.type === 'limit.changed' && limits.push(event.to));
  const deploymentOf = (model: string): DeploymentSnapshot | undefined =>
    sluice.snapshot().admission.models[model]?.deployments[0];
  const priorities = prioritiesOf(steps);
  let drained = config.bucket_now === undefined;

  return {
    limits,
    call(step, request, { signal, onEvent }) {
      const options: CallOptions = {
        conversation: step.conversation,
        signal,
        priority: priorities.length > 0 ? `p${step.priority ?? priorities[0]}` : undefined,
        attempts: step.max_attempts,
        cost: costOf(config, step, request),
      };
      if (step.async_preflight_ms !== undefined) preflights.set(String(request.user), step.async_preflight_ms);
      const call$ = defer(() => {
        if (!drained) {
          drained = true;
          const cost = { tokens: (config.tokens_per_min ?? 0) - (config.bucket_now ?? 0) };
          sluice.call(request.model, () => Promise.resolve({ usage: usageOf(cost.tokens) }), { cost }).subscribe();
        }
        return step.stream ? sluice.chat(request, { ...options, restarts: false }) : sluice.complete(request, options);
      });
      return defer(() => scoped(call$, CallScope.start(runtime, { onEvent }), undefined));
    },
    turn: (conversation) => sluice.call('m1', () => Promise.resolve('ok'), { conversation }),
    breakerOf: (model) => deploymentOf(model)?.breaker.state ?? 'closed',
    isPaused: (model) => (deploymentOf(model)?.cooldownMs ?? 0) > 0,
    tokensLeft: (model) => deploymentOf(model)?.layers.find(({ tokens }) => tokens !== undefined)?.tokens?.level,
    slots: () => ({ ...sluice.snapshot().admission, limit: deploymentOf('m1')?.limit ?? Infinity }),
    lanes: () => sluice.snapshot().conversations,
  };
};

const orNull = (bound: number): number | null => (bound === Infinity ? null : bound);

const usageOf = (tokens: number): object => ({
  prompt_tokens: tokens - 1,
  completion_tokens: 1,
  total_tokens: tokens,
});

function policyOf({ config = {}, steps }: CallsInput): PolicyInput {
  const { policy = {}, tokens_per_min: tokensPerMinute, burst_tokens: burstTokens, buckets = {}, aimd } = config;
  const { consecutiveFailures, errorRatio, ...breaker } = breakerSettings(config);
  const [{ base_ms: baseMs } = {}] = steps.filter(({ base_ms: ms }) => ms !== undefined);
  const { start: initial, ...rest } = aimd ?? { start: 1 };
  const quota = (bucket: typeof config): object => ({
    ...requestRates(config),
    tokensPerMinute: bucket.tokens_per_min,
    burstTokens: bucket.burst_tokens,
  });
  const models = Object.keys(buckets).map((model) => [model, { quota: quota(buckets[model] ?? {}) }] as const);
  const fallback = (policy.fallback ?? []).map((target) => (typeof target === 'string' ? target : target.model));
  return {
    deadlineMs: null,
    maxInFlight: config.concurrency ?? null,
    conversations: { maxWaiting: null, maxWaitMs: null },
    // A case that says nothing of a budget has none.
    retryBudget: { ratio: 1, minPerSecond: 1_000 },
    quota: {
      account: {
        settle: 'usage',
        // An interval is from dispatch to dispatch: what happens on the way is not the case's subject.
        arrivalMarginMs: config.min_interval_ms === undefined ? undefined : 0,
        maxWaitMs: steps.some(({ wait }) => wait === false) ? 0 : null,
      },
    },
    priorities: prioritiesOf(steps).length > 0 ? { order: prioritiesOf(steps).map((level) => `p${level}`) } : undefined,
    models: {
      default: {
        quota: { ...requestRates(config), tokensPerMinute, burstTokens },
        retry: { attempts: policy.max_attempts, baseMs: baseMs ?? policy.base_ms, jitter: policy.jitter },
        breaker: { ...breaker, consecutiveFailures: orNull(consecutiveFailures), errorRatio: orNull(errorRatio) },
        concurrency: aimd === undefined ? undefined : { initial, ...rest },
        fallback: fallback.length > 0 ? fallback : undefined,
      },
      ...Object.fromEntries(models),
      ...Object.fromEntries(fallback.map((model) => [model, { ...Object.fromEntries(models)[model], fallback: [] }])),
    },
  };
}

/** The numbers of a case, the most urgent first. */
function prioritiesOf(steps: readonly Step[]): number[] {
  return [...new Set(steps.flatMap(({ priority }) => (priority === undefined ? [] : [priority])))].sort(
    (a, b) => a - b,
  );
}

/** The same client; what a call has to do before its request goes out is done by its `fetch`. */
function waiting(client: OpenAI, preflights: Preflights, runtime: CountedRuntime): OpenAI {
  const { fetch } = client as unknown as { readonly fetch: typeof globalThis.fetch };
  return client.withOptions({
    fetch: async (input, init) => {
      const { user } = JSON.parse(init?.body as string) as { readonly user?: string };
      const waitMs = preflights.get(String(user));
      if (waitMs !== undefined) {
        await new Promise<void>((resolve) => runtime.scheduler.schedule(() => resolve(), waitMs));
      }
      return fetch(input, init);
    },
  });
}
