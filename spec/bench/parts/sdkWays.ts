import OpenAI from 'openai';
import type { Observable } from 'rxjs';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { chat, createSluice } from '../../../lib/index.ts';
import { chatReads, streamOf } from './chatReads.ts';
import { fullOptions, fullPolicy, request } from './fullPolicy.ts';
import { allOperators } from './operatorWays.ts';

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-request-id': 'req_8a1f0c7e',
  'x-ratelimit-limit-requests': '1000000000',
  'x-ratelimit-remaining-requests': '999999999',
  'x-ratelimit-reset-requests': '1ms',
  'x-ratelimit-limit-tokens': '1000000000000',
  'x-ratelimit-remaining-tokens': '999999999999',
  'x-ratelimit-reset-tokens': '0s',
};

export const SDK = "the SDK's own loop";
export const FULL = '`createSluice`, full policy';
export const EMPTY = '`createSluice`, empty policy';
export const SOURCE = '`chat` alone';
export const BY_HAND = '`chat` and seven operators';
export const FLOOR = 'request, reads and `JSON.parse` alone';

export type SdkWay = typeof SDK | typeof FULL | typeof EMPTY | typeof SOURCE | typeof BY_HAND | typeof FLOOR;

/** One streamed call of so many chunks by each way, over the same bytes: a read for each event, and no network. */
export function sdkWays(chunks: number): Record<SdkWay, () => Promise<number>> {
  const reads = chatReads({ shape: 'long', chunks, usage: true });
  const texts = reads.slice(0, -1).map((bytes) => new TextDecoder().decode(bytes).slice('data: '.length, -2));
  const fetch = (): Promise<Response> => Promise.resolve(new Response(streamOf(reads), { headers }));
  // One for each: what a source does to a client is nothing that the SDK alone should pay for.
  const client = (): OpenAI => new OpenAI({ apiKey: 'none', baseURL: 'http://localhost/v1', fetch });
  const [sdk, floor, source, byHand] = [client(), client(), client(), client()];
  const empty = createSluice(client(), {});
  const full = createSluice(client(), fullPolicy);
  return {
    [SDK]: async () => {
      let length = 0;
      for await (const chunk of await sdk.chat.completions.create({ ...request, stream: true })) {
        length += chunk.choices[0]?.delta.content?.length ?? 0;
      }
      return length;
    },
    [FULL]: () => lengthOf(full.chat(request, fullOptions)),
    [EMPTY]: () => lengthOf(empty.chat(request)),
    [BY_HAND]: () => lengthOf(allOperators(chat(byHand, request))),
    [SOURCE]: () => lengthOf(chat(source, request)),
    [FLOOR]: async () => {
      const response = await floor.chat.completions.create({ ...request, stream: true }).asResponse();
      const body = (response.body as ReadableStream<Uint8Array>).getReader();
      while (!(await body.read()).done) continue;
      let length = 0;
      for (const text of texts)
        length += (JSON.parse(text) as ChatCompletionChunk).choices[0]?.delta.content?.length ?? 0;
      return length;
    },
  };
}

function lengthOf(answer$: Observable<ChatCompletionChunk>): Promise<number> {
  let length = 0;
  return new Promise((resolve, reject) => {
    answer$.subscribe({
      next: (chunk) => (length += chunk.choices[0]?.delta.content?.length ?? 0),
      error: reject,
      complete: () => resolve(length),
    });
  });
}
