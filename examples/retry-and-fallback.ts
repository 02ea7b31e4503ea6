// Retries a 429 as the provider asked, and lets a second model answer while the first one is down; prints every fact.

import OpenAI from 'openai';
import { chat, circuitBreak, createBreaker, fallbackModel, retryWithJitter, text } from 'sluice';
import type { SluiceEvent } from 'sluice';
import { startEmulator } from 'sluice/emulator';

const emulator = await startEmulator({
  tokens: 8,
  script: [
    { kind: 'error', error: 'requests', retryAfterMs: 300, model: 'main' },
    { kind: 'pass', model: 'main' },
    { kind: 'error', error: 'overloaded', model: 'main', times: 'always' },
  ],
});
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const breaker = createBreaker({ name: 'main', consecutiveFailures: 3 });

function ask(model: string) {
  const answer$ = chat(openai, { model, messages: [{ role: 'user', content: 'Hello' }] }, { onEvent });
  const guarded$ = model === 'main' ? answer$.pipe(circuitBreak(breaker, { onEvent })) : answer$;
  // `model` names the model also where the breaker refuses and no request is there to tell.
  return guarded$.pipe(retryWithJitter({ attempts: 3, baseMs: 50, model, onEvent }));
}
const call$ = ask('main').pipe(fallbackModel(['spare'], ask, { onEvent }), text());

for (const title of ['main is busy for a moment', 'main is down', 'main is still down, and the breaker knows']) {
  console.log(`${title}:`);
  let answer = '';
  await call$.forEach((piece) => (answer += piece));
  console.log(`  answer: ${answer}`);
}

const { models } = emulator.report();
console.log(`provider: ${models['main']?.requests} requests to main, ${models['spare']?.requests} to spare`);
await emulator.close();

/** Facts hold no prompt and no answer, so that they can go to a log as they are. */
function onEvent(event: SluiceEvent): void {
  const { attempt, model } = event;
  switch (event.type) {
    case 'attempt.ended':
      return console.log(`  attempt ${attempt}, ${model}: ${event.code ?? event.outcome} (status ${event.status})`);
    case 'retry.scheduled':
      return console.log(`  wait ${Math.round(event.waitMs)} ms after ${event.code} (${event.waitSource})`);
    case 'breaker.changed':
      return console.log(`  breaker of ${event.breaker}: ${event.from} -> ${event.to}`);
    case 'refused':
      return console.log(`  not sent: ${event.code}`);
    case 'fallback':
      return console.log(`  ${event.from} -> ${event.to} after ${event.code}`);
    default:
  }
}
