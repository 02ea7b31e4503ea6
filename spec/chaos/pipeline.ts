import OpenAI from 'openai';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { Observable } from 'rxjs';
import { predictAnswer } from '../../lib/emulator/index.ts';
import type { Emulator, ProviderApi, RequestRecord } from '../../lib/emulator/index.ts';
import {
  AnswerAssembler,
  chat,
  circuitBreak,
  createBreakers,
  createConcurrencyLimits,
  createQuotas,
  createRetryBudget,
  fallbackModel,
  isRestart,
  isSluiceError,
  limitConcurrency,
  respond,
  retryWithJitter,
  throttleByBucket,
  withAssistantPrefix,
  withDeadline,
} from '../../lib/index.ts';
import type {
  Answer,
  BreakerPort,
  CircuitBreakerOptions,
  CooldownOptions,
  FallbackMap,
  MidStreamMode,
  Restart,
  RetryBudgetOptions,
  RetryBudgetPort,
  RetryWithJitterOptions,
  SluiceError,
  SluiceEvent,
  StageTimeouts,
} from '../../lib/index.ts';

export type Api = Extract<ProviderApi, 'chat' | 'responses'>;
export type Part = ChatCompletionChunk | ResponseStreamEvent;

export interface PipelineOptions {
  readonly api: Api;
  readonly models?: readonly string[] | FallbackMap;
  readonly retry?: Pick<RetryWithJitterOptions<Part>, 'attempts' | 'baseMs' | 'capMs' | 'jitter' | 'maxHintMs'>;
  readonly budget?: RetryBudgetOptions;
  readonly breaker?: CircuitBreakerOptions;
  readonly cooldown?: CooldownOptions;
  readonly timeouts?: StageTimeouts;
  readonly midStream?: MidStreamMode;
  readonly canContinue?: readonly string[];
  readonly deadlineMs?: number;
}

/** What one caller got, and when. */
export interface Got {
  readonly answer: Answer;
  readonly restarts: readonly Restart[];
  /** `undefined` where the stream completed. Anything but a SluiceError is thrown instead. */
  readonly error: SluiceError | undefined;
  readonly firstMs: number | undefined;
  readonly tookMs: number;
}

/** A primary and its fallbacks behind every operator, wired by hand as the documentation shows. */
export interface Pipeline {
  readonly openai: OpenAI;
  readonly events: readonly SluiceEvent[];
  breakerOf(model: string): BreakerPort;
  ask(content?: string): Observable<Part | Restart>;
  /** Asks and collects. */
  get(content?: string): Promise<Got>;
  /** The whole text that a model answers with. */
  textOf(model: string, tokens?: number, content?: string): string;
}

export const PRIMARY = 'primary';
export const BACKUP = 'backup';

export function pipeline(emulator: Emulator, options: PipelineOptions): Pipeline {
  const { api, models = [BACKUP], retry, budget, timeouts, midStream, canContinue, deadlineMs = 10_000 } = options;
  const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none', maxRetries: 0 });
  const quotas = createQuotas({
    models: { default: { requestsPerMinute: 6_000, burstRequests: 100 } },
    cooldown: options.cooldown,
  });
  const limits = createConcurrencyLimits({ initial: 64 });
  const breakers = createBreakers(options.breaker);
  const budgets = new Map<string, RetryBudgetPort>();
  const budgetOf = (model: string): RetryBudgetPort => {
    const own = budgets.get(model) ?? createRetryBudget({ minPerSecond: 10, ...budget });
    budgets.set(model, own);
    return own;
  };
  const events: SluiceEvent[] = [];
  const onEvent = (event: SluiceEvent): void => void events.push(event);

  const requestOf = (model: string, content: string): { model: string; messages: []; input: [] } => {
    const turn = [{ role: 'user', content }] as unknown as [];
    return api === 'chat'
      ? ({ model, messages: turn, stream_options: { include_usage: true } } as never)
      : ({ model, input: turn } as never);
  };
  const guarded = (request: ReturnType<typeof requestOf>): Observable<Part> => {
    const { model } = request;
    const source: Observable<Part> =
      api === 'chat' ? chat(openai, request, { timeouts, onEvent }) : respond(openai, request, { timeouts, onEvent });
    return source.pipe(
      throttleByBucket(quotas.of(model), { onEvent }),
      limitConcurrency(limits.of(model), { onEvent }),
      circuitBreak(breakers.of(model), { onEvent }),
      retryWithJitter({ ...retry, budget: budgetOf(model), model, onEvent }),
    );
  };
  const ask = (content = 'Hello'): Observable<Part | Restart> =>
    guarded(requestOf(PRIMARY, content)).pipe(
      fallbackModel<Part>(models, (model) => guarded(requestOf(model, content)), {
        midStream,
        restarts: true,
        canContinue,
        continueWith: (partial, model) => guarded(withAssistantPrefix(requestOf(model, content), partial)),
        onEvent,
      }),
      withDeadline(deadlineMs),
    );

  return {
    openai,
    events,
    breakerOf: (model) => breakers.of(model),
    ask,
    get: (content) => collect(ask(content)),
    textOf: (model, tokens, content = 'Hello') => predictAnswer(requestOf(model, content), { tokens }),
  };
}

function collect(parts: Observable<Part | Restart>): Promise<Got> {
  const assembler = new AnswerAssembler();
  const restarts: Restart[] = [];
  const startMs = performance.now();
  let firstMs: number | undefined;
  return new Promise((resolve, reject) => {
    const settle = (error: SluiceError | undefined): void => {
      resolve({ answer: assembler.snapshot(), restarts, error, firstMs, tookMs: performance.now() - startMs });
    };
    parts.subscribe({
      next: (part) => {
        firstMs ??= performance.now() - startMs;
        if (isRestart(part)) {
          restarts.push(part);
          assembler.restart();
        } else if ('type' in part) assembler.addResponses(part);
        else assembler.addChat(part);
      },
      error: (error: unknown) => {
        if (isSluiceError(error)) settle(error);
        else reject(new Error('the stream failed with something else', { cause: error }));
      },
      complete: () => settle(undefined),
    });
  });
}

/** What the provider saw of each request of one model, oldest first. */
export function seenOf(emulator: Emulator, model: string): readonly RequestRecord[] {
  return emulator.report().log.filter((record) => record.model === model);
}

export function gapsMs(records: readonly RequestRecord[]): readonly number[] {
  return records.slice(1).map((record, at) => record.arrivedMs - (records[at]?.arrivedMs ?? 0));
}

export function outcomesOf(records: readonly RequestRecord[]): readonly string[] {
  return records.map((record) => record.outcome);
}
