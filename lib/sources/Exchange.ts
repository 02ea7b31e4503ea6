import type OpenAI from 'openai';
import type { Subscriber } from 'rxjs';
import type { Attempt, WireEvent } from '../core/attempt.ts';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceError } from '../core/errors.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { readHints } from '../wire/hints.ts';
import { AnswerBody } from './AnswerBody.ts';
import { captureFailures, isSentBySource } from './captureFailures.ts';
import type { FailureSlot } from './captureFailures.ts';
import { requestIdOf, sendFailure, thrownError } from './failures.ts';
import type { AboutAttempt } from './failures.ts';
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
export class Exchange {
  readonly #client: OpenAI;
  readonly #attempt: Attempt;
  readonly #maxEventBytes: number;
  readonly #runtime: Runtime;
  readonly #controller = new AbortController();
  readonly #slot: FailureSlot;
  readonly #fetchOptions: object;
  #about: AboutAttempt;
  #subscriber: Subscriber<WireEvent> | undefined;
  #scope: CallScope | undefined;
  #body: AnswerBody | undefined;
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
    this.#runtime = options.runtime;
    this.#scope = currentScope() ?? CallScope.start(options.runtime);
    const { model } = attempt.request;
    this.#about = { model: typeof model === 'string' ? model : undefined, status: undefined, requestId: undefined };
    const { runtime } = options;
    this.#slot = { runtime, captured: undefined, sent: () => this.#scope?.sent(runtime.clock.now()) };
    this.#fetchOptions = captureFailures(client, this.#slot);
  }

  start(): void {
    this.#scope?.dispatched(this.#runtime.clock.now(), isSentBySource(this.#fetchOptions));
    void this.#run();
  }

  /** The subscriber is gone, or has had its end. */
  leave(): void {
    if (this.#settled || this.#left) return;
    this.#left = true;
    if (this.#body?.leave()) this.#stopWaiting = startTimer(this.#runtime, LINGER_MS, () => this.#leaveAtOnce());
    else this.#leaveAtOnce();
  }

  #leaveAtOnce(): void {
    this.#abort();
    this.#stopWaiting = startTimer(this.#runtime, CLOSE_WITHIN_MS, () => this.#close());
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    let failure: SluiceError | undefined;
    try {
      await this.#receive(await this.#send());
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
    const { api, request, headers } = this.#attempt;
    const options = {
      signal: this.#controller.signal,
      maxRetries: 0,
      timeout: SDK_TIMEOUT_MS,
      headers,
      fetchOptions: this.#fetchOptions,
    };
    const work = (): Promise<Response> =>
      api === 'chat'
        ? this.#client.chat.completions.create(request as never, options).asResponse()
        : this.#client.responses.create(request as never, options).asResponse();
    return this.#scope?.around(work) ?? work();
  }

  async #receive(response: Response): Promise<void> {
    if (this.#left) return discard(response.body);
    const { status, headers } = response;
    const requestId = requestIdOf(headers);
    const hints = readHints({ status, headers, wallNowMs: this.#wallNowMs });
    this.#about = { model: this.#about.model, status, requestId };
    this.#body = new AnswerBody(response, this.#attempt, (event) => this.#subscriber?.next(event), {
      maxBytes: this.#maxEventBytes,
      about: this.#about,
      wallNow: () => this.#wallNowMs,
    });
    this.#subscriber?.next({ kind: 'head', status, requestId, hints });
    if (this.#left) return discard(response.body);
    await this.#body.read();
  }

  /** Tells of the answer that the SDK turned into an exception, if there was one. */
  #failure(thrown: unknown): SluiceError {
    if (isSluiceError(thrown)) return thrown;
    if (this.#about.status !== undefined) return thrownError(thrown, this.#about, this.#wallNowMs);
    const { head, error } = sendFailure(thrown, this.#slot.captured, this.#about.model, this.#wallNowMs);
    if (head !== undefined) this.#subscriber?.next(head);
    return error;
  }

  get #wallNowMs(): number {
    return this.#runtime.clock.wallNow();
  }

  #abort(): void {
    this.#controller.abort();
    this.#body?.cancel();
  }

  #close(): void {
    const scope = this.#scope;
    this.#scope = undefined;
    this.#subscriber = undefined;
    this.#body = undefined;
    scope?.closed();
  }
}
