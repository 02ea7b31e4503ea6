import type OpenAI from 'openai';
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { Observable } from 'rxjs';
import type { SluiceEvent } from '../core/events.ts';
import type { AdmissionSnapshot, LanesSnapshot } from '../core/ports.ts';
import type { Restart } from '../core/restart.ts';
import type { SpendSnapshot } from '../limits/SpendLedger.ts';
import type { Policy } from '../policy/Policy.ts';
import type { PolicyInput } from '../policy/PolicyInput.ts';
import type { ChatRequest, ResponseRequest } from '../sources/requests.ts';
import type { CallOptions } from './CallOptions.ts';
import type { CloseOptions } from './SluiceOptions.ts';

export type WithRestarts = CallOptions & { readonly restarts: true };
export type WithoutRestarts = CallOptions & { readonly restarts?: false | undefined };

/**
 * A call with its own transport: gets the SDK client of the model, a signal to pass on, and the model that is asked. The
 * client is a copy: its own retries are off, and a `sluice.fetch` in it lets its requests pass.
 */
export type ClientCall<T> = (
  client: OpenAI,
  signal: AbortSignal,
  model: string,
) => PromiseLike<T> | PromiseLike<AsyncIterable<T>>;

/** What today's calls cost. */
export interface SluiceSpend extends SpendSnapshot {
  /** Share of its daily cap that a tenant has spent, for those that have one; above 1 where the last call went beyond. */
  readonly capUsed: Readonly<Record<string, number>>;
}

/** How things stand. Plain data. */
export interface SluiceSnapshot {
  readonly closed: boolean;
  /** Calls that run or wait. */
  readonly calls: number;
  /** The same by tenant; those of no tenant are in `calls` only. */
  readonly callsByTenant: Readonly<Record<string, number>>;
  readonly conversations: LanesSnapshot;
  /** Attempts in flight and waiting, by model and tenant, with levels, limits and breakers. */
  readonly admission: AdmissionSnapshot;
  /** Of today, at the prices of the policy, from the usage that providers reported, or an estimate where they did not. */
  readonly spend: SluiceSpend;
}

/** Calls under one policy. See {@link createSluice}. */
export interface Sluice {
  /** A streamed chat completion. */
  chat(request: ChatRequest, options: WithRestarts): Observable<ChatCompletionChunk | Restart>;
  chat(request: ChatRequest, options?: WithoutRestarts): Observable<ChatCompletionChunk>;
  /** A streamed answer of the Responses API. */
  respond(request: ResponseRequest, options: WithRestarts): Observable<ResponseStreamEvent | Restart>;
  respond(request: ResponseRequest, options?: WithoutRestarts): Observable<ResponseStreamEvent>;
  /** A chat completion that is not streamed: one value. The deadline covers all of it. */
  complete(request: ChatRequest, options?: CallOptions): Observable<ChatCompletion>;
  /**
   * Any other SDK call to the client that serves `model`. Nothing is asked in place of the model but what
   * `options.fallback` names, and nothing is known of its tokens but `options.cost`.
   */
  call<T>(model: string, call: ClientCall<T>, options?: CallOptions): Observable<T>;
  /**
   * For `new OpenAI({ fetch: sluice.fetch, maxRetries: 0 })`: makes calls of the chat completions and responses that the
   * SDK asks for, streamed or not, and lets every other request through.
   */
  readonly fetch: typeof globalThis.fetch;
  /** Every fact of every call, as it happens. Completes when the client has been closed. */
  readonly events$: Observable<SluiceEvent>;
  /** Takes another policy. Calls that run or wait keep their places; limits go on from where they are. */
  reload(policy: Policy | PolicyInput): void;
  snapshot(): SluiceSnapshot;
  /**
   * Refuses new calls with `closed`, lets those that run or wait come to their end, and ends with `closed` what is left
   * after `drainMs`. Resolves when nothing runs any more.
   */
  close(options?: CloseOptions): Promise<void>;
}
