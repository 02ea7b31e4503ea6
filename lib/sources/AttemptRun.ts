import type { Subscriber, Unsubscribable } from 'rxjs';
import type { AttemptSource, WireData, WireEvent, WireHead } from '../core/attempt.ts';
import type { AttemptContent } from '../core/content.ts';
import { currentScope, deliverIn, runInScope } from '../core/currentScope.ts';
import type { SluiceError } from '../core/errors.ts';
import { isSluiceError } from '../core/errors.ts';
import type { Usage } from '../core/hints.ts';
import type { ChunkReader } from '../wire/ChunkReader.ts';
import { estimateUsage } from '../wire/estimateUsage.ts';
import { AttemptLog } from './AttemptLog.ts';
import type { LoggedAttempt } from './AttemptLog.ts';
import type { AttemptSettings } from './AttemptOptions.ts';
import { chunkReader } from './chunkReader.ts';
import type { AttemptCall } from './chunkReader.ts';
import { isProgress, isUsageReport } from './chunkFacts.ts';
import { classifyFailure } from './classifyFailure.ts';
import { cutError, deadlinePassed, endedEarly, thrownError } from './failures.ts';
import { HeldChunks } from './HeldChunks.ts';
import { requestBody } from './requestBody.ts';
import { stageLimits } from './stageLimits.ts';
import type { StageCut } from './StageTimers.ts';
import { StageWatch } from './StageWatch.ts';
import type { WatchedAttempt } from './StageWatch.ts';
import { isUsageRefusal, refusesUsage, rememberRefusal } from './usageRefusals.ts';
import { WireSubscriber } from './WireSubscriber.ts';
import type { WireReceiver } from './WireSubscriber.ts';

/** One subscription to an attempt: observes its wire events, and passes on chunks and one end. */
export class AttemptRun<T> implements LoggedAttempt, WatchedAttempt, WireReceiver, Unsubscribable {
  readonly #call: AttemptCall;
  readonly #settings: AttemptSettings;
  readonly #log: AttemptLog;
  readonly #watch: StageWatch;
  /** Chunks are held until there is content, or too many of them. */
  #holding = true;
  #held: HeldChunks<T> | undefined;
  readonly #out: { next(value: T): void; error(error: unknown): void; complete(): void };
  #reader: ChunkReader | undefined;
  #source: AttemptSource | undefined;
  #upstream: WireSubscriber | undefined;
  #sends = 0;
  #hideUsage = false;
  #committed = false;
  /** The last finish reason was seen: whatever fails from here on, the answer is whole. */
  #finished = false;
  over = false;

