import type { Subscriber, Unsubscribable } from 'rxjs';
import { currentScope, deliverIn } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceError } from '../core/errors.ts';
import type { Usage } from '../core/hints.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel } from '../core/runtime.ts';
import type { AnswerFindings } from '../wire/ChunkReader.ts';
import { readUsage } from '../wire/usage.ts';
import { AttemptLog, NOTHING_FOUND } from './AttemptLog.ts';
import type { LoggedAttempt } from './AttemptLog.ts';
import type { AttemptSettings } from './AttemptOptions.ts';
import { classifyFailure } from './classifyFailure.ts';
import { CLOSE_WITHIN_MS } from './Exchange.ts';
import { cutError, deadlinePassed, sendFailure } from './failures.ts';
import { stageLimits } from './stageLimits.ts';
import type { StageCut } from './StageTimers.ts';
import { StageWatch } from './StageWatch.ts';
import type { WatchedAttempt } from './StageWatch.ts';

type Call<T> = (signal: AbortSignal) => PromiseLike<T | AsyncIterable<T>>;

/** One subscription to a call that brings its own transport. */
export class CallRun<T> implements LoggedAttempt, WatchedAttempt, Unsubscribable {
  readonly streamed = false;
  readonly #call: Call<T>;
  readonly #settings: AttemptSettings;
  readonly #log: AttemptLog;
  readonly #watch: StageWatch;
  readonly #out: { next(value: T): void; error(error: unknown): void; complete(): void };
  readonly #controller = new AbortController();
  #iterator: AsyncIterator<T> | undefined;
  #usage: Usage | undefined;
  /** Ends a wait for the consumer that has left. */
  #wake: (() => void) | undefined;
  #stopClosing: Cancel | undefined;
  #running = false;
  #closed = false;
  #over = false;

  /** Make it while being subscribed. */
  constructor(call: Call<T>, subscriber: Subscriber<T>, settings: AttemptSettings, model: string | undefined) {
    this.#call = call;
    this.#settings = settings;
    this.#out = deliverIn(currentScope(), subscriber);
    this.#log = new AttemptLog(this, settings, model);
    const { runtime } = settings;
    const limits = stageLimits(settings, this.#log.scope, runtime.clock.now());
    this.#watch = new StageWatch(this, limits, this.streamed, runtime);
  }

  start(): void {
    const { scope } = this.#log;
    const nowMs = this.#settings.runtime.clock.now();
    if (nowMs >= scope.deadlineAtMs) return this.#fail(deadlinePassed('entry'));
    this.#running = true;
    scope.dispatched(nowMs);
    void this.#run();
  }

  dispatched(atMs: number): void {
    this.#watch.dispatched(atMs);
  }

  cut(cut: StageCut): void {
    if (cut.kind !== 'tail') this.#fail(cutError(cut, this.#log));
  }

  /** The consumer is gone, or has had its end. */
  unsubscribe(): void {
    if (this.#over) return;
    this.#stop();
    this.#log.ended('dropped', this.#findings);
  }

  get #findings(): AnswerFindings {
    return { ...NOTHING_FOUND, usage: this.#usage };
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    try {
      if (!this.#over) await this.#receive();
    } catch (thrown) {
      if (!this.#over) this.#fail(this.#failure(thrown));
    }
    this.#running = false;
    this.#stopClosing?.();
    this.#close();
  }

  async #receive(): Promise<void> {
    const result = await this.#log.scope.around(() => this.#call(this.#controller.signal));
    const iterator = isAsyncIterable(result) ? result[Symbol.asyncIterator]() : undefined;
    if (iterator !== undefined) {
      this.#iterator = iterator;
      if (this.#over) return this.#endIterator();
      this.#watch.streams();
      await this.#pull(iterator);
    } else if (!this.#over) {
      this.#value(result as T);
    }
    if (this.#over) return;
    this.#iterator = undefined;
    this.#over = true;
    this.#watch.stop();
    this.#log.ended('success', this.#findings);
    this.#out.complete();
  }

  async #pull(iterator: AsyncIterator<T>): Promise<void> {
    const consumer = this.#settings.demand ?? this.#log.scope.demand;
    const demand = consumer && this.#watch.pausing(consumer);
    while (!this.#over) {
      const wait = demand?.ready();
      if (wait !== undefined) await Promise.race([wait, this.#leaving()]);
      if (this.#over) return;
      const result = await iterator.next();
      if (result.done === true || this.#over) return;
      this.#value(result.value);
    }
  }

  #value(value: T): void {
    this.#usage = readUsage(value) ?? this.#usage;
    this.#log.content(this.#watch.firstContent());
    this.#out.next(value);
  }

  #failure(thrown: unknown): SluiceError {
    if (isSluiceError(thrown)) return thrown;
    const { head, error } = sendFailure(thrown, undefined, this.#log.model, this.#settings.runtime.clock.wallNow());
    if (head?.kind === 'head') this.#log.head(head);
    return error;
  }

  #fail(error: SluiceError): void {
    this.#stop();
    this.#out.error(this.#log.failed(classifyFailure(this.#settings.classify, error), this.#findings));
  }

  /** Aborts what runs, and lets go of it at the latest after a second. */
  #stop(): void {
    this.#over = true;
    this.#watch.stop();
    this.#wake?.();
    this.#controller.abort();
    this.#endIterator();
    if (this.#running) this.#stopClosing = startTimer(this.#settings.runtime, CLOSE_WITHIN_MS, () => this.#close());
  }

  #endIterator(): void {
    const iterator = this.#iterator;
    this.#iterator = undefined;
    if (typeof iterator?.return !== 'function') return;
    try {
      Promise.resolve(iterator.return()).catch(() => {});
    } catch {
      // It was told.
    }
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#log.scope.closed();
  }

  #leaving(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function isAsyncIterable<T>(value: T | AsyncIterable<T>): value is AsyncIterable<T> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as AsyncIterable<T>)[Symbol.asyncIterator] === 'function'
  );
}
