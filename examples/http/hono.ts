// Hono, and anything else that speaks `fetch`: `toResponse`, for a page of one's own and for `useChat` of the AI SDK.

import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { chat } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { toResponse } from 'sluice/http';
import { readEvents } from './readEvents.ts';

const emulator = await startEmulator({ tokens: 8 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const ask = (content: string) => chat(openai, { model: 'm', messages: [{ role: 'user', content }] });

const app = new Hono();
app.get('/chat', (c) => toResponse(ask(c.req.query('question') ?? ''), { signal: c.req.raw.signal }));
app.get('/api/chat', (c) => toResponse(ask('Hello'), { format: 'ui-messages', signal: c.req.raw.signal }));

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

let answer = '';
for await (const { type, data } of readEvents(await fetch(`${url}/chat?question=Hello`))) {
  if (type === 'delta') answer += String(data['text']);
}
console.log(`answer: ${answer}`);

const forUseChat = await fetch(`${url}/api/chat`);
console.log(`x-vercel-ai-ui-message-stream: ${forUseChat.headers.get('x-vercel-ai-ui-message-stream')}`);
const kinds = [...(await forUseChat.text()).matchAll(/"type":"([a-z-]+)"/g)].map(([, kind]) => kind);
console.log(`chunks: ${[...new Set(kinds)].join(', ')}`);

server.close();
await emulator.close();
