// Express: a stream by POST under a policy, a status while the provider is down, and a browser that leaves.

import express from 'express';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { createSluice } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { pipeToResponse } from 'sluice/http';
import { readEvents } from './readEvents.ts';

const emulator = await startEmulator({ tokens: 8, tokenMs: 10 });
const sluice = createSluice(new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }), {
  models: { default: { retry: { attempts: 1 } } },
});

const app = express();
app.use(express.json());
app.post('/chat', (request, response) => {
  const { question } = request.body as { readonly question: string };
  const messages = [{ role: 'user' as const, content: question }];
  sluice
    .chat({ model: 'm', messages }, { restarts: true })
    .pipe(pipeToResponse(response))
    .subscribe(({ outcome }) => console.log(`server: ${outcome}`));
});
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/chat`;

const ask = (question: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ question }),
  });

let answer = '';
for await (const { type, data } of readEvents(await ask('Hello'))) {
  if (type === 'delta') answer += String(data['text']);
}
console.log(`answer: ${answer}`);

emulator.script([{ kind: 'error', error: 'overloaded' }]);
const refused = await ask('Hello again');
console.log(`while the provider is down: ${refused.status}, ${await refused.text()}`);

emulator.script([{ kind: 'pass', answer: { tokens: 1000 } }]);
for await (const { type } of readEvents(await ask('A long one'))) {
  console.log(`browser: leaves after a ${type}`);
  break;
}
while (sluice.snapshot().calls > 0) await new Promise((resolve) => setTimeout(resolve, 10));

server.close();
server.closeAllConnections();
await sluice.close();
await emulator.close();
