import type OpenAI from 'openai';
import { createSluice } from '../../../lib/index.ts';
import type { PolicyInput, Runtime } from '../../../lib/index.ts';
import type { EmulatorReport } from '../../../lib/emulator/index.ts';
import { percentile } from '../../helpers/ProviderBucket.ts';
import type { Reporting } from './fullSpeed.ts';
import { ask, sleep, steadily } from './policyCalls.ts';
import type { Caller, CallRecord } from './policyCalls.ts';

/** Model of the emulator that tells which tenant asked. */
export const MODEL = 'gpt-5.5';

/** What is measured is the admission of tenants and priorities, and not how a model's own limit finds its size. */
const patient: PolicyInput = { deadlineMs: null, models: { default: { concurrency: { limit: 1_000 } } } };
const line = { maxWaiting: 100_000, maxWaitMs: null };

export interface Setting {
  readonly openai: OpenAI;
  readonly emulator: Reporting;
  readonly runtime: Runtime;
  readonly progress?: (text: string) => void;
}

export interface FloodPlan {
  readonly requestsPerMinute: number;
  readonly burstRequests: number;
  /** Requests of the one who floods, all at once. */
  readonly flood: number;
  readonly quietEveryMs: number;
  /** How long the quiet tenant goes on alone, and then beside the flood. */
  readonly quietMs: number;
}

export interface FloodResult {
  readonly aloneP95Ms: number;
  readonly besideP95Ms: number;
  readonly quietCalls: number;
  readonly answered: number;
  readonly rateLimited: number;
  /** Of what the provider admitted while both asked, the part of the one who floods. */
  readonly floodShare: number;
  readonly tookMs: number;
}

/** A quiet tenant within its share, alone and then beside one that asks for everything at once. */
export async function runFlood(
  { openai, emulator, runtime, progress = () => {} }: Setting,
  { requestsPerMinute, burstRequests, flood, quietEveryMs, quietMs }: FloodPlan,
): Promise<FloodResult> {
  const quiet = async (beside: number): Promise<[Caller, CallRecord[]]> => {
    await emulator.reset();
    const policy = { ...patient, quota: { account: { requestsPerMinute, burstRequests, ...line } } };
    const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
    const floods = Array.from({ length: beside }, () =>
      ask(caller, MODEL, { tenant: 'flood' }, { max_tokens: 8, user: 'flood' }).then(() =>
        progress(`${caller.records.filter(({ endedMs }) => !Number.isNaN(endedMs)).length} calls ended`),
      ),
    );
    // The burst has gone by then, and the provider is as busy as it will be.
    if (beside > 0) await sleep(runtime, 300);
    const quiets = await steadily(runtime, quietEveryMs, quietMs, () =>
      ask(caller, MODEL, { tenant: 'quiet' }, { max_tokens: 8, user: 'quiet' }),
    );
    await Promise.all(floods);
    return [caller, quiets];
  };
  const p95 = (records: readonly CallRecord[]): number =>
    percentile(
      records.map(({ askedMs, contentMs }) => contentMs - askedMs),
      0.95,
    );
  const [, alone] = await quiet(0);
  const startMs = runtime.clock.now();
  const [{ records }, beside] = await quiet(flood);
  const tookMs = runtime.clock.now() - startMs;
  const { rateLimited, log } = await emulator.report();
  const both = log.filter(({ arrivedMs }) => arrivedMs < quietMs);
  return {
    aloneP95Ms: p95(alone),
    besideP95Ms: p95(beside),
    quietCalls: beside.length,
    answered: records.filter(({ code }) => code === undefined).length,
    rateLimited: rateLimited.total,
    floodShare: both.filter(({ conversation }) => conversation === 'flood').length / both.length,
    tookMs,
  };
}

export interface SharesPlan {
  /** Calls of each of the three who flood. */
  readonly calls: number;
  /** When the one with the guaranteed share asks. */
  readonly vipAtMs: number;
  readonly serviceMs: number;
}

