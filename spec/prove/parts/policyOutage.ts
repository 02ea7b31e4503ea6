import type OpenAI from 'openai';
import { createSluice } from '../../../lib/index.ts';
import type { PolicyInput, Runtime } from '../../../lib/index.ts';
import type { FaultRule } from '../../../lib/emulator/index.ts';
import type { Reporting } from './fullSpeed.ts';
import { ask, sleep, steadily } from './policyCalls.ts';
import type { Caller } from './policyCalls.ts';

export const PRIMARY = 'gpt-5.5';
export const FALLBACK = 'deepseek-v3.2';

/** Every new connection to the primary is reset, as by a host that is gone. */
const DEAD: FaultRule = { kind: 'reset', after: 'connect', model: PRIMARY, times: 'always' };

export interface OutageSetting {
  readonly openai: OpenAI;
  readonly emulator: Reporting & { script(faults: readonly FaultRule[]): void | Promise<void> };
  readonly runtime: Runtime;
  readonly progress?: (text: string) => void;
}

export interface DeadPlan {
  readonly calls: number;
  /** How long the primary is dead. The calls are spread over that time. */
  readonly deadMs: number;
  readonly openMs: number;
}

export interface DeadResult {
  readonly byFallback: number;
  readonly answered: number;
  /** Attempts at the primary: until the breaker opened, and from then until the primary was back. */
  readonly before: number;
  readonly after: number;
  /** From the end of the outage to the first answer of the primary. */
  readonly backMs: number;
}

/** A primary that dies and comes back, under few calls. */
export async function runDead(
  { openai, emulator, runtime, progress = () => {} }: OutageSetting,
  { calls, deadMs, openMs }: DeadPlan,
): Promise<DeadResult> {
  await emulator.reset();
  const policy: PolicyInput = {
    models: {
      [PRIMARY]: { fallback: [FALLBACK], breaker: { consecutiveFailures: 2, openMs }, retry: { baseMs: 50 } },
      default: {},
    },
  };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  let openedAt = NaN;
  let attempts = 0;
  let before = 0;
  caller.sluice.events$.subscribe((event) => {
    if (event.type === 'attempt.started' && event.model === PRIMARY) attempts++;
    if (event.type !== 'breaker.changed' || event.to !== 'open' || !Number.isNaN(openedAt)) return;
    openedAt = event.atMs;
    before = attempts;
  });
  await emulator.script([DEAD]);
  const during = await steadily(runtime, deadMs / calls, deadMs, (at) => {
    progress(`call ${at} of ${calls}`);
    return ask(caller, PRIMARY);
  });
  const after = attempts - before;
  await emulator.script([]);
  const backAtMs = runtime.clock.now();
  // Someone must ask for a probe to be made.
  let model: string | undefined;
  while (model !== PRIMARY) {
    await sleep(runtime, openMs / 50);
    progress('waiting for the primary');
    ({ model } = await ask(caller, PRIMARY));
    if (runtime.clock.now() - backAtMs > 10 * openMs) break;
  }
  return {
    byFallback: during.filter((record) => record.model === FALLBACK).length,
    answered: during.filter(({ code }) => code === undefined).length,
    before,
    after,
    backMs: runtime.clock.now() - backAtMs,
  };
}

export interface TotalPlan {
  readonly requestsPerMinute: number;
  /** Calls a second; the quota of the fallback is that of the primary. */
  readonly perSecond: number;
  readonly forMs: number;
  readonly deadFromMs: number;
  readonly deadToMs: number;
}

export interface TotalResult {
  readonly calls: number;
  readonly answered: number;
  readonly byFallback: number;
  readonly lost: Readonly<Record<string, number>>;
  readonly rateLimited: number;
  /** Attempts at the primary while it was dead. */
  readonly atDead: number;
  /** The primary answered calls after the outage again. */
  readonly backMs: number;
}

/** Full load, and a primary that is gone for a part of the time. */
export async function runTotal(
  { openai, emulator, runtime, progress = () => {} }: OutageSetting,
  { requestsPerMinute, perSecond, forMs, deadFromMs, deadToMs }: TotalPlan,
): Promise<TotalResult> {
  await emulator.reset();
  const burstRequests = requestsPerMinute / 60;
  const quota = { requestsPerMinute, burstRequests };
  const policy: PolicyInput = {
    deadlineMs: 20_000,
    models: {
      [PRIMARY]: { fallback: [FALLBACK], breaker: { openMs: 2_000 }, quota },
      [FALLBACK]: { quota },
    },
  };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  const startMs = runtime.clock.now();
  const dying = (async () => {
    await sleep(runtime, deadFromMs);
    await emulator.script([DEAD]);
    await sleep(runtime, deadToMs - deadFromMs);
    await emulator.script([]);
    return runtime.clock.now();
  })();
  const records = await steadily(runtime, 1_000 / perSecond, forMs, (at) => {
    progress(`${at} calls`);
    return ask(caller, PRIMARY);
  });
  const aliveAtMs = await dying;
  const lost: Record<string, number> = {};
  for (const { code } of records) if (code !== undefined) lost[code] = (lost[code] ?? 0) + 1;
  const { rateLimited, log } = await emulator.report();
  const back = records.find(({ model, sentMs }) => model === PRIMARY && sentMs > aliveAtMs);
  return {
    calls: records.length,
    answered: records.filter(({ code }) => code === undefined).length,
    byFallback: records.filter(({ model }) => model === FALLBACK).length,
    lost,
    rateLimited: rateLimited.total,
    atDead: log.filter(({ model, fault }) => model === PRIMARY && fault === 'reset').length,
    backMs: (back?.contentMs ?? NaN) - Math.max(aliveAtMs, startMs),
  };
}
