import OpenAI from 'openai';
import { createClient } from 'redis';
import { chat, createQuota, createSluice, throttleByBucket } from '../../../lib/index.ts';
import type { EventListener, QuotaPort } from '../../../lib/index.ts';
import { redisStore } from '../../../lib/stores/redis/index.ts';
import type { RedisStore } from '../../../lib/stores/redis/index.ts';
import type { CallDone, WorkerOrder, WorkerPlan } from './StoreWorkers.ts';

// Started by StoreWorkers.ts, with a plan. Makes calls as it is told, and tells of each one once it has ended. Ends with
// whoever started it.

const plan = JSON.parse(process.argv[2] ?? '{}') as WorkerPlan;
const openai = new OpenAI({ baseURL: plan.baseURL, apiKey: 'none', maxRetries: 0 });
/** The same clock in all processes. */
const now = (): number => performance.timeOrigin + performance.now();
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A call, and when its attempt was sent and its first content came. */
type Ask = (prompt: string, sent: () => void, content: () => void) => Promise<void>;

function through(quota: QuotaPort): Ask {
  return (prompt, sent, content) =>
    chat(
      openai,
      { model: plan.model, messages: [{ role: 'user', content: prompt }] },
      { onEvent: ({ type }) => type === 'attempt.started' && sent() },
    )
      .pipe(throttleByBucket(quota))
      .forEach(content);
}

async function storeOf(): Promise<RedisStore> {
  const client = createClient({ socket: { host: '127.0.0.1', port: plan.redisPort, reconnectStrategy: 50 } });
  await client.connect();
  return redisStore(client, {
    ...plan.store,
    onChange: ({ type, reason }) => process.send?.({ kind: 'change', type, reason, at: now() }),
  });
}

const ways: Record<WorkerPlan['way'], () => Promise<Ask>> = {
  async local() {
    return through(createQuota(plan.rates));
  },
  async store() {
    const store = await storeOf();
    const { maxWaitMs, ...rates } = plan.rates;
    const quotas = store.quotas('prove', { maxWaitMs });
    return through(quotas.route([{ ...rates, name: 'account' }, { name: `model:${plan.model}` }]));
  },
  async client() {
    let hear = (): void => {};
    const onCall = (): { readonly onEvent: EventListener } => {
      const sent = hear;
      return { onEvent: ({ type }) => type === 'attempt.started' && sent() };
    };
    const policy = {
      deadlineMs: 120_000,
      quota: { account: plan.rates },
      models: { default: { retry: { attempts: 1 } } },
    };
    const sluice = createSluice(openai, policy, { store: await storeOf(), telemetry: { onCall } });
    return (prompt, sent, content) => {
      hear = sent;
      return sluice.chat({ model: plan.model, messages: [{ role: 'user', content: prompt }] }).forEach(content);
    };
  },
};

const open = new Map<WorkerPlan['way'], Promise<Ask>>();
async function askBy(way: WorkerPlan['way']): Promise<Ask> {
  const known = open.get(way) ?? ways[way]();
  open.set(way, known);
  return known;
}

let ask = await askBy(plan.way);
let running = true;
const calls = new Set<Promise<void>>();

async function call(prompt: string): Promise<void> {
  const done: CallDone = { kind: 'call', askedAt: now(), sentAt: undefined, contentAt: undefined, code: undefined };
  try {
    await ask(
      prompt,
      () => (done.sentAt ??= now()),
      () => (done.contentAt ??= now()),
    );
  } catch (error) {
    done.code = (error as { code?: string }).code ?? 'error';
  }
  process.send?.(done);
}

function begin(work: Promise<void>): void {
  calls.add(work);
  void work.finally(() => calls.delete(work));
}

async function obey(order: WorkerOrder): Promise<void> {
  running = true;
  switch (order.kind) {
    case 'way':
      ask = await askBy(order.way);
      process.send?.({ kind: 'ready' });
      return;
    case 'warm':
      await Promise.all(
        Array.from({ length: 10 }, () =>
          chat(openai, { model: 'warm-up', messages: [{ role: 'user', content: 'Hello' }] }).forEach(() => {}),
        ),
      );
      process.send?.({ kind: 'warm' });
      return;
    case 'at':
      for (const at of order.times) begin(sleep(at - now()).then(() => call('at')));
      return;
    case 'loops':
      for (let i = 0; i < order.count; i++) {
        begin(
          (async () => {
            while (running) await call('loop');
          })(),
        );
      }
      return;
    case 'end':
      running = false;
      await Promise.all(calls);
      process.send?.({ kind: 'ended' });
  }
}

process.on('message', (order: WorkerOrder) => void obey(order));
process.on('disconnect', () => process.exit());
process.send?.({ kind: 'ready' });
