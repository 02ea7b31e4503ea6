import type OpenAI from 'openai';
import type { Fields } from '../CallPlan.ts';
import { sameFields } from '../wire/sameFields.ts';
import type { FetchCall } from './readFetchCall.ts';

/** What came back to the caller's own request. */
export interface OwnAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Of a failure. */
  readonly body: string | undefined;
}

interface SendOptions {
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetchOptions: RequestInit;
}

/**
 * Stands in for an OpenAI client in a transport, and sends the request that an SDK had made already: with its address and
 * headers, and with its very bytes where nothing has to be changed.
 */
export class ResendingClient {
  /** By the name that the transport knows, since it wraps it. */
  fetch: typeof globalThis.fetch;
  readonly chat: unknown;
  readonly responses: unknown;
  readonly #call: FetchCall;
  readonly #onAnswer: (answer: OwnAnswer) => void;

  constructor(call: FetchCall, fetch: typeof globalThis.fetch, onAnswer: (answer: OwnAnswer) => void) {
    this.#call = call;
    this.#onAnswer = onAnswer;
    const own: typeof globalThis.fetch = (input, init) => fetch(input, init);
    this.fetch = own;
    const create = (request: Fields, options: SendOptions): unknown => ({
      asResponse: () => this.#send(request, options),
    });
    this.chat = { completions: { create } };
    this.responses = { create };
  }

  get asClient(): OpenAI {
    return this as unknown as OpenAI;
  }

  async #send(request: Fields, { signal, headers: added, fetchOptions }: SendOptions): Promise<Response> {
    const { init, input, fields, body } = this.#call;
    const headers = new Headers(this.#call.headers);
    for (const [name, value] of Object.entries(added)) headers.set(name, value);
    const unchanged = sameFields(request, fields);
    if (!unchanged) headers.delete('content-length');
    const sent = { ...init, ...fetchOptions, headers, signal, body: unchanged ? body : JSON.stringify(request) };
    const response = await this.fetch(input, sent as RequestInit);
    const { status } = response;
    if (response.ok) {
      this.#onAnswer({ status, headers: response.headers, body: undefined });
      return response;
    }
    // Bounded already: the transport has read it.
    const failed = status >= 400 ? await response.text() : undefined;
    this.#onAnswer({ status, headers: response.headers, body: failed });
    throw Object.assign(new Error(`${status}`), { status, headers: response.headers });
  }
}
