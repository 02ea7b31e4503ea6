import OpenAI from 'openai';
import { systemRuntime } from '../../lib/index.ts';
import type { EmulatorOptions } from '../../lib/emulator/index.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { warmUp } from './parts/fullSpeed.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { MODEL, runAgeing, runFlood, runShares } from './parts/policyIsolation.ts';
import type { Setting } from './parts/policyIsolation.ts';
import { ms, writeResults } from './parts/writeResults.ts';

/** One emulator for one measurement, in a process of its own. */
async function measured<T>(
  name: string,
  options: EmulatorOptions,
  limits: object,
  work: (at: Setting) => Promise<T>,
): Promise<T> {
  const emulator = await startEmulatorProcess({ ...options, models: { [MODEL]: limits, 'warm-up': {} } });
  const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
  await warmUp(openai);
  let line = 'starting';
  const setting = { openai, emulator, runtime: systemRuntime, progress: (text: string) => void (line = text) };
  try {
    return await withLiveLine(
      () => `${name}: ${line}`,
      () => work(setting),
    );
  } finally {
    await emulator.close();
  }
}

const fast = { requestsPerMinute: 12_000, burstRequests: 100 };
const answers = { tokens: 4, tokenMs: 5 };
const FLOOD = 10_000;
const flood = await measured('flood', { ...answers, firstTokenMs: 300 }, fast, (setting) =>
  runFlood(setting, { ...fast, flood: FLOOD, quietEveryMs: 100, quietMs: 30_000 }),
);
const serviceMs = 400;
const shares = await measured('shares', { ...answers, firstTokenMs: serviceMs - 15 }, {}, (setting) =>
  runShares(setting, { calls: 400, vipAtMs: 3_000, serviceMs }),
);
const busy = { requestsPerMinute: 1_200, burstRequests: 5 };
const ageing = await measured('ageing', { ...answers, firstTokenMs: 50 }, busy, (setting) =>
  runAgeing(setting, { ...busy, forMs: 18_000 }),
);

await writeResults({
  name: 'policy-isolation',
  title: 'Tenants and priorities of one policy over HTTP',
  text: `
Everything goes through \`createSluice\`, to an emulator in a process of its own. *Flood*: on 12,000 requests a minute one tenant asks for
10,000 answers at once, and another one for 10 a second, as it did for 30 s alone before. *Shares*: 60 calls in flight in all; two tenants and batch
work, which may have 15 of them, want 400 each, and after 3 s a tenant with \`reservedInFlight: 20\` asks 20 times; an answer takes 400 ms.
*Ageing*: a quarter more urgent calls than 1,200 requests a minute carry, for 18 s, and three calls of the priority below.`,
  rows: [
    ['what', 'measured', 'promised'],
    ['flood: answered, of both', `${flood.answered} of ${FLOOD + flood.quietCalls}`, 'all'],
    ['flood: p95 of the quiet tenant, alone', ms(flood.aloneP95Ms), '-'],
    ['flood: p95 of the quiet tenant, beside it', ms(flood.besideP95Ms), `at most ${ms(1.2 * flood.aloneP95Ms)}`],
    ['flood: its part of what was admitted meanwhile', `${(100 * flood.floodShare).toFixed(1)} %`, 'the rest'],
    ['flood: 429s', flood.rateLimited, 0],
    ['flood: took', ms(flood.tookMs), '-'],
    ['shares: in flight before the guaranteed tenant asked', shares.lent, 60],
    ['shares: its slowest call was sent after', ms(shares.vipWaitMs), `one service time, ${serviceMs} ms`],
    [
      'shares: most in flight, of all, of batch, of the guaranteed tenant',
      `${shares.most.all}, ${shares.most.batch}, ${shares.most.vip}`,
      '60, 15, 20',
    ],
    ['shares: two equal tenants, fewer calls by more', shares.leastOfMost.toFixed(2), '1'],
    ['shares: answered', `${shares.answered} of ${shares.calls}`, 'all'],
    ['ageing: batch work waited', ms(ageing.batchWaitMs), 'one turn in eight after 10 s'],
    ['ageing: answered', `${ageing.answered} of ${ageing.urgent + 3}`, 'all'],
  ],
  claims: [
    ['flood: all answered, no 429', flood.answered === FLOOD + flood.quietCalls && flood.rateLimited === 0],
    [
      'flood: p95 of the quiet tenant is at most 1.2 times what it is alone',
      flood.besideP95Ms <= 1.2 * flood.aloneP95Ms,
    ],
    ['shares: the guaranteed share is had within one service time and 100 ms', shares.vipWaitMs <= serviceMs + 100],
    [
      'shares: never more than 60 in all, 15 of batch, and the share was lent until it was wanted',
      shares.most.all === 60 && shares.most.batch <= 15 && shares.most.vip === 20 && shares.lent === 60,
    ],
    [
      'nobody starves',
      shares.answered === shares.calls && ageing.answered === ageing.urgent + 3 && ageing.batchWaitMs <= 14_000,
    ],
  ],
});
