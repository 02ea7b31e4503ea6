import OpenAI from 'openai';
import { concatMap, defer, identity } from 'rxjs';
import type { Observable } from 'rxjs';
import { isSluiceError } from '../../../lib/core/errors.ts';
import type { SluiceError } from '../../../lib/core/errors.ts';
import type { SluiceEvent } from '../../../lib/core/events.ts';
import type { BreakerPort, ConcurrencyPort, LanesPort, QuotaPort } from '../../../lib/core/ports.ts';
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
import { estimateCost } from '../../../lib/wire/estimate.ts';
import { CaseTime } from './CaseTime.ts';
import type { CountedRuntime } from './CaseTime.ts';
import type { CallsConfig, Step } from './callsCase.ts';
import { ScriptedCalls } from './ScriptedCalls.ts';

/** One call, and how it ended. */
export interface CallFacts {
  readonly id: string;
  readonly step: Step;
  readonly signal: AbortSignal;
  readonly startedAtMs: number;
  settledAtMs: number | undefined;
  result: string | undefined;
  error: SluiceError | undefined;
}

/** How long after its request a call is aborted that a script says is. */
const ABORT_AFTER_MS = 5;

export interface Started extends CallFacts {
  readonly controller: AbortController;
  onSettled: (() => void)[];
}

/** Everything that the calls of a case share, put together by hand from its neutral configuration. */
export class CallsWorld {
  readonly time: CaseTime = new CaseTime();
  readonly runtime: CountedRuntime = this.time.runtime();
  readonly upstream: ScriptedCalls = new ScriptedCalls(this.time);
  readonly calls: Started[] = [];
  readonly quotas: { of(model: string): QuotaPort };
  readonly limit: ConcurrencyPort;
  readonly breakers: { of(model: string): BreakerPort };
  readonly lanes: LanesPort;
  readonly limits: number[] = [];
  /** Calls that are to be aborted when they are granted a slot. */
  readonly abortOnGrant: Set<string> = new Set();
  sharedSignal: AbortSignal | undefined;
  readonly #config: CallsConfig;
  readonly #client: OpenAI;

  constructor(config: CallsConfig) {
    const { runtime } = this;
    this.#config = config;
    this.quotas = createQuotas(quotaOptions(config), runtime);
    this.limit = createConcurrencyLimit(limitOptions(config, this.limits), runtime);
    this.breakers = createBreakers(breakerOptions(config), runtime);
    this.lanes = createLanes({ maxWaiting: Infinity }, runtime);
    this.upstream.onAbort = (id) => {
      const { controller } = this.call(id);
      this.time.runtime().scheduler.schedule(() => controller.abort(), ABORT_AFTER_MS);
    };
    const fetch = this.upstream.fetch as typeof globalThis.fetch;
    this.#client = new OpenAI({ apiKey: 'sk-case', baseURL: 'http://case.invalid/v1', fetch });
  }

  /** Starts one call in this tick. */
  start(step: Step, index = 0): Started {
    const id = step.id ?? String(this.calls.length + 1);
    const controller = new AbortController();
    const call: Started = {
      id,
      step,
      controller,
      signal: this.sharedSignal ?? controller.signal,
      startedAtMs: this.time.nowMs,
      settledAtMs: undefined,
      result: undefined,
      error: undefined,
      onSettled: [],
    };
    this.calls.push(call);
    this.upstream.plan(id, step, index);
    this.#armAborts(call);
    const settle = (result: string): void => {
      call.settledAtMs = this.time.nowMs;
      call.result = result;
      call.onSettled.forEach((tell) => tell());
    };
    this.pipe(step, id, call.signal).subscribe({
      error: (error: unknown) => {
        if (!isSluiceError(error)) throw error;
        call.error = error;
        settle(resultOf(error));
      },
      complete: () => settle('ok'),
    });
    return call;
  }

