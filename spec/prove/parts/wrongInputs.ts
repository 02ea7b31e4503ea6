import type OpenAI from 'openai';
import { lastValueFrom, NEVER, of } from 'rxjs';
import {
  chat,
  complete,
  concatByConversation,
  createBreaker,
  createConcurrencyLimit,
  createLanes,
  createQuota,
  createQuotas,
  inConversation,
  isSluiceError,
  limitConcurrency,
  respond,
  retryWithJitter,
  throttleByBucket,
  toAsyncIterable,
  TokenBucket,
  withDeadline,
} from '../../../lib/index.ts';
import type { ChatRequest, ResponseRequest, SluiceError } from '../../../lib/index.ts';

/** Something wrong that a user may write. */
export interface WrongInput {
  readonly input: string;
  /** What the one error must say: of what, what is accepted, and what came. */
  readonly names: readonly [field: string, rule: string, value: string];
  readonly code: 'invalid_option' | 'invalid_request' | 'cost_too_large';
  /** `'made'`: the factory or operator throws. `'emitted'`: the call fails, and nothing is sent. */
  readonly when: 'made' | 'emitted';
  run(openai: OpenAI): unknown;
}

const quota = createQuota({ requestsPerMinute: 600, tokensPerMinute: 1000 });
const messages = [{ role: 'user' as const, content: 'Hello' }];
const REQUEST = { model: 'm', messages };

/** Not every caller is type-checked. */
function any<T>(value: unknown): T {
  return value as T;
}

const NUMBER = 'finite and above 0';
const TEXT = 'a string that is not empty';

function made(input: string, field: string, rule: string, value: string, run: () => unknown): WrongInput {
  return { input, names: [field, rule, value], code: 'invalid_option', when: 'made', run };
}

function asked(
  input: string,
  field: string,
  rule: string,
  value: string,
  run: (openai: OpenAI) => unknown,
): WrongInput {
  return { input, names: [field, rule, value], code: 'invalid_request', when: 'emitted', run };
}

const chatOf = (request: unknown) => (openai: OpenAI) => chat(openai, any<ChatRequest>(request));
const completeOf = (request: unknown) => (openai: OpenAI) => complete(openai, any<ChatRequest>(request));
const respondOf = (request: unknown) => (openai: OpenAI) => respond(openai, any<ResponseRequest>(request));

