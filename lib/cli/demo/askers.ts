import type OpenAI from 'openai';
import { fromEvent, identity, takeUntil } from 'rxjs';
import { createLanes } from '../../operators/createLanes.ts';
import { createQuota } from '../../operators/createQuota.ts';
import { inConversation } from '../../operators/inConversation.ts';
import { retryWithJitter } from '../../operators/retryWithJitter.ts';
import { text } from '../../operators/text.ts';
import { throttleByBucket } from '../../operators/throttleByBucket.ts';
import { chat } from '../../sources/chat.ts';
import type { DemoCall } from './load.ts';

/** Makes one call and hands on pieces of its text. Rejects if it fails; settles soon after an abort. */
export type Asker = (call: DemoCall, signal: AbortSignal, onText: (piece: string) => void) => Promise<void>;

export interface DemoQuota {
  readonly requestsPerMinute: number;
  readonly burstRequests: number;
}

/** The SDK as it comes, with its own retries. */
export function bareAsker(openai: OpenAI, model: string): Asker {
  return async (call, signal, onText) => {
    const stream = await openai.chat.completions.create({ ...bodyOf(model, call), stream: true }, { signal });
    for await (const chunk of stream) {
      const piece = chunk.choices[0]?.delta.content;
      if (piece) onText(piece);
    }
  };
}

/** The same through Sluice, wired by hand: one quota for all, and the turns of a conversation one after another. */
export function sluiceAsker(openai: OpenAI, model: string, quota: DemoQuota): Asker {
  const bucket = createQuota(quota);
  const lanes = createLanes();
  return ({ conversation, ...call }, signal, onText) =>
    chat(openai, bodyOf(model, { ...call, conversation }))
      .pipe(
        throttleByBucket(bucket),
        retryWithJitter(),
        conversation === undefined ? identity : inConversation(lanes, conversation),
        text(),
        takeUntil(fromEvent(signal, 'abort')),
      )
      .forEach(onText);
}

function bodyOf(model: string, { prompt, conversation }: DemoCall) {
  const messages = [{ role: 'user' as const, content: prompt }];
  return { model, messages, ...(conversation === undefined ? {} : { user: conversation }) };
}
