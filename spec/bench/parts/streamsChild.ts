import OpenAI from 'openai';
import { chat, createQuota, createSluice, throttleByBucket } from '../../../lib/index.ts';
import { fullOptions, fullPolicy } from './fullPolicy.ts';
import type { StreamsWay } from './streamRuns.ts';

// Started by streamRuns.ts: opens streams, says what they weigh while all of them are open, and reads them to their end.

const [baseURL = '', way = '', count = '0'] = process.argv.slice(2);
const LONG_MS = 600_000;
const timeouts = { headersMs: LONG_MS, firstContentMs: LONG_MS, idleMs: LONG_MS };
const openai = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, timeout: LONG_MS });
/** As many at a time as a server of one process can accept without dropping any. */
const OPENING = 200;

/** Reads one stream, and tells of its first content. */
type Read = (maxTokens: number, onContent: () => void) => Promise<void>;

const requestOf = (maxTokens: number) => ({
  model: 'gpt-5.5',
  messages: [{ role: 'user' as const, content: 'Say hello.' }],
  max_completion_tokens: maxTokens,
});

function readerOf(name: StreamsWay): Read {
  if (name === 'bare') {
    return async (maxTokens, onContent) => {
      const stream = await openai.chat.completions.create({ ...requestOf(maxTokens), stream: true });
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) onContent();
    };
  }
  if (name === 'chat') {
    const quota = createQuota({ requestsPerMinute: 1e9 });
    return (maxTokens, onContent) =>
      chat(openai, requestOf(maxTokens), { timeouts }).pipe(throttleByBucket(quota)).forEach(onContent);
  }
  const most = 20_000;
  const { models, ...rest } = fullPolicy;
  const sluice = createSluice(openai, {
    ...rest,
    maxInFlight: most,
    models: {
      default: { ...models?.['gpt-5.5'], concurrency: { limit: most }, fallback: [], fallbackOn: {}, timeouts },
    },
    tenants: { default: { maxInFlight: most } },
    priorities: { order: ['interactive', 'batch'] },
    deadlineMs: LONG_MS,
  });
  let conversation = 0;
  return (maxTokens, onContent) =>
    sluice.chat(requestOf(maxTokens), { ...fullOptions, conversation: `c-${conversation++}` }).forEach(onContent);
}

const read = readerOf(way as StreamsWay);

/**
 * Opens them, waits until each has content, tells `allOpen` how many have ended by then, and reads all to the end. Returns
 * how many failed.
 */
async function run(streams: number, maxTokens: number, allOpen: (ended: number) => void): Promise<number> {
  let failed = 0;
  let ended = 0;
  let next = 0;
  const ends: Promise<void>[] = [];
  const open = async (): Promise<void> => {
    while (next++ < streams) {
      await new Promise<void>((opened) => {
        const end = read(maxTokens, opened).catch(() => void failed++);
        const over = (): void => {
          ended++;
          opened();
        };
        ends.push(end.finally(over));
      });
    }
  };
  await Promise.all(Array.from({ length: OPENING }, open));
  allOpen(ended);
  await Promise.all(ends);
  return failed;
}

const inUse = (): { readonly heap: number; readonly resident: number } => {
  (globalThis as unknown as { gc(): void }).gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, resident: rss };
};

await run(500, 1, () => {});
const before = inUse();
let after = before;
let early = 0;
const streams = Number(count);
const failed = await run(streams, 2, (ended) => {
  early = ended;
  after = inUse();
});
process.send?.({
  failed,
  early,
  heapBytes: (after.heap - before.heap) / streams,
  residentBytes: (after.resident - before.resident) / streams,
});
process.disconnect?.();
process.exit();