  /** The pipe of one call, as somebody would write it by hand. */
  pipe(step: Step, id: string, signal?: AbortSignal): Observable<unknown> {
    const { runtime } = this;
    const { policy = {}, default_output_estimate: guess } = this.#config;
    const ask = (model: string): Observable<unknown> => {
      const request = {
        model,
        user: id,
        messages: [{ role: 'user' as const, content: 'x'.repeat(promptBytes(step)) }],
      };
      const asked: Observable<unknown> = step.stream
        ? chat(this.#client, request, { runtime, includeUsage: false })
        : complete(this.#client, request, { runtime });
      const preflight = step.async_preflight_ms;
      const source = preflight === undefined ? asked : after(runtime, preflight).pipe(concatMap(() => asked));
      const guessed = estimateCost(request, guess === undefined ? {} : { defaultOutputTokens: guess });
      const named = step.explicit_tokens;
      const cost =
        named !== undefined
          ? { tokens: named, explicit: true }
          : { tokens: step.estimate ?? (step.prompt_tokens === undefined ? 0 : guessed.tokens), explicit: false };
      return source.pipe(
        throttleByBucket(this.quotas.of(model), { cost, runtime, maxWaitMs: step.wait === false ? 0 : undefined }),
        limitConcurrency(this.limit, { runtime, onEvent: (event) => this.#granted(id, event) }),
        circuitBreak(this.breakers.of(model), { runtime }),
        retryWithJitter({
          attempts: step.max_attempts ?? policy.max_attempts,
          baseMs: step.base_ms ?? policy.base_ms,
          jitter: policy.jitter,
          runtime,
        }),
      );
    };
    const targets = (policy.fallback ?? []).map((target) => (typeof target === 'string' ? target : target.model));
    return defer(() => ask(step.model ?? 'm1')).pipe(
      targets.length > 0 ? fallbackModel(targets, ask, { runtime }) : identity,
      step.conversation === undefined ? identity : inConversation(this.lanes, step.conversation, { runtime }),
      withSignal(signal, { runtime }),
    );
  }

  async settled(calls: readonly CallFacts[]): Promise<void> {
    await this.time.run(() => calls.every(({ settledAtMs }) => settledAtMs !== undefined));
  }

  call(id: string): Started {
    const found = this.calls.find((call) => call.id === id);
    if (found === undefined) throw new Error(`the case has no call ${id}`);
    return found;
  }

  #armAborts({ step, controller }: Started): void {
    const { signal, abort_at_ms: atMs } = step;
    if (signal === 'already_aborted') controller.abort();
    const timeout = /^AbortSignal\.timeout\((\d+)\)$/.exec(signal ?? '')?.[1];
    const afterMs = timeout === undefined ? atMs : Number(timeout);
    if (afterMs === undefined) return;
    const reason = timeout === undefined ? undefined : new DOMException('timed out', 'TimeoutError');
    this.time.runtime().scheduler.schedule(() => controller.abort(reason), afterMs);
  }

  #granted(id: string, event: SluiceEvent): void {
    if (event.type === 'granted' && this.abortOnGrant.has(id)) this.call(id).controller.abort();
  }
}

/** About four bytes a token, less what a message costs besides. */
function promptBytes({ prompt_tokens: tokens = 0 }: Step): number {
  return Math.max(1, (tokens - 7) * 4);
}

function resultOf({ code, source, status }: SluiceError): string {
  if (code === 'aborted' || code === 'circuit_open') return code;
  if (code === 'cost_too_large') return 'rejected request_too_large';
  return source === 'local' ? 'rejected' : String(status ?? code);
}

function quotaOptions(config: CallsConfig): Parameters<typeof createQuotas>[0] {
  const { rate_per_sec: perSecond, burst, min_interval_ms: intervalMs, buckets = {} } = config;
  const requests =
    perSecond !== undefined
      ? { requestsPerMinute: perSecond * 60, burstRequests: burst }
      : intervalMs !== undefined
        ? { requestsPerMinute: 60_000 / intervalMs, burstRequests: 1 }
        : { requestsPerMinute: 6_000_000 };
  const layer = ({ tokens_per_min: tokensPerMinute, burst_tokens: burstTokens }: CallsConfig): object => ({
    ...requests,
    tokensPerMinute,
    burstTokens,
  });
  const models = Object.fromEntries(Object.entries(buckets).map(([model, bucket]) => [model, layer(bucket)]));
  // An interval is from dispatch to dispatch: what happens on the way is not the case's subject.
  const margin = intervalMs === undefined ? {} : { arrivalMarginMs: 0 };
  return { models: { default: layer(config), ...models }, settle: 'usage', ...margin };
}

function limitOptions(
  { concurrency, aimd }: CallsConfig,
  seen: number[],
): Parameters<typeof createConcurrencyLimit>[0] {
  if (aimd === undefined) return concurrency ?? 100_000;
  const { start: initial, ...rest } = aimd;
  return { initial, ...rest, onFact: (fact) => fact.type === 'limit.changed' && seen.push(fact.to) };
}

/** Half-open lets so many probes through as the case says, and no ramp follows: it names none. */
function breakerOptions({ breaker }: CallsConfig): Parameters<typeof createBreakers>[0] {
  return {
    consecutiveFailures: breaker?.failures ?? Infinity,
    errorRatio: breaker?.error_ratio ?? Infinity,
    minCalls: breaker?.min_calls,
    openMs: breaker?.reset_ms,
    halfOpenMaxProbes: breaker?.half_open_max,
    halfOpenShare: breaker?.half_open_max === undefined ? undefined : 1,
    countRateLimited: breaker?.count_429,
    rampMs: 0,
  };
}
