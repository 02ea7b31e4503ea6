// `node:http`: a browser loses its connection in mid-answer, comes back, and reads on; the provider is asked once.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { chat, retryWithJitter } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { pipeToResponse, replayable } from 'sluice/http';
import { readEvents } from './readEvents.ts';

const emulator = await startEmulator({ tokens: 12, tokenMs: 20 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const answers = replayable({ keepMs: 30_000 });

const server = createServer((request, response) => {
  const messages = [{ role: 'user' as const, content: 'Tell a story' }];
  answers
    .open({ lastEventId: request.headers['last-event-id'] }, () =>
      chat(openai, { model: 'm', messages }).pipe(retryWithJitter()),
    )
    .pipe(pipeToResponse(response))
    .subscribe();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

// What follows is the browser's part; `EventSource` does it by itself.
let lastEventId = '';
let answer = '';
const connect = (): Promise<Response> => fetch(url, { headers: { 'last-event-id': lastEventId } });

for (const piecesUntilCut of [3, Infinity]) {
  let pieces = 0;
  for await (const { id, type, data } of readEvents(await connect())) {
    lastEventId = id ?? lastEventId;
    if (type === 'delta') answer += String(data['text']);
    if (type === 'done') console.log(`done: ${String(data['finishReason'])}`);
    if (++pieces === piecesUntilCut) break;
  }
  console.log(`after ${pieces === piecesUntilCut ? 'the cut' : 'coming back'}: ${answer}`);
}
console.log(`once more: status ${(await connect()).status}`);
console.log(`requests to the provider: ${emulator.report().requests}`);

answers.close();
server.close();
server.closeAllConnections();
await emulator.close();
