import OpenAI from 'openai';
import type { Subscription } from 'rxjs';
import type { Answer } from '../../../lib/core/answer.ts';
import { isSluiceError } from '../../../lib/core/errors.ts';
import type { SluiceError } from '../../../lib/core/errors.ts';
import type { SluiceEvent, SluiceFact } from '../../../lib/core/events.ts';
import type { AnswerPart } from '../../../lib/operators/answerPart.ts';
import type { ClassifyFailure } from '../../../lib/sources/AttemptOptions.ts';
import { AnswerAssembler } from '../../../lib/wire/AnswerAssembler.ts';
import { byHand, gatesOf, requestOf } from './byHand.ts';
import type { Api } from './byHand.ts';
import { CaseTime } from './CaseTime.ts';
import { installedTwice } from './installedTwice.ts';
import { ScriptedUpstream } from './ScriptedUpstream.ts';
import type { SeenRequest } from './ScriptedUpstream.ts';
import type { UpstreamInput } from './upstreamCase.ts';

/** What came of one run of a case. Times are virtual. */
export interface UpstreamFacts {
  readonly result: 'ok' | 'error' | 'aborted' | 'running';
  readonly settledAtMs: number | undefined;
  readonly leftAtMs: number | undefined;
  readonly error: SluiceError | undefined;
  readonly answer: Answer;
  readonly chunks: readonly { readonly value: AnswerPart; readonly requestsBefore: number }[];
  readonly errorNotifications: number;
  readonly uncaught: number;
  readonly requests: readonly SeenRequest[];
  readonly events: readonly SluiceEvent[];
  readonly cancels: number;
  /** Of the library, when it had settled. */
  readonly pendingTimers: number;
  readonly longestTimerMs: number;
  readonly slotsInUse: number;
  readonly quotaTaken: number;
  readonly breakerFailures: (model: string) => number;
  readonly callerRequestUnchanged: boolean;
}

export interface RunOptions {
  readonly api?: Api;
  readonly classify?: ClassifyFailure;
  /** Where a case does not end by itself. */
  readonly untilMs?: number;
}

/** How long the aftermath of a call may take: a body that ends by itself, a reader that settles. */
const AFTERMATH_MS = 2_000;

export async function runUpstream(input: UpstreamInput, options: RunOptions = {}): Promise<UpstreamFacts> {
  const { api = 'chat', classify, untilMs = 3_600_000 } = options;
  const time = new CaseTime();
  const runtime = time.runtime();
  const upstream = new ScriptedUpstream(input.script, time.runtime());
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtExceptionMonitor', onUncaught);
  const requestBefore = JSON.stringify(input.request);
  const baseURL = await upstream.start();
  try {
    const client = new OpenAI({ apiKey: 'sk-case', baseURL, ...input.client, fetch: upstream.fetch as typeof fetch });
    const gates = gatesOf(input, runtime);
    const levelBefore = gates.quotas.of('m1').snapshot().layers[0]?.requests?.level ?? 0;
    const consumer = new Consumer(time, upstream, input.consumer?.unsubscribe_after_chunks);
    const abort = new AbortController();
    const events: SluiceEvent[] = [];
    const onEvent = (event: SluiceEvent): void => void events.push(event);
    const abortAtMs = abortAt(input);
    if (abortAtMs !== undefined) {
      const clock = time.runtime();
      clock.scheduler.schedule(() => abort.abort(abortReason(input)), abortAtMs);
    }
    const parts = { input, api, client, runtime, signal: abort.signal, classify, onEvent };
    consumer.follow(input.nest === undefined ? byHand(parts, gates) : installedTwice(parts));
    const quiet = (): boolean => upstream.quiet();
    await time.run(() => consumer.settledAtMs !== undefined, untilMs, quiet);
    const pendingTimers = runtime.pending;
    if (consumer.settledAtMs !== undefined) await time.run(() => false, time.nowMs + AFTERMATH_MS, quiet);
    const slotsInUse = gates.limit.snapshot().inFlight;
    const level = gates.quotas.of('m1').snapshot().layers[0]?.requests?.level ?? 0;
    return {
      ...consumer.facts(),
      uncaught: uncaught.length,
      requests: upstream.requests,
      events,
      cancels: upstream.cancels,
      pendingTimers,
      longestTimerMs: runtime.longestTimerMs,
      slotsInUse,
      quotaTaken: Math.max(0, Math.round(levelBefore - level)),
      breakerFailures: (model) => gates.breakers.of(model).snapshot().failures,
      callerRequestUnchanged: JSON.stringify(input.request) === requestBefore && requestOf(input) !== input.request,
    };
  } finally {
    await upstream.stop();
    process.off('uncaughtExceptionMonitor', onUncaught);
  }
}

