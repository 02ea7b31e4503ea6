import type OpenAI from 'openai';
import { CallScope, chat, createQuota, startTimer, systemRuntime, throttleByBucket } from '../../../lib/index.ts';
import type { Runtime, Sluice } from '../../../lib/index.ts';
import type { EmulatorOptions, EmulatorReport } from '../../../lib/emulator/index.ts';
import { scoped } from '../../../lib/operators/scoped.ts';
import { seededRandom } from '../../../lib/testing/seededRandom.ts';
import { bestSchedule, percentile } from '../../helpers/ProviderBucket.ts';
import { LoopWatch } from './LoopWatch.ts';

/** The provider's quota, and how long it takes from a request to the first content. */
export interface Provider {
  readonly requestsPerMinute: number;
  readonly burstRequests: number;
  readonly firstTokenMs: number;
}

export interface LoadResult {
  readonly calls: number;
  readonly answered: number;
  /** What the provider saw. */
  readonly requests: number;
  readonly rateLimited: number;
  /** From the call to its first content. */
  readonly firstContentMs: { readonly p50: number; readonly p95: number; readonly p99: number };
  /** The same at best, first come first served: by the provider's bucket, these arrivals and its own latency. */
  readonly bestP95Ms: number;
  readonly tookMs: number;
  /** What the machine added: the latest timer, and what p95 of the service took beyond the provider's latency. */
  readonly lateMs: number;
  readonly serviceLateMs: number;
  /** How much longer the way of one request to the provider was than that of another. */
  readonly delaySpreadMs: number;
}

/** What {@link runLoad} asks of the emulator, in this process or in another. */
export interface Reporting {
  reset(): void | Promise<void>;
  report(): EmulatorReport | Promise<EmulatorReport>;
}

/** What is told of one call. */
export interface CallMarks {
  dispatched(atMs: number): void;
  content(): void;
}

/** Makes one call; rejects if it fails. */
export type Ask = (prompt: string, marks: CallMarks) => Promise<void>;

const MODEL = 'gpt-5.5';

/** `spread` calls at random times over `overMs`, and `burst` at once after a quarter of it. */
export function mixedLoad(spread: number, burst: number, overMs: number, seed = 1): number[] {
  const random = seededRandom(seed);
  const arrivals = Array.from({ length: spread }, () => random() * overMs);
  return [...arrivals, ...Array<number>(burst).fill(overMs / 4)].sort((a, b) => a - b);
}

export function sluiceAsk(openai: OpenAI, provider: Provider, runtime: Runtime, arrivalMarginMs?: number): Ask {
  const { requestsPerMinute, burstRequests } = provider;
  const quota = createQuota({ requestsPerMinute, burstRequests, arrivalMarginMs }, runtime);
  return (prompt, marks) =>
    chat(
      openai,
      { model: MODEL, messages: [{ role: 'user', content: prompt }] },
      { runtime, onEvent: ({ type, atMs }) => type === 'attempt.started' && marks.dispatched(atMs) },
    )
      .pipe(throttleByBucket(quota, { runtime }))
      .forEach(() => marks.content());
}

/** Through a policy. */
export function policyAsk(sluice: Sluice, runtime: Runtime): Ask {
  return async (prompt, marks) => {
    const messages = [{ role: 'user' as const, content: prompt }];
    const scope = CallScope.start(runtime, {
      onEvent: ({ type, atMs }) => type === 'attempt.started' && marks.dispatched(atMs),
    });
    await scoped(sluice.chat({ model: MODEL, messages }), scope, undefined).forEach(() => marks.content());
  };
}

