import OpenAI from 'openai';
import { createClient } from 'redis';
import { chat, inConversation, isSluiceError } from '../../../lib/index.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';

// A process that asks for turns of conversations, as the one that started it says, and tells how each went.

export interface LanesChildOptions {
  readonly redisPort: number;
  readonly baseURL: string;
  readonly leaseMs: number;
}

/** Subscribes to a turn: `number` is its number in the conversation. */
export interface TurnOrder {
  readonly conversation: string;
  readonly number: number;
  readonly model: string;
}

/** What became of it. */
export interface TurnReport extends TurnOrder {
  readonly type: 'queued' | 'granted' | 'ended';
  /** `answered`, or the code of the error. */
  readonly result: string;
  /** By the wall clock, which the processes share. */
  readonly atMs: number;
}

const { redisPort, baseURL, leaseMs } = JSON.parse(process.argv[2] ?? '{}') as LanesChildOptions;
const redis = createClient({ socket: { port: redisPort, host: '127.0.0.1' } });
await redis.connect();
const openai = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
const lanes = redisStore(redis, { leaseMs, commandTimeoutMs: 2000 }).lanes('talks', {
  maxWaiting: Infinity,
  maxWaitMs: 120_000,
});

process.on('disconnect', () => process.exit());
process.on('message', (order: TurnOrder) => {
  const { conversation, number, model } = order;
  const report = (type: TurnReport['type'], result = ''): void => {
    const told: TurnReport = { ...order, type, result, atMs: Date.now() };
    process.send?.(told);
  };
  const messages = [{ role: 'user' as const, content: String(number) }];
  chat(openai, { model, user: conversation, messages })
    .pipe(
      inConversation(lanes, conversation, {
        onEvent: ({ type }) => {
          if (type === 'queued' || type === 'granted') report(type);
        },
      }),
    )
    .subscribe({
      error: (error: unknown) => report('ended', isSluiceError(error) ? error.code : 'unknown'),
      complete: () => report('ended', 'answered'),
    });
});
process.send?.('ready');
