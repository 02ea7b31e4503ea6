import type OpenAI from 'openai';
import { concatAll, identity, toArray } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import type { ErrorCode } from '../../../lib/core/errors.ts';
import type { SluiceEvent } from '../../../lib/core/events.ts';
import type { BreakerPort, ConcurrencyPort, QuotaPort } from '../../../lib/core/ports.ts';
import { adaptParams } from '../../../lib/operators/adaptParams.ts';
import { circuitBreak } from '../../../lib/operators/circuitBreak.ts';
import { createBreakers } from '../../../lib/operators/createBreaker.ts';
import { createConcurrencyLimit } from '../../../lib/operators/createConcurrencyLimit.ts';
import { createQuotas } from '../../../lib/operators/createQuotas.ts';
import { fallbackModel } from '../../../lib/operators/fallbackModel.ts';
import { limitConcurrency } from '../../../lib/operators/limitConcurrency.ts';
import { retryWithJitter } from '../../../lib/operators/retryWithJitter.ts';
import { throttleByBucket } from '../../../lib/operators/throttleByBucket.ts';
import { withDeadline } from '../../../lib/operators/withDeadline.ts';
import { withSignal } from '../../../lib/operators/withSignal.ts';
import type { AttemptOptions, ClassifyFailure } from '../../../lib/sources/AttemptOptions.ts';
import { chat } from '../../../lib/sources/chat.ts';
import { complete } from '../../../lib/sources/complete.ts';
import { respond } from '../../../lib/sources/respond.ts';
import type { AnswerPart } from '../../../lib/operators/answerPart.ts';
import type { CountedRuntime } from './CaseTime.ts';
import type { FallbackTarget, NeutralPolicy, UpstreamInput } from './upstreamCase.ts';

export type Api = 'chat' | 'responses';

export interface Gates {
  readonly quotas: { of(model: string): QuotaPort };
  readonly limit: ConcurrencyPort;
  readonly breakers: { of(model: string): BreakerPort };
}

export interface ByHandOptions {
  readonly input: UpstreamInput;
  readonly api: Api;
  readonly client: OpenAI;
  readonly runtime: CountedRuntime;
  readonly signal: AbortSignal;
  readonly classify: ClassifyFailure | undefined;
  readonly onEvent: (event: SluiceEvent) => void;
}

/** Wide enough to be in nobody's way, unless the case says otherwise. The breaker only counts. */
export function gatesOf({ config }: UpstreamInput, runtime: CountedRuntime): Gates {
  const wide = { requestsPerMinute: 600_000, tokensPerMinute: 10_000_000 };
  const rate = config?.rate_per_min;
  const quotas = createQuotas(
    { models: { default: rate === undefined ? wide : { requestsPerMinute: rate } } },
    runtime,
  );
  if (config?.bucket_now === 0)
    quotas
      .of('m1')
      .acquire({ cost: { requests: 1, tokens: 0, explicit: true } })
      .subscribe();
  return {
    quotas,
    limit: createConcurrencyLimit(100, runtime),
    breakers: createBreakers({ consecutiveFailures: Infinity, errorRatio: Infinity }, runtime),
  };
}

/** What somebody would write who knows the operators and no policy. */
export function byHand(options: ByHandOptions, gates: Gates): Observable<AnswerPart> {
  const { input, runtime, signal, onEvent } = options;
  const policy = policyOf(input);
  const targets = (policy.fallback ?? []).map((target) => (typeof target === 'string' ? { model: target } : target));
  const request = requestOf(input);
  const ask = askOf(options, gates, policy, targets);
  const chained = targets.length > 0 && input.call_options?.fallback !== false;
  return ask(String(request['model'])).pipe(
    chained
      ? fallbackModel(
          targets.map(({ model }) => model),
          ask,
          {
            onlyOn: policy.fallback_on?.flatMap(codesOfStatus),
            promptTokens: Number(input.request?.['estimated_prompt_tokens'] ?? 0),
            maxPromptTokens: Object.fromEntries(
              targets.flatMap(({ model, max_prompt_tokens: most }) => (most === undefined ? [] : [[model, most]])),
            ),
            onEvent,
            runtime,
          },
        )
      : identity,
    policy.deadline_ms === undefined ? identity : withDeadline(policy.deadline_ms, { runtime }),
    withSignal(signal),
  );
}

function askOf(
  { input, api, client, runtime, classify, onEvent }: ByHandOptions,
  { quotas, limit, breakers }: Gates,
  policy: NeutralPolicy,
  targets: readonly FallbackTarget[],
): (model: string) => Observable<AnswerPart> {
  const most = policy.attempt_timeout_ms;
  const options: AttemptOptions = {
    runtime,
    classify,
    onEvent,
    timeouts: {
      ...(most !== undefined && { headersMs: most, firstContentMs: most, responseMs: most }),
      ...(policy.first_content_ms !== undefined && { firstContentMs: policy.first_content_ms }),
      ...(policy.idle_ms !== undefined && { idleMs: policy.idle_ms }),
    },
  };
  const tokens = input.estimate?.prompt;
  const retries: MonoTypeOperatorFunction<AnswerPart> = retryWithJitter({
    attempts: policy.max_attempts,
    baseMs: policy.base_ms,
    capMs: policy.max_ms,
    jitter: policy.jitter,
    maxHintMs: policy.max_hint_ms === null ? Infinity : policy.max_hint_ms,
    onEvent,
    runtime,
  });
  return (model) => {
    const { map, omit, set } = targets.find((target) => target.model === model) ?? {};
    const request = adaptParams({ ...requestOf(input), model }, { rename: map, omit, set });
    const source = sourceOf(api, client, request, options);
    const guarded = source.pipe(
      throttleByBucket<AnswerPart>(quotas.of(model), {
        cost: { tokens: tokens ?? 0, explicit: false },
        onEvent,
        runtime,
      }),
      limitConcurrency(limit, { runtime }),
      circuitBreak(breakers.of(model), { runtime }),
    );
    // Buffered: nothing leaves before the end, so that any failure may be mended.
    return policy.delivery === 'buffered'
      ? guarded.pipe(toArray(), retries as never as MonoTypeOperatorFunction<AnswerPart[]>, concatAll())
      : guarded.pipe(retries);
  };
}

function sourceOf(
  api: Api,
  client: OpenAI,
  request: Record<string, unknown>,
  options: AttemptOptions,
): Observable<AnswerPart> {
  if (api === 'responses') {
    const { messages, ...rest } = request;
    return respond(client, { ...rest, input: messages } as never, options);
  }
  return request['stream'] === true
    ? chat(client, request as never, options)
    : complete(client, request as never, options);
}

function policyOf({ policy }: UpstreamInput): NeutralPolicy {
  return policy === undefined || policy === 'defaults' ? {} : policy;
}

/** The request as the SDK takes it: what the case says of it besides is for the pipeline. */
export function requestOf({ request = {} }: UpstreamInput): Record<string, unknown> {
  const { signal: _signal, estimated_prompt_tokens: _tokens, ...sent } = request;
  return { model: 'm1', messages: [{ role: 'user', content: 'Hello' }], ...sent };
}

function codesOfStatus(status: number): readonly ErrorCode[] {
  switch (status) {
    case 401:
    case 403:
      return ['auth'];
    case 404:
      return ['not_found'];
    case 429:
      return ['rate_limited', 'quota_exhausted'];
    case 503:
    case 529:
      return ['overloaded', 'server_error'];
    default:
      return status >= 500 ? ['server_error'] : ['bad_request'];
  }
}