/** The facts of one kind, without whom they belong to. */
export function eventsOf<T extends SluiceFact['type']>(
  { events }: Pick<UpstreamFacts, 'events'>,
  type: T,
): readonly (SluiceEvent & { readonly type: T })[] {
  return events.filter((event): event is SluiceEvent & { readonly type: T } => event.type === type);
}

function abortAt({ abort_at_ms: atMs, request }: UpstreamInput): number | undefined {
  const timeout = /^AbortSignal\.timeout\((\d+)\)$/.exec((request?.['signal'] as string | undefined) ?? '')?.[1];
  return timeout === undefined ? atMs : Number(timeout);
}

function abortReason({ abort_reason: reason, request }: UpstreamInput): unknown {
  if (request?.['signal'] === undefined) return reason;
  return new DOMException('The operation was aborted due to timeout', 'TimeoutError');
}

/** Whoever subscribed, and what came to them. */
class Consumer {
  readonly #time: CaseTime;
  readonly #upstream: ScriptedUpstream;
  readonly #leaveAfter: number;
  readonly #assembler = new AnswerAssembler();
  readonly #chunks: { value: AnswerPart; requestsBefore: number }[] = [];
  #subscription: Subscription | undefined;
  #result: UpstreamFacts['result'] = 'running';
  #error: SluiceError | undefined;
  #errors = 0;
  #leftAtMs: number | undefined;
  settledAtMs: number | undefined;

  constructor(time: CaseTime, upstream: ScriptedUpstream, leaveAfter = Infinity) {
    this.#time = time;
    this.#upstream = upstream;
    this.#leaveAfter = leaveAfter;
  }

  follow(answer$: ReturnType<typeof byHand>): void {
    this.#subscription = answer$.subscribe({
      next: (value) => this.#next(value),
      error: (error: unknown) => {
        this.#errors++;
        this.#error = isSluiceError(error) ? error : undefined;
        if (this.#error === undefined) throw error;
        this.#settle(this.#error.code === 'aborted' ? 'aborted' : 'error');
      },
      complete: () => this.#settle('ok'),
    });
  }

  facts(): Pick<
    UpstreamFacts,
    'result' | 'settledAtMs' | 'leftAtMs' | 'error' | 'answer' | 'chunks' | 'errorNotifications'
  > {
    return {
      result: this.#result,
      settledAtMs: this.settledAtMs,
      leftAtMs: this.#leftAtMs,
      error: this.#error,
      answer: this.#assembler.snapshot(),
      chunks: this.#chunks,
      errorNotifications: this.#errors,
    };
  }

  #next(value: AnswerPart): void {
    this.#chunks.push({ value, requestsBefore: this.#upstream.requests.length });
    const { type } = value as { type?: unknown };
    if (typeof type === 'string') this.#assembler.addResponses(value);
    else this.#assembler.addChat(value);
    if (this.#chunks.length < this.#leaveAfter) return;
    this.#leftAtMs = this.#time.nowMs;
    this.#subscription?.unsubscribe();
    this.#settle('aborted');
  }

  #settle(result: UpstreamFacts['result']): void {
    if (this.settledAtMs !== undefined) return;
    this.settledAtMs = this.#time.nowMs;
    if (result === 'aborted') this.#leftAtMs ??= this.#time.nowMs;
    this.#result = result;
  }
}
