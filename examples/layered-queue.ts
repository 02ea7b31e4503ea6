// Puts a burst of 100 calls, 30 of them turns of 5 conversations, through two layers of token buckets, a queue and a fallback.

import OpenAI from 'openai';
import { identity } from 'rxjs';
import {
  chat,
  createLanes,
  createQuotas,
  fallbackModel,
  inConversation,
  isSluiceError,
  retryWithJitter,
  text,
  throttleByBucket,
} from 'sluice';
import { startEmulator } from 'sluice/emulator';

// A published load: at the account's rate of one request a second it takes a minute and a half, so rates go up here.
const speed = Number(process.env['SPEED'] ?? 20);
const account = { requestsPerMinute: 60 * speed, burstRequests: 8 };
const models = {
  large: { requestsPerMinute: 48 * speed, burstRequests: 6 },
  small: { requestsPerMinute: 300 * speed, burstRequests: 20 },
};
/** Whoever would wait longer for the large model asks the small one. */
const patienceMs = 30_000 / speed;

// The provider has the very same limits: one request too many would be answered 429.
const emulator = await startEmulator({ ...account, models, firstTokenMs: 60, tokenMs: 5, tokens: 32 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });

// No pool of workers: a call that waits is a place in a line. The margin is for the first requests of this process, which
// are slow, and so arrive closer to those behind them than they were sent.
const quotas = createQuotas({ account, models, maxWaitMs: Infinity, arrivalMarginMs: 300 });
const lanes = createLanes({ maxWaitMs: Infinity });

function call(content: string, conversation: string | undefined) {
  const headers = conversation === undefined ? {} : { 'x-conversation': conversation };
  const ask = (model: string) =>
    chat(openai, { model, messages: [{ role: 'user', content }] }, { headers }).pipe(
      throttleByBucket(quotas.of(model), model === 'large' ? { maxWaitMs: patienceMs } : {}),
      retryWithJitter({ attempts: 4, model }),
    );
  return ask('large').pipe(
    // A wait that cannot end in time is refused on entry, so that nobody waits in vain before the small model is asked.
    fallbackModel(['small'], ask),
    conversation === undefined ? identity : inConversation(lanes, conversation),
    text(),
  );
}

const startedMs = performance.now();
const elapsedMs = () => performance.now() - startedMs;
const waits: number[] = [];
let failed = 0;

await Promise.all(
  Array.from({ length: 100 }, async (_, index) => {
    const conversation = index < 30 ? `conversation ${index % 5}` : undefined;
    let firstMs: number | undefined;
    try {
      await call(`question ${index}`, conversation).forEach(() => (firstMs ??= elapsedMs()));
      waits.push(firstMs ?? elapsedMs());
    } catch (error) {
      failed++;
      console.log(`question ${index}: ${isSluiceError(error) ? error.code : String(error)}`);
    }
  }),
);

waits.sort((a, b) => a - b);
const seconds = (ms: number | undefined) => `${((ms ?? NaN) / 1000).toFixed(1)} s`;
const percentile = (share: number) => seconds(waits[Math.ceil(share * waits.length) - 1]);
const { rateLimited, models: asked, conversations } = emulator.report();
const overlapping = Object.values(conversations).filter(({ maxConcurrent }) => maxConcurrent > 1).length;

console.log(`rates times ${speed}: account ${speed}/s, large ${0.8 * speed}/s, small ${5 * speed}/s`);
console.log(`succeeded ${waits.length}, failed ${failed}, in ${seconds(elapsedMs())}`);
console.log(`time to first content: p50 ${percentile(0.5)}, p95 ${percentile(0.95)}`);
console.log(
  `provider: ${asked['large']?.answered ?? 0} by large, ${asked['small']?.answered ?? 0} by small, ${rateLimited.total} answers 429`,
);
console.log(`conversations whose turns overlapped: ${overlapping} of ${Object.keys(conversations).length}`);
await emulator.close();
