// Counts tokens with a real tokenizer in place of the estimate, and shows how far the two are apart for a few texts.

import { encode } from 'gpt-tokenizer';
import OpenAI from 'openai';
import { createSluice, estimateCost, lastAnswer } from 'sluice';
import type { EstimateHook } from 'sluice';
import { startEmulator } from 'sluice/emulator';

/** The text of the messages, 4 tokens for each and 3 for the answer, and the output limit. Other content is estimated. */
const counted: EstimateHook = (request) => {
  const { outputTokens, inputTokens: guessed } = estimateCost(request);
  const messages = request['messages'] as readonly { readonly content?: unknown }[] | undefined;
  const texts = messages?.map(({ content }) => content) ?? [];
  const isText = texts.length > 0 && texts.every((content) => typeof content === 'string');
  const inputTokens = isText
    ? texts.reduce((sum: number, content) => sum + encode(content as string).length + 4, 3)
    : guessed;
  return { tokens: inputTokens + outputTokens, inputTokens };
};

const TEXTS = {
  'English prose':
    'The quick brown fox jumps over the lazy dog, and nobody who saw it could say why it did so. '.repeat(10),
  German: 'Die Geschwindigkeitsbegrenzung gilt auch für Anfragen, die der Anbieter abgelehnt hat. '.repeat(10),
  Chinese: '限流器按请求到达时的估计值预留令牌,而不是按最终用量。'.repeat(10),
  JSON: JSON.stringify(Array.from({ length: 20 }, (_, id) => ({ id, name: `item ${id}`, price: id * 1.25 }))),
  TypeScript: 'export function take(cost: number): boolean {\n  return cost <= this.level;\n}\n'.repeat(10),
};
const requestOf = (
  content: string,
): { model: string; messages: { role: 'user'; content: string }[]; max_tokens: number } => ({
  model: 'gpt-5.5',
  messages: [{ role: 'user', content }],
  max_tokens: 16,
});
for (const [name, content] of Object.entries(TEXTS)) {
  const request = requestOf(content);
  const { inputTokens: guessed } = estimateCost(request);
  const { inputTokens: real = 0 } = counted(request, 'gpt-5.5') as { inputTokens?: number };
  console.log(`${name}: estimated ${guessed}, counted ${real}, ${((100 * guessed) / real - 100).toFixed(0)} %`);
}

const emulator = await startEmulator({ firstTokenMs: 5, tokenMs: 1 });
const sluice = createSluice(
  new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }),
  { quota: { account: { tokensPerMinute: 100_000 } } },
  { estimate: counted },
);
sluice.events$.subscribe((event) => {
  if (event.type === 'settled') console.log(`reserved ${event.reservedTokens} tokens`);
});
await lastAnswer(sluice.chat(requestOf(TEXTS['English prose'])));
await sluice.close();
await emulator.close();
