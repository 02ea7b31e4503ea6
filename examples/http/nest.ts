// NestJS: an `@Sse()` handler that waits for the answer to begin, so that a failure before is a status.
// Decorators are called as functions here, because Node runs TypeScript without compiling it; yours stand above the method.

import 'reflect-metadata';
import { Controller, Logger, Module, Query, Sse, SseSignal } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import type { Observable } from 'rxjs';
import { chat } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { toMessageEvents, whenStarted } from 'sluice/http';
import type { SseMessage } from 'sluice/http';
import { readEvents } from './readEvents.ts';

const emulator = await startEmulator({ tokens: 8 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });

class ChatController {
  // @Sse('chat') chat(@Query('question') question: string, @SseSignal() signal: AbortSignal)
  async chat(question: string, signal: AbortSignal): Promise<Observable<SseMessage>> {
    const answer$ = chat(openai, { model: 'm', messages: [{ role: 'user', content: question }] });
    return (await whenStarted(answer$, { signal })).pipe(toMessageEvents());
  }
}
const handler = Object.getOwnPropertyDescriptor(ChatController.prototype, 'chat');
if (handler) Sse('chat')(ChatController.prototype, 'chat', handler);
Query('question')(ChatController.prototype, 'chat', 0);
SseSignal()(ChatController.prototype, 'chat', 1);
Controller()(ChatController);

// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- modules of Nest have nothing in them
class AppModule {}
Module({ controllers: [ChatController] })(AppModule);

Logger.overrideLogger(false);
const app = await NestFactory.create(AppModule);
await app.listen(0, '127.0.0.1');
const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
const ask = (): Promise<Response> => fetch(`http://127.0.0.1:${port}/chat?question=Hello`);

let answer = '';
for await (const { type, data } of readEvents(await ask())) {
  if (type === 'delta') answer += String(data['text']);
}
console.log(`answer: ${answer}`);

emulator.script([{ kind: 'error', error: 'overloaded' }]);
console.log(`while the provider is down: status ${(await ask()).status}`);

await app.close();
await emulator.close();
