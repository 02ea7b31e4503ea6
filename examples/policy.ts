// Puts one policy over two vendors, falls back while the first one is down, and serves the OpenAI client by `sluice.fetch`.

import OpenAI from 'openai';
import { createSluice, lastAnswer } from 'sluice';
import { startEmulator } from 'sluice/emulator';

const first = await startEmulator({ firstTokenMs: 20, tokenMs: 2, tokens: 12 });
const second = await startEmulator({ firstTokenMs: 20, tokenMs: 2, tokens: 12 });
const clientOf = (baseURL: string): OpenAI => new OpenAI({ baseURL, apiKey: 'none' });

const sluice = createSluice(
  { main: clientOf(first.baseURL), other: clientOf(second.baseURL) },
  {
    deadlineMs: 5_000,
    quota: { account: { requestsPerMinute: 6_000, burstRequests: 4 } },
    models: {
      'gpt-5.5': {
        fallback: ['deepseek-v3.2'],
        retry: { attempts: 2, baseMs: 20 },
        breaker: { consecutiveFailures: 2 },
      },
      'deepseek-v3.2': { client: 'other' },
    },
  },
);
const counts = new Map<string, number>();
sluice.events$.subscribe(({ type }) => counts.set(type, (counts.get(type) ?? 0) + 1));

const ask = async (content: string, conversation: string): Promise<string | undefined> => {
  const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content }] };
  return (await lastAnswer(sluice.chat(request, { conversation, tenant: 'acme' }))).model;
};

console.log('answered by', await ask('Hello', 'c-1'));

first.script([{ kind: 'error', error: 'server_error', times: 'always' }]);
const answers = await Promise.all(
  ['c-1', 'c-1', 'c-2', 'c-3'].map((conversation) => ask('Still there?', conversation)),
);
console.log('while the first vendor is down, by', [...new Set(answers)].join());

first.script([]);
const openai = new OpenAI({ baseURL: second.baseURL, apiKey: 'none', fetch: sluice.fetch, maxRetries: 0 });
const answer = await openai.chat.completions.create({
  model: 'deepseek-v3.2',
  messages: [{ role: 'user', content: 'And by fetch?' }],
});
console.log('through the SDK, by', answer.model);

console.log(
  `${counts.get('call.ended')} calls, ${counts.get('attempt.started')} attempts, ${counts.get('fallback')} fallbacks`,
);
await sluice.close();
await Promise.all([first.close(), second.close()]);
