import OpenAI from 'openai';
import { defer, fromEvent, Subject, take, takeUntil, tap } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import {
  chat,
  circuitBreak,
  complete,
  createBreakers,
  createConcurrencyLimit,
  createLanes,
  createQuota,
  fromCall,
  inConversation,
  isSluiceError,
  limitConcurrency,
  respond,
  retryWithJitter,
  text,
  throttleByBucket,
  toAsyncIterable,
} from '../../../lib/index.ts';
import type { EventListener, Runtime, SluiceEvent } from '../../../lib/index.ts';
import { traceAttempt, traceCall } from '../../../lib/telemetry/index.ts';
import { OpenSpans } from './OpenSpans.ts';

/** What a call is meant to come to. */
export type Fate = 'answered' | 'failed' | 'cancelled queued' | 'cancelled before headers' | 'cancelled in mid-stream';

export interface Tally {
  /** By fate, the calls that came to what they were meant to. */
  readonly as: Partial<Record<Fate, number>>;
  /** Those that did not: the kind of call, and what became of it. */
  readonly otherwise: string[];
}

const messages = [{ role: 'user' as const, content: 'Hello' }];

/** Calls of every kind, through everything that can stand around a call, all of them on one long-lived signal. */
export class MixedCalls {
  readonly tally: Tally = { as: {}, otherwise: [] };
  readonly #openai: OpenAI;
  readonly #signal: AbortSignal;
  readonly #runtime: Runtime;
  readonly #quota;
  readonly #limit;
  readonly #lanes;
  readonly #breakers;
  readonly #spans = new OpenSpans();

  constructor(baseURL: string, signal: AbortSignal, runtime: Runtime) {
    this.#openai = new OpenAI({ baseURL, apiKey: 'none' });
    this.#signal = signal;
    this.#runtime = runtime;
    this.#quota = createQuota({ requestsPerMinute: 60_000, burstRequests: 60, maxWaitMs: Infinity }, runtime);
    this.#limit = createConcurrencyLimit({ limit: 25, maxWaitMs: Infinity }, runtime);
    this.#lanes = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
    // It opens and probes again all the time where a model fails.
    this.#breakers = createBreakers({ openMs: 20 }, runtime);
  }

  /** Five turns for each conversation. */
  async run(calls: number, atOnce: number): Promise<void> {
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < calls) await this.#call(next++);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  }

  /** What is held by now. */
  held(): Record<string, number> {
    const { waiting, layers } = this.#quota.snapshot();
    const { inFlight, waiting: forSlots } = this.#limit.snapshot();
    const lanes = this.#lanes.snapshot();
    const level = layers[0]?.requests?.level ?? 0;
    return {
      'waiting for the quota': waiting,
      'slots of the concurrency limit': inFlight,
      'waiting for a slot': forSlots,
      lanes: lanes.conversations,
      'waiting in lanes': lanes.waiting,
      'spans that have not ended': this.#spans.count,
      'missing from the quota': 60 - Math.min(60, Math.round(level)),
    };
  }