/** The SDK as it comes, with its own retries. */
export function bareAsk(openai: OpenAI): Ask {
  return async (prompt, marks) => {
    const messages = [{ role: 'user' as const, content: prompt }];
    const stream = await openai.chat.completions.create({ model: MODEL, messages, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) marks.content();
  };
}

/** A network whose delay swings between `maxMs` and nothing once a second, as one with other traffic does. */
export function swinging(maxMs: number): typeof fetch {
  const startMs = performance.now();
  return async (input, init) => {
    const phase = ((performance.now() - startMs) / 1000) * 2 * Math.PI;
    await new Promise((resolve) => setTimeout(resolve, (maxMs / 2) * (1 + Math.cos(phase))));
    return fetch(input, init);
  };
}

/** When what became of one call. `NaN` for what did not happen. */
interface Asked {
  readonly askedMs: number;
  sentMs: number;
  contentMs: number;
  answered: boolean;
}

/** Makes calls, and says in the end what came of them. */
export class LoadRun {
  readonly #ask: Ask;
  readonly #runtime: Runtime;
  readonly #calls: Asked[] = [];
  readonly #watch = new LoopWatch();
  readonly #startMs: number;

  constructor(ask: Ask, runtime: Runtime) {
    this.#ask = ask;
    this.#runtime = runtime;
    this.#startMs = runtime.clock.now();
    this.#watch.start();
  }

  get elapsedMs(): number {
    return this.#runtime.clock.now() - this.#startMs;
  }

  get calls(): number {
    return this.#calls.length;
  }

  /** One call. Never rejects. */
  async call(): Promise<void> {
    const call = { askedMs: this.elapsedMs, sentMs: NaN, contentMs: NaN, answered: false };
    const prompt = String(this.#calls.push(call));
    const marks: CallMarks = {
      dispatched: (atMs) => (call.sentMs = atMs - this.#startMs),
      content: () => {
        if (Number.isNaN(call.contentMs)) call.contentMs = this.elapsedMs;
      },
    };
    try {
      await this.#ask(prompt, marks);
      call.answered = true;
    } catch {
      // Counted as not answered.
    }
  }

  /** Call it when all calls have ended. */
  async result({ requestsPerMinute, burstRequests, firstTokenMs }: Provider, emulator: Reporting): Promise<LoadResult> {
    this.#watch.stop();
    const tookMs = this.elapsedMs;
    const { requests, rateLimited, log } = await emulator.report();
    const calls = this.#calls;
    // In the order in which they were asked: timers that are due at once fire in the order of their times.
    const asked = calls.map(({ askedMs }) => askedMs).sort((a, b) => a - b);
    const best = bestSchedule(asked, requestsPerMinute, burstRequests).map(
      (atMs, at) => atMs - asked[at]! + firstTokenMs,
    );
    const answered = calls.filter((call) => call.answered);
    const waits = answered.map(({ askedMs, contentMs }) => contentMs - askedMs);
    const sent = answered.filter(({ sentMs }) => !Number.isNaN(sentMs));
    const services = sent.map(({ sentMs, contentMs }) => contentMs - sentMs);
    // The n-th sent is the n-th to arrive, or near enough to it; the two clocks differ by a constant.
    const inOrder = sent.map(({ sentMs }) => sentMs).sort((a, b) => a - b);
    const delays = log.slice(0, inOrder.length).map(({ arrivedMs }, at) => arrivedMs - inOrder[at]!);
    return {
      calls: calls.length,
      answered: answered.length,
      requests,
      rateLimited: rateLimited.total,
      firstContentMs: { p50: percentile(waits, 0.5), p95: percentile(waits, 0.95), p99: percentile(waits, 0.99) },
      bestP95Ms: percentile(best, 0.95),
      tookMs,
      lateMs: this.#watch.lateMs,
      serviceLateMs: percentile(services, 0.95) - firstTokenMs,
      delaySpreadMs: Math.max(...delays) - Math.min(...delays),
    };
  }
}

/** Makes each call at its time, and waits for all of them. */
export async function runLoad(
  ask: Ask,
  arrivalsMs: readonly number[],
  provider: Provider,
  emulator: Reporting,
  runtime: Runtime = systemRuntime,
): Promise<LoadResult> {
  await emulator.reset();
  const run = new LoadRun(ask, runtime);
  await Promise.all(
    arrivalsMs.map(async (arrivalMs) => {
      await new Promise((resolve) => startTimer(runtime, arrivalMs - run.elapsedMs, () => resolve(undefined)));
      await run.call();
    }),
  );
  return run.result(provider, emulator);
}

/** The first calls of a process pay for the compiler; a model without a quota takes them. */
export async function warmUp(openai: OpenAI): Promise<void> {
  const request = { model: 'warm-up', messages: [{ role: 'user' as const, content: 'Hello' }] };
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 20 }, () => chat(openai, request).forEach(() => {})));
  }
}

/** What {@link startEmulatorProcess} needs for `provider`, besides a model for {@link warmUp}. */
export function emulatorOf({ requestsPerMinute, burstRequests, firstTokenMs }: Provider): EmulatorOptions {
  const models = { [MODEL]: { requestsPerMinute, burstRequests }, 'warm-up': {} };
  return { models, firstTokenMs, tokens: 8, tokenMs: 5 };
}