export interface SharesResult {
  readonly calls: number;
  readonly answered: number;
  /** From its question to the sending, of the slowest of those within the share. */
  readonly vipWaitMs: number;
  /** Most requests at once that the provider saw: of all, of batch work, and of the guaranteed tenant. */
  readonly most: { readonly all: number; readonly batch: number; readonly vip: number };
  /** In flight of others when the guaranteed tenant asked: its share was lent. */
  readonly lent: number;
  /** Calls sent by then of the two who flood with the same priority, but for those that found free slots: fewer by more. */
  readonly leastOfMost: number;
}

const SHARE = 20;

/** 60 slots: two tenants and batch work want all of them, of which 20 are guaranteed to somebody who comes later. */
export async function runShares(
  { openai, emulator, runtime, progress = () => {} }: Setting,
  { calls, vipAtMs, serviceMs }: SharesPlan,
): Promise<SharesResult> {
  await emulator.reset();
  const policy: PolicyInput = {
    ...patient,
    maxInFlight: 60,
    quota: { account: line },
    tenants: { vip: { reservedInFlight: SHARE } },
    priorities: { order: ['interactive', 'batch'], batch: { maxInFlight: 15 } },
  };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  const ended: Record<string, number> = {};
  const bySender: Record<string, readonly CallRecord[]> = {};
  const flood = (user: string, tenant: string, priority: string): Promise<unknown>[] => {
    const from = caller.records.length;
    const asked = Array.from({ length: calls }, () =>
      ask(caller, MODEL, { tenant, priority }, { user }).then(() => {
        ended[user] = (ended[user] ?? 0) + 1;
        progress(JSON.stringify(ended));
      }),
    );
    bySender[user] = caller.records.slice(from);
    return asked;
  };
  const floods = [
    ...flood('one', 'one', 'interactive'),
    ...flood('two', 'two', 'interactive'),
    ...flood('batch', 'night', 'batch'),
  ];
  await sleep(runtime, vipAtMs);
  const lent = caller.sluice.snapshot().admission.inFlight;
  const sent = (tenant: string): number =>
    bySender[tenant]?.filter(({ askedMs, sentMs }) => sentMs - askedMs > serviceMs / 2).length ?? 0;
  const [one, two] = [sent('one'), sent('two')];
  const vips = await Promise.all(
    Array.from({ length: SHARE }, () => ask(caller, MODEL, { tenant: 'vip' }, { user: 'vip' })),
  );
  await sleep(runtime, serviceMs);
  await Promise.all(floods);
  const { conversations, maxConcurrent }: EmulatorReport = await emulator.report();
  const most = (user: string): number => conversations[user]?.maxConcurrent ?? 0;
  return {
    calls: caller.records.length,
    answered: caller.records.filter(({ code }) => code === undefined).length,
    vipWaitMs: Math.max(...vips.map(({ askedMs, sentMs }) => sentMs - askedMs)),
    most: { all: maxConcurrent, batch: most('batch'), vip: most('vip') },
    lent,
    leastOfMost: Math.min(one, two) / Math.max(one, two),
  };
}

export interface AgeingPlan {
  readonly requestsPerMinute: number;
  readonly burstRequests: number;
  readonly forMs: number;
}

export interface AgeingResult {
  readonly urgent: number;
  readonly answered: number;
  /** How long the batch calls waited that came while more urgent ones filled the quota. */
  readonly batchWaitMs: number;
}

/** More urgent work than the quota carries, for the whole time, and a few batch calls at its beginning. */
export async function runAgeing(
  { openai, emulator, runtime, progress = () => {} }: Setting,
  { requestsPerMinute, burstRequests, forMs }: AgeingPlan,
): Promise<AgeingResult> {
  await emulator.reset();
  const policy = { ...patient, quota: { account: { requestsPerMinute, burstRequests, ...line } } };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  const urgent = steadily(runtime, 60_000 / requestsPerMinute / 1.25, forMs, () => ask(caller, MODEL));
  await sleep(runtime, forMs / 20);
  const batch = Array.from({ length: 3 }, () => ask(caller, MODEL, { priority: 'batch' }));
  void Promise.all(batch).then(() => progress('batch was served'));
  const waits = (await Promise.all(batch)).map(({ askedMs, sentMs }) => sentMs - askedMs);
  const urgents = await urgent;
  return {
    urgent: urgents.length,
    answered: caller.records.filter(({ code }) => code === undefined).length,
    batchWaitMs: Math.max(...waits),
  };
}
