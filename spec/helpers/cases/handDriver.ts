import { concatMap, defer, identity } from 'rxjs';
import type { Observable } from 'rxjs';
import { after } from '../../../lib/operators/after.ts';
import { circuitBreak } from '../../../lib/operators/circuitBreak.ts';
import { createBreakers } from '../../../lib/operators/createBreaker.ts';
import { createConcurrencyLimit } from '../../../lib/operators/createConcurrencyLimit.ts';
import { createLanes } from '../../../lib/operators/createLanes.ts';
import { createQuotas } from '../../../lib/operators/createQuotas.ts';
import { fallbackModel } from '../../../lib/operators/fallbackModel.ts';
import { inConversation } from '../../../lib/operators/inConversation.ts';
import { limitConcurrency } from '../../../lib/operators/limitConcurrency.ts';
import { retryWithJitter } from '../../../lib/operators/retryWithJitter.ts';
import { throttleByBucket } from '../../../lib/operators/throttleByBucket.ts';
import { withSignal } from '../../../lib/operators/withSignal.ts';
import { chat } from '../../../lib/sources/chat.ts';
import { complete } from '../../../lib/sources/complete.ts';
import { fromCall } from '../../../lib/sources/fromCall.ts';
import type { CallsConfig } from './callsCase.ts';
import { breakerSettings, costOf, requestRates } from './CallsDriver.ts';
import type { MakeDriver } from './CallsDriver.ts';

/** The pipe of each call, as somebody would write it by hand. */
export const handDriver: MakeDriver = ({ config = {} }, client, runtime) => {
  const limits: number[] = [];
  const quotas = createQuotas(quotaOptions(config), runtime);
  const limit = createConcurrencyLimit(limitOptions(config, limits), runtime);
  const breakers = createBreakers(breakerSettings(config), runtime);
  const lanes = createLanes({ maxWaiting: Infinity }, runtime);
  // Ports by key are made when first used.
  breakers.of('m1').snapshot();

  return {
    limits,
    call(step, request, { signal, onEvent }) {
      const { policy = {} } = config;
      const ask = (model: string): Observable<unknown> => {
        const asked: Observable<unknown> = step.stream
          ? chat(client, { ...request, model }, { runtime, includeUsage: false })
          : complete(client, { ...request, model }, { runtime });
        const preflight = step.async_preflight_ms;
        const source = preflight === undefined ? asked : after(runtime, preflight).pipe(concatMap(() => asked));
        return source.pipe(
          throttleByBucket(quotas.of(model), {
            cost: costOf(config, step, request),
            runtime,
            maxWaitMs: step.wait === false ? 0 : undefined,
          }),
          limitConcurrency(limit, { runtime, onEvent, maxWaitMs: step.wait === false ? 0 : undefined }),
          circuitBreak(breakers.of(model), { runtime }),
          retryWithJitter({
            attempts: step.max_attempts ?? policy.max_attempts,
            baseMs: step.base_ms ?? policy.base_ms,
            jitter: policy.jitter,
            runtime,
          }),
        );
      };
      const targets = (policy.fallback ?? []).map((target) => (typeof target === 'string' ? target : target.model));
      return defer(() => ask(request.model)).pipe(
        targets.length > 0 ? fallbackModel(targets, ask, { runtime }) : identity,
        step.conversation === undefined ? identity : inConversation(lanes, step.conversation, { runtime }),
        withSignal(signal, { runtime }),
      );
    },
    turn: (conversation) => fromCall(() => Promise.resolve('ok')).pipe(inConversation(lanes, conversation)),
    breakerOf: (model) => breakers.of(model).snapshot().state,
    isPaused: (model) => quotas.of(model).snapshot().cooldownMs > 0,
    tokensLeft: (model) => quotas.of(model).snapshot().layers[0]?.tokens?.level,
    slots: () => limit.snapshot(),
    lanes: () => lanes.snapshot(),
  };
};

function quotaOptions(config: CallsConfig): Parameters<typeof createQuotas>[0] {
  const rates = requestRates(config);
  const requests = rates.requestsPerMinute === undefined ? { requestsPerMinute: 6_000_000 } : rates;
  const layer = ({ tokens_per_min: tokensPerMinute, burst_tokens: burstTokens }: CallsConfig): object => ({
    ...requests,
    tokensPerMinute,
    burstTokens,
  });
  const models = Object.entries(config.buckets ?? {}).map(([model, bucket]) => [model, layer(bucket)] as const);
  // An interval is from dispatch to dispatch: what happens on the way is not the case's subject.
  const margin = config.min_interval_ms === undefined ? {} : { arrivalMarginMs: 0 };
  return { models: { default: layer(config), ...Object.fromEntries(models) }, settle: 'usage', ...margin };
}

function limitOptions(
  { concurrency, aimd }: CallsConfig,
  seen: number[],
): Parameters<typeof createConcurrencyLimit>[0] {
  if (aimd === undefined) return concurrency ?? 100_000;
  const { start: initial, ...rest } = aimd;
  return { initial, ...rest, onFact: (fact) => fact.type === 'limit.changed' && seen.push(fact.to) };
}
