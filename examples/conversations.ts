// Answers the turns of three conversations: each conversation in order, with its history, and none waiting for another.

import OpenAI from 'openai';
import { catchError, from, map, of, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import { answer, chat, concatByConversation, isSluiceError, retryWithJitter } from 'sluice';
import type { ChatRequest } from 'sluice';
import { startEmulator } from 'sluice/emulator';

interface Question {
  readonly conversation: string;
  readonly content: string;
}

const emulator = await startEmulator({
  tokens: 12,
  // Beth's first question is one that the provider does not take.
  script: [{ kind: 'error', error: 'bad_request', conversation: 'beth' }],
});
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });

const questions: Question[] = ['one', 'two', 'three'].flatMap((content) =>
  ['ada', 'beth', 'cleo'].map((conversation) => ({ conversation, content })),
);
const histories = new Map<string, ChatRequest['messages']>();

/** Called when it is the question's turn: by then the turn before it is in the history. */
function ask({ conversation, content }: Question): Observable<string> {
  console.log(`${conversation} asks ${content}`);
  const messages: ChatRequest['messages'] = [...(histories.get(conversation) ?? []), { role: 'user', content }];
  return chat(openai, { model: 'gpt-5.5', messages }, { headers: { 'x-conversation': conversation } }).pipe(
    retryWithJitter(),
    answer({ emit: 'last' }),
    tap((reply) => histories.set(conversation, [...messages, { role: 'assistant', content: reply.text }])),
    map(() => `answered, with ${messages.length - 1} messages of history`),
    // Caught here, within the turn: an error that leaves `ask` would end the turns of everyone.
    catchError((error: unknown) => of(`failed, ${isSluiceError(error) ? error.code : 'not ours'}`)),
    map((outcome) => `${conversation} ${content}: ${outcome}`),
  );
}

await from(questions)
  .pipe(concatByConversation(({ conversation }) => conversation, ask))
  .forEach((line) => console.log(line));

for (const [name, { requests, maxConcurrent }] of Object.entries(emulator.report().conversations)) {
  console.log(`provider: ${requests} requests of ${name}, ${maxConcurrent} at a time`);
}
await emulator.close();
