// Logs what happens to a call that meets a 429 and a 503, with `console`, and as lines of JSON with a logger of one's own.

import OpenAI from 'openai';
import { createSluice, lastAnswer } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { logEvents } from 'sluice/telemetry';

const emulator = await startEmulator({
  dialect: 'none',
  firstTokenMs: 20,
  tokenMs: 2,
  tokens: 12,
  script: [
    { kind: 'error', error: 'requests' },
    { kind: 'error', error: 'server_error' },
  ],
});
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const sluice = createSluice(openai, { models: { default: { retry: { attempts: 4, baseMs: 20 } } } });

// Level `info` and above: what was tried again, and what failed.
sluice.events$.subscribe(logEvents(console, { minLevel: 'info' }));

// Fields first, as pino has it: `logEvents(pino())` needs no more than this.
const write = (level: string) => (fields: object, message: string) =>
  console.log(JSON.stringify({ level, ...fields, message }));
const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
sluice.events$.subscribe(
  logEvents(logger, {
    fields: { service: 'example' },
    minLevel: 'info',
    levels: { 'call.ended': 'info', 'attempt.ended': 'off', 'retry.scheduled': 'off', cooldown: 'off' },
  }),
);

const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }] };
const { text } = await lastAnswer(sluice.chat(request, { tenant: 'acme' }));
console.log('answered with', text.length > 0 ? 'text' : 'nothing');

await sluice.close();
await emulator.close();