  #call(at: number): Promise<void> {
    const conversation = `c-${Math.floor(at / 100) * 20 + (at % 20)}`;
    switch (at % 12) {
      case 0:
      case 1:
        return this.#answered(
          at,
          chat(this.#openai, { model: 'fine', messages }, this.#options()),
          'fine',
          conversation,
        );
      case 2:
        return this.#answered(
          at,
          complete(this.#openai, { model: 'fine', messages }, this.#options()),
          'fine',
          conversation,
        );
      case 3:
        return this.#answered(
          at,
          respond(this.#openai, { model: 'fine', input: 'Hello' }, this.#options()),
          'fine',
          conversation,
        );
      case 4:
        return this.#answered(at, this.#embeddings('fine'), 'fine', conversation);
      case 5:
        return this.#iterated(at, conversation);
      case 6:
        return this.#failed(at, 'failing', conversation);
      case 7:
        return this.#failed(at, 'cut', conversation);
      case 8:
        return this.#cancelledQueued(at, conversation);
      case 9:
        return this.#cancelledSilent(
          at,
          chat(this.#openai, { model: 'silent', messages }, this.#options()),
          conversation,
        );
      case 10:
        return this.#cancelledSilent(at, this.#embeddings('silent'), conversation);
      default:
        return this.#cancelledStreaming(at, conversation);
    }
  }

  #options() {
    return { runtime: this.#runtime };
  }

  #embeddings(model: string): Observable<unknown> {
    const ask = (signal: AbortSignal) =>
      this.#openai.embeddings.create({ model, input: 'Hello' }, { signal, maxRetries: 0 });
    return fromCall(ask, { model, runtime: this.#runtime });
  }

  /** Everything around a call. `onEvent` hears what happens to it. */
  #around<T>(model: string, conversation: string, onEvent?: EventListener): MonoTypeOperatorFunction<T> {
    const options = { runtime: this.#runtime, onEvent };
    return (source) =>
      source.pipe(
        traceAttempt({ runtime: this.#runtime }),
        throttleByBucket(this.#quota, options),
        limitConcurrency(this.#limit, options),
        circuitBreak(this.#breakers.of(model), options),
        retryWithJitter({ attempts: 2, baseMs: 2, capMs: 5, runtime: this.#runtime }),
        inConversation(this.#lanes, conversation, options),
        traceCall({ telemetry: this.#spans.telemetry, runtime: this.#runtime }),
        takeUntil(fromEvent(this.#signal, 'abort')),
      );
  }

  async #answered(at: number, source: Observable<unknown>, model: string, conversation: string): Promise<void> {
    let values = 0;
    await this.#ends(
      at,
      'answered',
      source.pipe(
        this.#around(model, conversation),
        tap(() => values++),
      ),
      (error) => error === undefined && values > 0,
    );
  }

  /** A loop that takes the signal itself; every other one leaves in the middle. */
  async #iterated(at: number, conversation: string): Promise<void> {
    const source = chat(this.#openai, { model: 'fine', messages }, this.#options());
    const pieces = toAsyncIterable(source.pipe(this.#around('fine', conversation), text()), { signal: this.#signal });
    try {
      for await (const piece of pieces) {
        if (piece !== '' && at % 24 > 12) return this.#count('cancelled in mid-stream');
      }
      this.#count('answered');
    } catch (error) {
      this.#otherwise(at, error);
    }
  }

  #failed(at: number, model: string, conversation: string): Promise<void> {
    const source = chat(this.#openai, { model, messages }, this.#options());
    const expected = new Set(['server_error', 'stream_truncated', 'circuit_open']);
    return this.#ends(
      at,
      'failed',
      source.pipe(this.#around(model, conversation)),
      (error) => isSluiceError(error) && expected.has(error.code),
    );
  }

  /** Leaves as soon as it waits for anything: lane, slot or quota. */
  #cancelledQueued(at: number, conversation: string): Promise<void> {
    const leave$ = new Subject<void>();
    let sent = false;
    const onEvent = ({ type }: SluiceEvent): void => {
      sent ||= type === 'attempt.started';
      // Some at once, within the very call that queues them, and some later.
      if (sent || (type === 'queued' && at % 24 < 12)) leave$.next();
      else if (type === 'queued') setTimeout(() => leave$.next(), at % 7);
    };
    const source = chat(this.#openai, { model: 'silent', messages }, { ...this.#options(), onEvent });
    const guarded = source.pipe(this.#around('silent', conversation, onEvent), takeUntil(leave$));
    const fate = () => (sent ? 'cancelled before headers' : 'cancelled queued');
    return this.#ends(at, fate, guarded, (error) => error === undefined);
  }

  #cancelledSilent(at: number, source: Observable<unknown>, conversation: string): Promise<void> {
    const leave$ = new Subject<void>();
    const sent$ = defer(() => {
      setTimeout(() => leave$.next(), at % 11);
      return source;
    });
    const guarded = sent$.pipe(this.#around('silent', conversation), takeUntil(leave$));
    return this.#ends(at, 'cancelled before headers', guarded, (error) => error === undefined);
  }

  #cancelledStreaming(at: number, conversation: string): Promise<void> {
    const source = chat(this.#openai, { model: 'slow', messages }, this.#options());
    const guarded = source.pipe(this.#around('slow', conversation), take(1 + (at % 5)));
    return this.#ends(at, 'cancelled in mid-stream', guarded, (error) => error === undefined);
  }

  #ends(
    at: number,
    fate: Fate | (() => Fate),
    source: Observable<unknown>,
    meant: (error: unknown) => boolean,
  ): Promise<void> {
    return new Promise((resolve) => {
      const end = (error?: unknown): void => {
        if (meant(error)) this.#count(typeof fate === 'string' ? fate : fate());
        else this.#otherwise(at, error);
        resolve();
      };
      source.subscribe({ error: end, complete: () => end() });
    });
  }

  #count(fate: Fate): void {
    this.tally.as[fate] = (this.tally.as[fate] ?? 0) + 1;
  }

  #otherwise(at: number, error: unknown): void {
    const what = isSluiceError(error) ? `${error.code}: ${error.message}` : String(error);
    this.tally.otherwise.push(`kind ${at % 12}: ${what}`);
  }
}
