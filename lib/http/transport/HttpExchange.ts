import type { IncomingHttpHeaders } from 'node:http';
import type { Subscriber } from 'rxjs';
import type { Dispatcher } from 'undici';
import type { Attempt, WireEvent } from '../../core/attempt.ts';
import { CallScope } from '../../core/CallScope.ts';
import { currentScope } from '../../core/currentScope.ts';
import { isSluiceError, SluiceError } from '../../core/errors.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel } from '../../core/runtime.ts';
import { AnswerDecoder } from '../../sources/AnswerDecoder.ts';
import { requestIdOf, thrownError } from '../../sources/failures.ts';
import type { AboutAttempt } from '../../sources/failures.ts';
import type { HeaderReader } from '../../wire/headers.ts';
import { readHints } from '../../wire/hints.ts';
import { FailedAnswer } from './FailedAnswer.ts';
import type { HttpSettings } from './HttpSourceOptions.ts';
import type { RequestHeaders } from './requestHeaders.ts';

/** How long a body may take to end by itself after its last event. */
const LINGER_MS = 25;

/** Made once: its stack is of no use, and taking one costs more than the abort. */
const LEFT = new Error('the request was left');

/** What the requests of one source share. */
export interface HttpLink {
  readonly pool: Pick<Dispatcher, 'dispatch'>;
  readonly settings: HttpSettings;
  readonly headersOf: RequestHeaders;
  closed: boolean;
}

/** One request, from dispatch until nothing of it runs any more. The pool calls what begins with `on`. */
export class HttpExchange implements Dispatcher.DispatchHandler {
  readonly #link: HttpLink;
  readonly #attempt: Attempt;
  readonly #subscriber: Subscriber<WireEvent>;
  readonly #scope: CallScope;
  #about: AboutAttempt;
  #controller: Dispatcher.DispatchController | undefined;
  #answer: AnswerDecoder | undefined;
  #failed: FailedAnswer | undefined;
  #stopLingering: Cancel | undefined;
  #left = false;
  /** Nothing of the request runs any more. */
  #settled = false;

  /** Make it while being subscribed. */
  constructor(link: HttpLink, attempt: Attempt, subscriber: Subscriber<WireEvent>) {
    this.#link = link;
    this.#attempt = attempt;
    this.#subscriber = subscriber;
    this.#scope = currentScope() ?? CallScope.start(link.settings.runtime);
    const { model } = attempt.request;
    this.#about = { model: typeof model === 'string' ? model : undefined, status: undefined, requestId: undefined };
  }

  start(): void {
    const { pool, settings, headersOf, closed } = this.#link;
    if (closed) return this.#subscriber.error(new SluiceError('closed', 'the transport is closed'));
    const { api, request, bytes, headers } = this.#attempt;
    this.#scope.dispatched(settings.runtime.clock.now(), true);
    try {
      const body = bytes ?? JSON.stringify(request);
      const options = { method: 'POST', path: settings.paths[api], headers: headersOf(headers), body } as const;
      this.#scope.around(() => pool.dispatch(options, this));
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** The subscriber is gone, or has had its end. */
  leave(): void {
    if (this.#settled || this.#left) return;
    this.#left = true;
    if (!this.#answer?.leave()) return this.#abort();
    this.#stopLingering = startTimer(this.#link.settings.runtime, LINGER_MS, () => this.#abort());
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It waited for a connection meanwhile.
    if (this.#settled) controller.abort(LEFT);
    else this.#scope.sent(this.#link.settings.runtime.clock.now());
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, fields: IncomingHttpHeaders): void {
    if (status < 200 || this.#left) return;
    const headers = readerOf(fields);
    const { runtime, maxEventBytes } = this.#link.settings;
    if (status >= 300) {
      this.#failed = new FailedAnswer(status, headers, runtime, () => this.#answered());
      return;
    }
    const requestId = requestIdOf(headers);
    const hints = readHints({ status, headers, wallNowMs: this.#wallNowMs });
    this.#about = { model: this.#about.model, status, requestId };
    this.#answer = new AnswerDecoder(this.#attempt, this.#subscriber, {
      maxBytes: maxEventBytes,
      about: this.#about,
      headers,
      runtime,
    });
    this.#subscriber.next({ kind: 'head', status, requestId, hints });
    this.#pace();
  }

  onResponseData(_: Dispatcher.DispatchController, bytes: Uint8Array): void {
    // Empty where undici goes on after a pause. To pause again at it would be a pause at the end of the body.
    if (this.#settled || bytes.length === 0) return;
    if (this.#failed !== undefined) {
      if (!this.#failed.push(bytes)) this.#answered();
      return;
    }
    try {
      this.#answer?.push(bytes);
    } catch (thrown) {
      return this.#fail(thrown);
    }
    this.#pace();
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    if (this.#failed !== undefined) return this.#answered();
    // Before the last value: whoever leaves at it must not abort what has ended.
    this.#settle();
    try {
      this.#answer?.end();
      this.#subscriber.complete();
    } catch (thrown) {
      this.#subscriber.error(this.#errorOf(thrown));
    }
    this.#scope.closed();
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#settled) return;
    // A body that breaks gives what came before.
    if (this.#failed !== undefined && !this.#left) this.#answered();
    else this.#fail(error);
  }

  /** Reads on at the consumer's pace. */
  #pace(): void {
    if (this.#left) return;
    const wait = this.#attempt.demand?.ready();
    if (wait === undefined) return;
    const controller = this.#controller;
    controller?.pause();
    wait.then(
      () => controller?.resume(),
      (thrown: unknown) => this.#fail(thrown),
    );
  }

  /** Tells of the answer with an error status, as far as it was read. */
  #answered(): void {
    const failed = this.#failed;
    if (failed === undefined || this.#settled) return;
    this.#end();
    const { head, error } = failed.told(this.#about.model, this.#wallNowMs);
    if (head !== undefined) this.#subscriber.next(head);
    this.#subscriber.error(error);
    this.#scope.closed();
  }

  #fail(thrown: unknown): void {
    if (this.#settled) return;
    this.#end();
    if (!this.#left) this.#subscriber.error(this.#errorOf(thrown));
    this.#scope.closed();
  }

  #abort(): void {
    if (this.#settled) return;
    this.#end();
    this.#scope.closed();
  }

  #end(): void {
    this.#settle();
    // Does nothing to a request that has ended.
    this.#controller?.abort(LEFT);
  }

  #settle(): void {
    this.#settled = true;
    this.#stopLingering?.();
    this.#failed?.stop();
  }

  #errorOf(thrown: unknown): SluiceError {
    return isSluiceError(thrown) ? thrown : thrownError(thrown, this.#about, this.#wallNowMs);
  }

  get #wallNowMs(): number {
    return this.#link.settings.runtime.clock.wallNow();
  }
}

function readerOf(fields: IncomingHttpHeaders): HeaderReader {
  const textOf = (value: string | string[] | undefined): string | undefined =>
    typeof value === 'string' ? value : value?.join(', ');
  return {
    get: (name) => textOf(fields[name]) ?? null,
    forEach(each) {
      for (const name in fields) each(textOf(fields[name]) ?? '', name);
    },
  };
}