  /** Make it while being subscribed. */
  constructor(subscriber: Subscriber<T>, call: AttemptCall, settings: AttemptSettings) {
    const { model } = call.request;
    this.#call = call;
    this.#settings = settings;
    this.#out = deliverIn(currentScope(), subscriber);
    this.#log = new AttemptLog(this, settings, typeof model === 'string' ? model : undefined);
    const { runtime } = settings;
    const limits = stageLimits(settings, this.#log.scope, runtime.clock.now());
    this.#watch = new StageWatch(this, limits, call.stream, runtime);
  }

  get streamed(): boolean {
    return this.#call.stream;
  }

  estimatedUsage(): Usage {
    return estimateUsage(this.#call.request, this.#reader?.partial());
  }

  captured(): Omit<AttemptContent, 'attempt'> {
    const { api, request } = this.#call;
    return { api, request, answer: this.#reader?.partial() };
  }

  dispatched(atMs: number): void {
    this.#watch.dispatched(atMs);
  }

  get #wallNowMs(): number {
    return this.#settings.runtime.clock.wallNow();
  }

  start(source: AttemptSource): void {
    const { includeUsage, runtime } = this.#settings;
    if (runtime.clock.now() >= this.#log.scope.deadlineAtMs) return this.#fail(deadlinePassed('entry'));
    this.#source = source;
    this.#send(includeUsage && !refusesUsage(this.#call.provider));
  }

  #send(includeUsage: boolean): void {
    const { api, stream } = this.#call;
    const { headers, demand } = this.#settings;
    const { scope } = this.#log;
    const consumer = demand ?? scope.demand;
    const pace = consumer && this.#watch.pausing(consumer);
    this.#sends++;
    try {
      const { body, hideUsage } = requestBody(this.#call, includeUsage);
      this.#hideUsage = hideUsage;
      const attempt = { api, request: body, headers, stream, demand: pace };
      const upstream = new WireSubscriber(this);
      this.#upstream = upstream;
      runInScope(scope, () => this.#source?.(attempt).subscribe(upstream));
    } catch (thrown) {
      this.error(thrown);
    }
  }

  /** Whether the request was refused for what it asked besides, and has been sent again without. */
  #sentWithoutUsage(error: SluiceError): boolean {
    if (!this.#hideUsage || this.#sends > 1 || !this.#holding || !isUsageRefusal(error)) return false;
    this.#upstream?.unsubscribe();
    this.#reader = undefined;
    this.#held = undefined;
    this.#send(false);
    return true;
  }

  /** The consumer is gone, or has had its end. */
  unsubscribe(): void {
    if (this.over) return;
    this.#stop();
    this.#log.ended('dropped', this.#reader?.findings);
    this.#upstream?.unsubscribe();
  }

  next(event: WireEvent): void {
    if (this.over) return;
    try {
      switch (event.kind) {
        case 'data':
          return this.#data(event);
        case 'head':
          return this.#head(event);
        case 'done':
          this.#answer.readDone();
          return this.complete();
        case 'comment':
      }
    } catch (thrown) {
      // RxJS would report an observer's exception elsewhere and leave the consumer waiting.
      this.error(thrown);
    }
  }

  error(thrown: unknown): void {
    if (this.over) return;
    if (this.#finished) return this.#succeed();
    const error = isSluiceError(thrown) ? thrown : thrownError(thrown, this.#log, this.#wallNowMs);
    if (!this.#sentWithoutUsage(error)) this.#fail(error);
  }

  complete(): void {
    if (this.over) return;
    // A whole answer is as complete as it can be, with or without a finish reason.
    if (!this.#call.stream) this.#reader?.readDone();
    if (this.#reader?.complete) this.#succeed();
    else this.#fail(endedEarly(this.#call.stream, this.#log, this.#wallNowMs));
  }

  /** Made late, as its errors name the head of the answer. */
  get #answer(): ChunkReader {
    return (this.#reader ??= chunkReader(this.#call, this.#log));
  }

  #head(head: WireHead): void {
    this.#log.head(head);
    this.#call.onHead?.(head);
    this.#watch.headed();
    // Not before: another try may have been refused for another reason.
    if (this.#sends > 1 && head.status < 400) rememberRefusal(this.#call.provider);
  }

  #data(data: WireData): void {
    if (data.added !== undefined) return this.#more(data, data.added);
    const { value } = data;
    const verdict = this.#answer.read(value, data.event);
    if (typeof verdict !== 'string') return this.#finished ? this.#succeed() : this.error(verdict);
    if (verdict === 'content') this.#content();
    else if (this.#committed && this.#call.api === 'responses' && isProgress(value)) this.#watch.progress();
    const reportsUsage = isUsageReport(value);
    if (!(reportsUsage && this.#hideUsage)) this.#emit((this.#call.wire ? data : value) as T, data.size);
    this.#advance(reportsUsage);
  }

  /** A chunk that only adds text; its value is not looked at here. */
  #more(data: WireData, added: string): void {
    if (this.#answer.readText?.(added) === 'content') this.#content();
    this.#emit((this.#call.wire ? data : data.value) as T, data.size);
  }

  #content(): void {
    if (this.#committed) return this.#log.content(this.#watch.progress());
    this.#committed = true;
    this.#log.content(this.#watch.firstContent());
    this.#release();
  }

  #emit(value: T, size: number | undefined): void {
    if (this.over) return;
    if (!this.#holding) return this.#out.next(value);
    const { maxHeldChunks, maxHeldBytes } = this.#settings;
    this.#held ??= new HeldChunks(maxHeldChunks, maxHeldBytes);
    if (!this.#held.push(value, size)) this.#release();
  }

  /** Emits what is held, as far as the consumer wants it. */
  #release(): void {
    const held = this.#held;
    this.#holding = false;
    this.#held = undefined;
    if (held === undefined) return;
    for (const chunk of held.chunks) {
      if (this.over) return;
      this.#out.next(chunk);
    }
  }

  /** Usage is the last thing to come: where it has, a `[DONE]` is not waited for. */
  #advance(reportsUsage: boolean): void {
    if (this.over || this.#reader === undefined) return;
    const { state } = this.#reader;
    if (state === 'ended' || (state === 'finished' && reportsUsage)) return this.#succeed();
    if (state === 'open' || this.#finished) return;
    this.#finished = true;
    this.#watch.finished();
  }

  #succeed(): void {
    this.#release();
    if (this.over) return;
    this.#stop();
    this.#log.ended('success', this.#reader?.findings);
    this.#upstream?.unsubscribe();
    this.#out.complete();
  }

  #fail(error: SluiceError): void {
    this.#stop();
    const reader = this.#reader;
    const partial = reader === undefined || reader.empty || !this.#call.stream ? undefined : reader.partial();
    const failure = this.#log.failed(classifyFailure(this.#settings.classify, error), reader?.findings, partial);
    this.#upstream?.unsubscribe();
    this.#out.error(failure);
  }

  /** The transport is left only after the log: it may say at once that it is closed, and that comes last. */
  #stop(): void {
    this.over = true;
    this.#watch.stop();
  }

  cut(cut: StageCut): void {
    if (cut.kind === 'tail') this.#succeed();
    else this.#fail(cutError(cut, this.#log));
  }
}
