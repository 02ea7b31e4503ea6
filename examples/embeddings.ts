// Embeds 240 texts in batches through `fromCall`, under a quota of requests and tokens, and retries the one that fails.

import OpenAI from 'openai';
import { bufferCount, concatMap, from, map, mergeMap, range } from 'rxjs';
import { createQuota, estimateCost, fromCall, retryWithJitter, throttleByBucket } from 'sluice';
import { startEmulator } from 'sluice/emulator';

const rates = { requestsPerMinute: 600, burstRequests: 4, tokensPerMinute: 120_000 };
const emulator = await startEmulator({
  ...rates,
  firstTokenMs: 30,
  script: [
    { kind: 'pass', times: 5 },
    { kind: 'error', error: 'server_error' },
  ],
});
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
// The margin is for the first requests of this process, which are slow: see docs/reference/quota.md.
const quota = createQuota({ ...rates, arrivalMarginMs: 300 });
const model = 'text-embedding-3-small';

const embed = (input: string[]) =>
  // The SDK's own retries are off: they would send requests that the quota does not know of.
  fromCall((signal) => openai.embeddings.create({ model, input }, { signal, maxRetries: 0 }), { model }).pipe(
    throttleByBucket(quota, { cost: estimateCost({ input }) }),
    retryWithJitter({ baseMs: 100 }),
  );

const vectors = new Map<string, readonly number[]>();
const startedMs = performance.now();
await range(240)
  .pipe(
    map((number) => `text number ${number}`),
    bufferCount(16),
    // All at once: the quota decides when each of them leaves.
    mergeMap((texts) => embed(texts).pipe(map(({ data }) => ({ texts, data })))),
    concatMap(({ texts, data }) => from(data).pipe(map(({ index, embedding }) => [texts[index], embedding] as const))),
  )
  .forEach(([text = '', vector]) => vectors.set(text, vector));

const { requests, statuses } = emulator.report();
console.log(`${vectors.size} vectors of ${vectors.get('text number 0')?.length} numbers`);
console.log(`${requests} requests in ${((performance.now() - startedMs) / 1000).toFixed(1)} s, by status:`, statuses);
await emulator.close();
