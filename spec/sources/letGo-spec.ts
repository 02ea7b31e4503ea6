import { expect } from 'chai';
import OpenAI from 'openai';
import { lastValueFrom } from 'rxjs';
import { chat, circuitBreak, createBreaker, createQuota, retryWithJitter, throttleByBucket } from '../../lib/index.ts';
import type { ChatRequest } from '../../lib/index.ts';
import { heapInUse } from '../helpers/heap.ts';
import { chatChunks, scriptedFetch } from '../helpers/scriptedFetch.ts';

const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Say hello.' }] };
const CALLS = 200;

describe('chat over a client that keeps what it knows of requests', () => {
  const kept: unknown[] = [];
  const fetch = scriptedFetch([{ chunks: chatChunks(['a', 'b']) }], (_at, init) => kept.push(init));
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://localhost/v1', fetch });

  /** Bytes that one call leaves behind as long as what its `fetch` was given is kept. */
  async function bytesLeftBy(call: () => Promise<unknown>): Promise<number> {
    for (let at = 0; at < CALLS; at++) await call();
    kept.length = 0;
    const before = await heapInUse();
    for (let at = 0; at < CALLS; at++) await call();
    const after = await heapInUse();
    expect(kept).to.have.length(CALLS);
    kept.length = 0;
    return (after - before) / CALLS;
  }

  it('leaves hardly more of a guarded call than the SDK leaves of its own', async () => {
    const throttle = throttleByBucket<unknown>(createQuota({ requestsPerMinute: 1e9, burstRequests: 1e9 }));
    const guard = circuitBreak<unknown>(createBreaker());
    const guarded = (): Promise<unknown> =>
      lastValueFrom(chat(client, request).pipe(throttle, guard, retryWithJitter<unknown>()));
    const bare = async (): Promise<void> => {
      for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) void chunk;
    };
    const [own, ours] = [await bytesLeftBy(bare), await bytesLeftBy(guarded)];
    expect(ours).to.be.lessThan(own + 5_000);
  });
});
