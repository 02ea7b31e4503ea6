import { expect } from 'chai';
import OpenAI from 'openai';
import { lastValueFrom } from 'rxjs';
import { chat, circuitBreak, createBreaker, retryWithJitter } from '../../lib/index.ts';
import type { ChatRequest } from '../../lib/index.ts';
import { heapInUse } from '../helpers/heap.ts';
import { chatChunks, scriptedFetch } from '../helpers/scriptedFetch.ts';
import type { FetchReply } from '../helpers/scriptedFetch.ts';

const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Say hello.' }] };

describe('chat over a client that keeps what it knows of requests', () => {
  const kept: unknown[] = [];

  afterEach(() => void (kept.length = 0));

  /** Something that only the operators of one call hold, which has ended by now. */
  async function heldByCall(reply: FetchReply): Promise<WeakRef<object>> {
    const fetch = scriptedFetch([reply], (_at, init) => kept.push(init));
    const client = new OpenAI({ apiKey: 'none', baseURL: 'http://localhost/v1', fetch });
    const shouldRetry = (): boolean => false;
    const answer$ = chat(client, request).pipe(circuitBreak(createBreaker()), retryWithJitter({ shouldRetry }));
    await lastValueFrom(answer$).catch(() => {});
    return new WeakRef(shouldRetry);
  }

  const endings: readonly (readonly [string, FetchReply])[] = [
    ['answered', { chunks: chatChunks(['a', 'b']) }],
    ['refused', { status: 429, json: { error: { message: 'slow down' } } }],
    ['broken off', { chunks: chatChunks(['a', 'b']), end: 'reset' }],
  ];
  for (const [how, reply] of endings) {
    it(`lets go of a call that was ${how}`, async () => {
      const held = await heldByCall(reply);
      await heapInUse();
      await heapInUse();
      expect(kept).to.have.length(1);
      expect(held.deref()).to.equal(undefined);
    });
  }
});