export const wrongInputs: readonly WrongInput[] = [
  ...[0, -1, NaN, Infinity].flatMap((value) => [
    made(
      `a bucket of capacity ${value}`,
      'capacity',
      NUMBER,
      String(value),
      () => new TokenBucket({ capacity: value, refillPerSecond: 1 }, 0),
    ),
    made(
      `a bucket refilled by ${value}`,
      'refillPerSecond',
      NUMBER,
      String(value),
      () => new TokenBucket({ capacity: 1, refillPerSecond: value }, 0),
    ),
    made(`a quota of ${value} requests a minute`, 'requestsPerMinute', NUMBER, String(value), () =>
      createQuota({ requestsPerMinute: value }),
    ),
    made(`a quota with a burst of ${value}`, 'burstRequests', NUMBER, String(value), () =>
      createQuota({ requestsPerMinute: 60, burstRequests: value }),
    ),
    made(`a layer of ${value} tokens a minute`, 'model', NUMBER, String(value), () =>
      createQuota({ layers: { model: { tokensPerMinute: value } } }),
    ),
    made(`a tenant's quota of ${value}`, 'tenants.acme', NUMBER, String(value), () =>
      createQuotas({ tenants: { acme: { requestsPerMinute: value } } }),
    ),
  ]),
  ...[0, -1, NaN, 1.5].map((value) =>
    made(`a limit of ${value} at once`, 'limit', 'a whole number of at least 1', String(value), () =>
      createConcurrencyLimit(value),
    ),
  ),
  made('a quota without a rate', 'requestsPerMinute', NUMBER, 'NaN', () => createQuota({})),
  made('a quota given as text', 'requestsPerMinute', NUMBER, 'a string of 2 characters', () =>
    createQuota({ requestsPerMinute: any('60') }),
  ),
  made('a negative cost', 'cost', 'finite and 0 or more', '-1', () => throttleByBucket(quota, { cost: -1 })),
  made('a cost that is no number', 'cost.tokens', 'finite and 0 or more', 'NaN', () =>
    throttleByBucket(quota, { cost: { tokens: NaN } }),
  ),
  made('an empty tenant', 'tenant', TEXT, 'an empty string', () => throttleByBucket(quota, { tenant: '' })),
  made('a wait that is no number', 'maxWaitMs', '0 or more, or Infinity', 'NaN', () =>
    limitConcurrency(createConcurrencyLimit(1), { maxWaitMs: NaN }),
  ),
  made('no attempts', 'attempts', 'at least 1', '0', () => retryWithJitter({ attempts: 0 })),
  made('a deadline that is no number', 'deadlineMs', 'above 0', 'NaN', () => withDeadline(NaN)),
  made('an error ratio above 1', 'errorRatio', 'at most 1', '1.5', () => createBreaker({ errorRatio: 1.5 })),
  made('a buffer of 0', 'bufferSize', 'a whole number of at least 1', '0', () =>
    toAsyncIterable(NEVER, { bufferSize: 0 }),
  ),
  made('an empty conversation', 'conversation', TEXT, 'an empty string', () => inConversation(createLanes(), '')),
  made('a conversation that is missing', 'conversation', TEXT, 'undefined', () =>
    inConversation(createLanes(), any(undefined)),
  ),
  asked('an empty conversation, asked for later', 'conversation', TEXT, 'an empty string', () =>
    of('value').pipe(
      concatByConversation(
        () => '',
        (value) => of(value),
      ),
    ),
  ),
  asked('an empty conversation, at the port', 'conversation', TEXT, 'an empty string', () =>
    createLanes().acquire({ conversation: '' }),
  ),
  asked('a request without a model', 'model', TEXT, 'undefined', chatOf({ messages })),
  asked('an empty model', 'model', TEXT, 'an empty string', chatOf({ ...REQUEST, model: '' })),
  asked('an empty model, not streamed', 'model', TEXT, 'an empty string', completeOf({ ...REQUEST, model: '' })),
  asked('a response without a model', 'model', TEXT, 'undefined', respondOf({ input: 'Hello' })),
  asked('a request without messages', 'messages', 'an array that is not empty', 'undefined', chatOf({ model: 'm' })),
  asked('`chat` with `stream: false`', 'stream', 'true', 'false', chatOf({ ...REQUEST, stream: false })),
  asked(
    '`respond` with `stream: false`',
    'stream',
    'true',
    'false',
    respondOf({ model: 'm', input: 'Hello', stream: false }),
  ),
  asked('`complete` with `stream: true`', 'stream', 'false', 'true', completeOf({ ...REQUEST, stream: true })),
  {
    input: "a named cost above one minute's rate",
    names: ['cost', '1000 tokens a minute', '1001'],
    code: 'cost_too_large',
    when: 'emitted',
    run: (openai) => chat(openai, REQUEST).pipe(throttleByBucket(quota, { cost: 1001 })),
  },
];

export interface Answered {
  readonly error: SluiceError | undefined;
  readonly when: WrongInput['when'] | undefined;
}

/** What a wrong input is answered with. */
export async function answerOf(input: WrongInput, openai: OpenAI): Promise<Answered> {
  let made: unknown;
  try {
    made = input.run(openai);
  } catch (error) {
    return { error: isSluiceError(error) ? error : undefined, when: 'made' };
  }
  if (input.when === 'made') return { error: undefined, when: undefined };
  try {
    await lastValueFrom(made as never, { defaultValue: undefined });
  } catch (error) {
    return { error: isSluiceError(error) ? error : undefined, when: 'emitted' };
  }
  return { error: undefined, when: undefined };
}
