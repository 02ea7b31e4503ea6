import type OpenAI from 'openai';
import type { Subscriber, Unsubscribable } from 'rxjs';
import type { Attempt, WireEvent } from '../core/attempt.ts';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceError } from '../core/errors.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { readHints } from '../wire/hints.ts';
import { AnswerDecoder } from './AnswerDecoder.ts';
import { captureFailures, isSentBySource } from './captureFailures.ts';
import type { CapturedFailure, FailureSlot } from './captureFailures.ts';
import { requestIdOf, sendFailure, thrownError } from './failures.ts';
import type { AboutAttempt } from './failures.ts';
import { PacedReader } from './PacedReader.ts';
import { discard } from './readBounded.ts';

/** The longest wait that a timer can have: the SDK's own limit must never be the one that cuts. */
const SDK_TIMEOUT_MS = 2_147_483_647;

/** How long a body may take to end by itself after its last event. */
const LINGER_MS = 25;

/** After an abort, nothing is waited for longer than this. */
export const CLOSE_WITHIN_MS = 1_000;

/**
 * One request through an OpenAI client, from dispatch until nothing of it runs any more. Then it lets go of the call:
 * the SDK's maps keep what they know of a request alive through young collections, and everything with it.
 */
export class Exchange implements FailureSlot, Unsubscribable {
  readonly runtime: Runtime;
  captured: CapturedFailure | undefined;
  readonly #client: OpenAI;
  readonly #maxEventBytes: number;
  readonly #controller = new AbortController();
  /** Until it was sent: a request may be large. */
  #attempt: Attempt | undefined;
  #about: AboutAttempt;
  #subscriber: Subscriber<WireEvent> | undefined;
  #scope: CallScope | undefined;
  #body: PacedReader | undefined;
  #decoder: AnswerDecoder | undefined;
  #left = false;
  #settled = false;
  #stopWaiting: Cancel | undefined;

  /** Make it while being subscribed. */
  constructor(
    client: OpenAI,
    attempt: Attempt,
    subscriber: Subscriber<WireEvent>,
    options: { readonly maxEventBytes: number; readonly runtime: Runtime },
  ) {
    this.#client = client;
    this.#attempt = attempt;
    this.#subscriber = subscriber;
    this.#maxEventBytes = options.maxEventBytes;
    this.runtime = options.runtime;
    this.#scope = currentScope() ?? CallScope.start(options.runtime);
    const { model } = attempt.request;
    this.#about = { model: typeof model === 'string' ? model : undefined, status: undefined, requestId: undefined };
  }

  /** For the `fetch` of the client. */
  sent(): void {
    this.#scope?.sent(this.runtime.clock.now());
  }

  /** The subscriber is gone, or has had its end. */
  unsubscribe(): void {
    if (this.#settled || this.#left) return;
    this.#left = true;
    this.#body?.leave();
    if (this.#decoder?.leave()) this.#stopWaiting = startTimer(this.runtime, LINGER_MS, () => this.#leaveAtOnce());
    else this.#leaveAtOnce();
  }

  #leaveAtOnce(): void {
    this.#abort();
    this.#stopWaiting = startTimer(this.runtime, CLOSE_WITHIN_MS, () => this.#close());
  }

  /** Sends in the same tick. Never rejects. */
  async run(): Promise<void> {
    let failure: SluiceError | undefined;
    try {
      const body = this.#headed(await this.#send());
      if (body !== undefined) {
        for (let read = await body.read(); !read.done; read = await body.read()) this.#decoder?.push(read.value);
        this.#decoder?.end();
      }
    } catch (thrown) {
      if (!this.#left) failure = this.#failure(thrown);
      this.#abort();
    }
    this.#settled = true;
    this.#stopWaiting?.();
    if (!this.#left) {
      if (failure === undefined) this.#subscriber?.complete();
      else this.#subscriber?.error(failure);
    }
    this.#close();
  }

  #send(): Promise<Response> {
    const { api, request, headers } = this.#attempt as Attempt;
    const fetchOptions = captureFailures(this.#client, this);
    this.#scope?.dispatched(this.runtime.clock.now(), isSentBySource(fetchOptions));
    const { signal } = this.#controller;
    const options = { signal, maxRetries: 0, timeout: SDK_TIMEOUT_MS, headers, fetchOptions };
    const work = (): Promise<Response> =>
      api === 'chat'
        ? this.#client.chat.completions.create(request as never, options).asResponse()
        : this.#client.responses.create(request as never, options).asResponse();
    return this.#scope?.around(work) ?? work();
  }

  /** Passes on the head. Returns the body, if it is still wanted. */
  #headed(response: Response): PacedReader | undefined {
    if (this.#left) return discard(response.body);
    const attempt = this.#attempt as Attempt;
    this.#attempt = undefined;
    const { status, headers } = response;
    const requestId = requestIdOf(headers);
    const hints = readHints({ status, headers, wallNowMs: this.runtime.clock.wallNow() });
    const about = { model: this.#about.model, status, requestId };
    this.#about = about;
    this.#decoder = new AnswerDecoder(attempt, this.#subscriber, {
      maxBytes: this.#maxEventBytes,
      about,
      headers,
      runtime: this.runtime,
    });
    this.#body = new PacedReader(response.body, attempt.demand);
    this.#subscriber?.next({ kind: 'head', status, requestId, hints });
    return this.#left ? discard(response.body) : this.#body;
  }

  /** Tells of the answer that the SDK turned into an exception, if there was one. */
  #failure(thrown: unknown): SluiceError {
    if (isSluiceError(thrown)) return thrown;
    const wallNowMs = this.runtime.clock.wallNow();
    if (this.#about.status !== undefined) return thrownError(thrown, this.#about, wallNowMs);
    const { head, error } = sendFailure(thrown, this.captured, this.#about.model, wallNowMs);
    if (head !== undefined) this.#subscriber?.next(head);
    return error;
  }

  #abort(): void {
    this.#controller.abort();
    this.#body?.cancel();
    this.#decoder?.leave();
  }

  #close(): void {
    const scope = this.#scope;
    this.#scope = undefined;
    this.#subscriber = undefined;
    this.#body = undefined;
    this.#decoder = undefined;
    scope?.closed();
  }
}
