// What each operator costs beside the same source without it: a call from subscribe to complete, and a chunk.
import { map, Observable } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { Bench } from 'tinybench';
import {
  answer,
  CallScope,
  circuitBreak,
  createBreaker,
  createConcurrencyLimit,
  createLanes,
  createQuota,
  createRetryBudget,
  degradeTo,
  fallbackModel,
  inConversation,
  limitConcurrency,
  retryWithJitter,
  runInScope,
  systemRuntime,
  text,
  throttleByBucket,
  withDeadline,
} from '../../lib/index.ts';
import { speakingSource } from '../helpers/speakingSource.ts';
import { writeResults } from '../prove/parts/writeResults.ts';

type Operator = OperatorFunction<ChatCompletionChunk, unknown>;

const SIZES = [1, 10, 100, 1_000] as const;
const ROUNDS = 7;
/** Chunks that one sample takes, so that a clock's grain does not show. */
const CHUNKS_A_SAMPLE = 1_000;

const chunks = Array.from({ length: 1_000 }, (_, at) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk' as const,
  created: 1_767_225_600,
  model: 'gpt-5.5',
  choices: [{ index: 0, delta: { content: ` word ${at}` }, logprobs: null, finish_reason: null }],
}));

/** Emits at once, and tells its scope what a real source tells. */
function sourceOf(count: number): Observable<ChatCompletionChunk> {
  // Hand-written: RxJS's own would be measured with it.
  const body = new Observable<ChatCompletionChunk>((subscriber) => {
    for (let at = 0; at < count; at++) subscriber.next(chunks[at]!);
    subscriber.complete();
  });
  return speakingSource(systemRuntime, body);
}

const quota = createQuota({ requestsPerMinute: 1e12, burstRequests: 1e12, tokensPerMinute: 1e12 });
const limit = createConcurrencyLimit({ limit: 1_000 });
const breaker = createBreaker();
const lanes = createLanes();
const budget = createRetryBudget();
const ask = (): Observable<ChatCompletionChunk> => sourceOf(1);

const throttle = throttleByBucket<ChatCompletionChunk>(quota, { cost: 100 });
const slots = limitConcurrency<ChatCompletionChunk>(limit);
const breaks = circuitBreak<ChatCompletionChunk>(breaker);
const retries = retryWithJitter<ChatCompletionChunk>({ budget });
const falls = fallbackModel<ChatCompletionChunk>(['backup'], ask);
const lane = inConversation<ChatCompletionChunk>(lanes, 'c-17');
const deadline = withDeadline<ChatCompletionChunk>(60_000);

const operators: Record<string, Operator> = {
  throttleByBucket: throttle,
  limitConcurrency: slots,
  circuitBreak: breaks,
  retryWithJitter: retries,
  fallbackModel: falls,
  inConversation: lane,
  withDeadline: deadline,
  degradeTo: degradeTo(() => ask()),
  'text()': text(),
  'answer()': answer(),
  "answer({ emit: 'last' })": answer({ emit: 'last' }),
  'all but text and answer': (source) => source.pipe(throttle, slots, breaks, retries, falls, lane, deadline),
};

const NOTHING = 'nothing';
const PARSING = '`JSON.parse` of each chunk';
const texts = new Map(chunks.map((chunk) => [chunk, JSON.stringify(chunk)]));
const rowsOf: Record<string, Operator> = {
  [NOTHING]: (source) => source,
  [PARSING]: (source) =>
    source.pipe(map((chunk) => JSON.parse(texts.get(chunk as (typeof chunks)[number])!) as unknown)),
  ...operators,
};

/** One call, from subscribe to complete, in a frame of its own as every client makes one. */
function callOnce(source: Observable<unknown>): void {
  let ended = false;
  runInScope(CallScope.start(systemRuntime), () =>
    source.subscribe({
      next: () => {},
      error: (error: unknown) => {
        throw error;
      },
      complete: () => (ended = true),
    }),
  );
  if (!ended) throw new Error('a source that is there at once must end at once');
}

/** Microseconds a call by row and size, once. Rows take turns, so that a busy neighbour slows all of them. */
async function measureOnce(): Promise<Map<string, number>> {
  const bench = new Bench({ time: 25, warmupTime: 10, iterations: 10 });
  const callsIn = new Map<string, number>();
  for (const size of SIZES) {
    for (const [name, operator] of Object.entries(rowsOf)) {
      const source = sourceOf(size).pipe(operator);
      const calls = CHUNKS_A_SAMPLE / size;
      callsIn.set(`${name} ${size}`, Math.min(calls, 200));
      bench.add(`${name} ${size}`, () => {
        for (let call = 0; call < Math.min(calls, 200); call++) callOnce(source);
      });
    }
  }
  await bench.run();
  const out = new Map<string, number>();
  for (const { name, result } of bench.tasks) {
    if (!('latency' in result))
      throw new Error(`${name} failed`, { cause: 'error' in result ? result.error : result.state });
    out.set(name, (result.latency.p50 * 1_000) / (callsIn.get(name) ?? 1));
  }
  return out;
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

// Not counted: the first round finds code that no optimizer has seen.
await measureOnce();
const rounds: Map<string, number>[] = [];
for (let round = 0; round < ROUNDS; round++) rounds.push(await measureOnce());
const usOf = (name: string, size: number): number => median(rounds.map((round) => round.get(`${name} ${size}`)!));
/** What a row adds to nothing: by call (to the first chunk's end) and by further chunk, each the median over the rounds. */
const addedOf = (name: string): { readonly callUs: number; readonly chunkUs: number } => {
  const added = (size: number) => (round: Map<string, number>) =>
    round.get(`${name} ${size}`)! - round.get(`${NOTHING} ${size}`)!;
  return {
    callUs: median(rounds.map(added(1))),
    chunkUs: median(rounds.map((round) => (added(1_000)(round) - added(1)(round)) / 999)),
  };
};

const stack = addedOf('all but text and answer');
await writeResults({
  name: 'operators',
  script: 'bench',
  title: 'What an operator costs',
  text: `
Each operator over a source that is there at once, against the same source without it: microseconds from subscribe to complete for
answers of 1, 10, 100 and 1,000 chunks, and what that adds by call and by chunk. Medians over ${ROUNDS} rounds in one process. Nobody
waits and nothing fails: this is the price of the way that every call takes. *All* is the whole stack in the documented order.

The goal for the whole stack is at most 25 us a call and 0.3 us a chunk; here it is ${stack.callUs.toFixed(1)} us and ${stack.chunkUs.toFixed(2)} us.`,
  rows: [
    ['us', ...SIZES.map(String), 'added by call', 'added by chunk', 'times nothing at 100'],
    ...Object.keys(rowsOf).map((name) => {
      const { callUs, chunkUs } = addedOf(name);
      return [
        name,
        ...SIZES.map((size) => usOf(name, size).toFixed(1)),
        name === NOTHING ? '' : callUs.toFixed(1),
        name === NOTHING ? '' : chunkUs.toFixed(3),
        (usOf(name, 100) / usOf(NOTHING, 100)).toFixed(1),
      ];
    }),
  ],
  claims: [
    [
      'the whole stack adds less to a chunk than half of what parsing it costs',
      stack.chunkUs < addedOf(PARSING).chunkUs / 2,
    ],
  ],
});
