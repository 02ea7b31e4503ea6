import { Subject, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Demand } from '../core/attempt.ts';
import { runInScope } from '../core/currentScope.ts';
import { runAtPace } from '../core/pace.ts';
import { positiveOrInfinity, wholeNumber } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import { abortError } from './abortError.ts';

export interface ToAsyncIterableOptions {
  /** Values held for the consumer before the bodies they come from stop being read. A whole number above 0. Default: 64. */
  readonly bufferSize?: number | undefined;
  /**
   * Values held at most, for sources that cannot pause: one more is `queue_full`. Above 0, or `Infinity`: keep them all.
   * Default: `Infinity`.
   */
  readonly maxBuffered?: number | undefined;
  /** Ends the iteration with `aborted`, and unsubscribes. */
  readonly signal?: AbortSignal | undefined;
}

export const TO_ASYNC_ITERABLE_DEFAULTS: { readonly bufferSize: number; readonly maxBuffered: number } = {
  bufferSize: 64,
  maxBuffered: Infinity,
};

/**
 * The values of `observable$` for a `for await` loop, at the pace of the loop: while `bufferSize` values wait to be
 * taken, the sources of this library stop reading their bodies, and TCP holds the provider back. Nothing is lost, and
 * the stages' limits do not run meanwhile.
 *
 * Subscribes at the first `next()`, and once: a second loop over the result goes on where the first one stopped, and
 * after an end there is nothing more. Make a new iterable to ask again.
 *
 * - **Leaving the loop** (`break`, `return`, an exception) unsubscribes in the same tick, which aborts the request.
 * - **Errors:** the values that came before it are delivered first; then one `next()` rejects. No promise is ever
 *   rejected that was not handed out.
 * - **`signal`:** unsubscribes in the same tick and drops what is held; `next()` rejects with `aborted`.
 *
 * The pace reaches the calls that are subscribed to in the tick of the first `next()`, their retries and fallbacks, and
 * all that `concatByConversation` asks. Other sources cannot pause: what they emit is kept, up to `maxBuffered`.
 *
 * A loop that neither goes on nor ends keeps its request open: call `return()` on an iterator that you drop.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import { chat, text, toAsyncIterable } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const pieces$ = chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] }).pipe(text());
 * for await (const piece of toAsyncIterable(pieces$)) {
 *   process.stdout.write(piece);
 * }
 * ```
 */
export function toAsyncIterable<T>(
  observable$: Observable<T>,
  options: ToAsyncIterableOptions = {},
): AsyncIterableIterator<T, undefined, undefined> {
  return new ObservableIterator(observable$, {
    bufferSize: wholeNumber('bufferSize', options.bufferSize ?? TO_ASYNC_ITERABLE_DEFAULTS.bufferSize),
    maxBuffered: positiveOrInfinity('maxBuffered', options.maxBuffered ?? TO_ASYNC_ITERABLE_DEFAULTS.maxBuffered),
    signal: options.signal,
  });
}

interface Settings {
  readonly bufferSize: number;
  readonly maxBuffered: number;
  readonly signal: AbortSignal | undefined;
}

type Result<T> = IteratorResult<T, undefined>;

interface Waiting<T> {
  resolve(result: Result<T>): void;
  reject(error: unknown): void;
}

const OVER = { done: true, value: undefined } as const;

class ObservableIterator<T> implements AsyncIterableIterator<T, undefined, undefined> {
  readonly #observable$: Observable<T>;
  readonly #settings: Settings;
  readonly #stop$ = new Subject<void>();
  readonly #demand: Demand = { ready: () => this.#ready() };
  readonly #waiting: Waiting<T>[] = [];
  #held: T[] = [];
  /** Index in `#held` of the next value to hand out. */
  #head = 0;
  #state: 'idle' | 'running' | 'over' = 'idle';
  #failure: { readonly error: unknown } | undefined;
  #room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  constructor(observable$: Observable<T>, settings: Settings) {
    this.#observable$ = observable$;
    this.#settings = settings;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result<T>> {
    if (this.#state === 'idle') this.#start();
    if (this.#head < this.#held.length) return Promise.resolve({ done: false, value: this.#take() });
    if (this.#failure) {
      const { error } = this.#failure;
      this.#failure = undefined;
      return Promise.reject(error);
    }
    if (this.#state === 'over') return Promise.resolve(OVER);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  return(): Promise<Result<T>> {
    this.#leave();
    return Promise.resolve(OVER);
  }

  throw(error?: unknown): Promise<Result<T>> {
    this.#leave();
    return Promise.reject(error);
  }

  #start(): void {
    const { signal } = this.#settings;
    this.#state = 'running';
    if (signal?.aborted) {
      this.#abort();
      return;
    }
    signal?.addEventListener('abort', this.#abort);
    // In no frame: what is iterated may be many calls, each of which makes its own.
    runInScope(undefined, () =>
      runAtPace(this.#demand, () =>
        this.#observable$.pipe(takeUntil(this.#stop$)).subscribe({
          next: (value) => this.#add(value),
          error: (error: unknown) => this.#end({ error }),
          complete: () => this.#end(),
        }),
      ),
    );
  }

  readonly #abort = (): void => {
    this.#held = [];
    this.#head = 0;
    this.#end({ error: abortError(this.#settings.signal as AbortSignal, 'the signal of the iteration was aborted') });
  };

  #add(value: T): void {
    const waiting = this.#waiting.shift();
    if (waiting) {
      waiting.resolve({ done: false, value });
      return;
    }
    const { maxBuffered } = this.#settings;
    if (this.#held.length - this.#head < maxBuffered) {
      this.#held.push(value);
      return;
    }
    const message = `${maxBuffered} values wait to be taken already, and the source did not pause`;
    this.#end({ error: new SluiceError('queue_full', message, { limit: maxBuffered }) });
  }

  #take(): T {
    const value = this.#held[this.#head] as T;
    this.#held[this.#head++] = undefined as T;
    // Dropped in bulk: to take from the front of a long list costs its length.
    // Stryker disable next-line ConditionalExpression,LogicalOperator,EqualityOperator: it only gives memory back
    if (this.#head === this.#held.length || this.#head >= 1024) {
      this.#held = this.#held.slice(this.#head);
      this.#head = 0;
    }
    if (this.#held.length - this.#head < this.#settings.bufferSize) this.#makeRoom();
    return value;
  }

  #leave(): void {
    this.#held = [];
    this.#head = 0;
    this.#end();
    this.#failure = undefined;
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#settings.signal?.removeEventListener('abort', this.#abort);
    const [first, ...others] = this.#waiting.splice(0);
    if (failure && first) first.reject(failure.error);
    else {
      this.#failure = failure;
      first?.resolve(OVER);
    }
    for (const waiting of others) waiting.resolve(OVER);
    this.#stop$.next();
    // A body reader that waits must see that it was aborted.
    this.#makeRoom();
  }

  #ready(): Promise<void> | undefined {
    if (this.#state !== 'running' || this.#held.length - this.#head < this.#settings.bufferSize) return undefined;
    if (this.#room === undefined) {
      let resolve = (): void => {};
      const promise = new Promise<void>((settle) => (resolve = settle));
      this.#room = { promise, resolve };
    }
    return this.#room.promise;
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }
}
