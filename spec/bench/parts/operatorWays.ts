import { Observable } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import {
  answer,
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
  systemRuntime,
  text,
  throttleByBucket,
  withDeadline,
} from '../../../lib/index.ts';
import { speakingSource } from '../../helpers/speakingSource.ts';

export type Chunk = ChatCompletionChunk;
export type Operator = OperatorFunction<Chunk, unknown>;

const chunks: readonly Chunk[] = Array.from({ length: 1_000 }, (_, at) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk' as const,
  created: 1_767_225_600,
  model: 'gpt-5.5',
  choices: [{ index: 0, delta: { content: ` word ${at}` }, logprobs: null, finish_reason: null }],
}));

/** Emits at once, and tells its scope what a real source tells. */
export function sourceOf(count: number): Observable<Chunk> {
  // Hand-written: RxJS's own would be measured with it.
  const body = new Observable<Chunk>((subscriber) => {
    for (let at = 0; at < count; at++) subscriber.next(chunks[at] as Chunk);
    subscriber.complete();
  });
  return speakingSource(systemRuntime, body);
}

const ask = (): Observable<Chunk> => sourceOf(1);

const quota = createQuota({ requestsPerMinute: 1e12, burstRequests: 1e12, tokensPerMinute: 1e12 });
const limit = createConcurrencyLimit({ limit: 1_000 });
const breaker = createBreaker();
const lanes = createLanes();
const budget = createRetryBudget();

const throttle = throttleByBucket<Chunk>(quota, { cost: 100 });
const slots = limitConcurrency<Chunk>(limit);
const breaks = circuitBreak<Chunk>(breaker);
const retries = retryWithJitter<Chunk>({ budget });
const falls = fallbackModel<Chunk>(['backup'], ask);
const lane = inConversation<Chunk>(lanes, 'c-17');
const deadline = withDeadline<Chunk>(60_000);

/** All that guard a call, in the documented order. */
export function allOperators(source: Observable<Chunk>): Observable<Chunk> {
  return source.pipe(throttle, slots, breaks, retries, falls, lane, deadline);
}

export const ALL = 'all but text and answer';

/** Each operator by itself, and together. */
export const operatorWays: Readonly<Record<string, Operator>> = {
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
  [ALL]: allOperators,
};
