// Streams one answer, reads a second one whole, and leaves a third one half-way, which aborts its request.

import OpenAI from 'openai';
import { take } from 'rxjs';
import { chat, lastAnswer, text } from 'sluice';
import type { ChatRequest } from 'sluice';
import { startEmulator } from 'sluice/emulator';

const emulator = await startEmulator({ firstTokenMs: 100, tokenMs: 15, tokens: 24 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const request: ChatRequest = {
  model: 'gpt-5.5',
  messages: [{ role: 'user', content: 'What does a sluice do?' }],
  // Only then does the count of tokens come with the answer; Sluice asks for it in any case, for its own accounts.
  stream_options: { include_usage: true },
};

// Nothing has been sent yet: `answer$` sends a request of its own each time it is subscribed to.
const answer$ = chat(openai, request);

process.stdout.write('streamed: ');
await answer$.pipe(text()).forEach((piece) => process.stdout.write(piece));

const answer = await lastAnswer(answer$);
console.log(`\nwhole: ${answer.text.length} characters, ${answer.usage?.totalTokens} tokens, "${answer.finishReason}"`);

process.stdout.write('left after 3 pieces: ');
await answer$.pipe(text(), take(3)).forEach((piece) => process.stdout.write(piece));

// The abort has left with the third piece. The provider notices when it reaches it.
while (emulator.report().running > 0) await new Promise((resolve) => setTimeout(resolve, 5));
const { requests, answered, aborts } = emulator.report();
console.log(`\nprovider: ${requests} requests, ${answered} answered, ${aborts} aborted`);
await emulator.close();
