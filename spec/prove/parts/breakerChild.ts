import OpenAI from 'openai';
import { createClient } from 'redis';
import { createSluice, isSluiceError } from '../../../lib/index.ts';
import { redisStore } from '../../../lib/stores/redis/index.ts';
import type { BreakerOrder, BreakerPlan, BreakerTold } from './redisBreaker.ts';

// Started by redisBreaker.ts, with a plan. Asks again and again, and tells what came of each call. Ends with whoever
// started it.

const plan = JSON.parse(process.argv[2] ?? '{}') as BreakerPlan;
// Whoever started it may be gone by then.
const tell = (told: BreakerTold): void => void process.send?.(told, undefined, undefined, () => {});
/** The same clock in all processes. */
const now = (): number => performance.timeOrigin + performance.now();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const openai = new OpenAI({
  baseURL: plan.baseURL,
  apiKey: 'none',
  maxRetries: 0,
  defaultHeaders: { 'x-process': plan.name },
});
const client = createClient({ socket: { host: '127.0.0.1', port: plan.redisPort } });
await client.connect();
const sluice = createSluice(
  openai,
  { deadlineMs: 60_000, models: { default: { breaker: plan.breaker, retry: { attempts: 1 } } } },
  { store: plan.shared ? redisStore(client, { leaseMs: plan.leaseMs, commandTimeoutMs: 10_000 }) : undefined },
);

async function ask(loop: number): Promise<void> {
  let code: string | undefined;
  try {
    await sluice.chat({ model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] }).forEach(() => {});
  } catch (error) {
    code = isSluiceError(error) ? error.code : String(error);
  }
  tell({ kind: 'call', loop: `${plan.name}/${loop}`, at: now(), code });
}

let running = true;
const run = async (loop: number): Promise<void> => {
  while (running) {
    await ask(loop);
    await pause(plan.pauseMs);
  }
};

process.on('message', (order: BreakerOrder) => {
  if (order === 'go') for (let i = 0; i < plan.loops; i++) void run(i);
  else running = false;
});
process.on('disconnect', () => process.exit());
tell({ kind: 'ready' });
