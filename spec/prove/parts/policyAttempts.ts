import type OpenAI from 'openai';
import { createSluice } from '../../../lib/index.ts';
import type { ClientCall, PolicyInput, Sluice } from '../../../lib/index.ts';
import type { OutageSetting } from './policyOutage.ts';
import { ask, follow, sleep, steadily } from './policyCalls.ts';
import type { Caller } from './policyCalls.ts';

const MODEL = 'gpt-5.5';
const FAILS = { kind: 'error', error: 'server_error', times: 'always' } as const;
/** A breaker would end the attempts before the budget does. */
const noBreaker = { consecutiveFailures: null, errorRatio: null };

export interface FailingResult {
  readonly calls: number;
  readonly requests: number;
  /** Attempts of those calls that were asked once the budget was used up, for each of them. */
  readonly perCall: number;
}

/** Calls that all fail, at a steady pace, with the budget that there is by default. */
export async function runFailing(
  { openai, emulator, runtime, progress = () => {} }: OutageSetting,
  { perSecond, forMs, usedUpMs }: { readonly perSecond: number; readonly forMs: number; readonly usedUpMs: number },
): Promise<FailingResult> {
  await emulator.reset();
  await emulator.script([FAILS]);
  const policy: PolicyInput = { models: { default: { breaker: noBreaker } } };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  const startMs = runtime.clock.now();
  await steadily(runtime, 1_000 / perSecond, forMs, (at) => {
    progress(`${at} calls`);
    return ask(caller, MODEL);
  });
  const late = caller.records.filter(({ askedMs }) => askedMs - startMs >= usedUpMs);
  const { requests } = await emulator.report();
  const attempts = late.reduce((sum, record) => sum + record.attempts, 0);
  return { calls: caller.records.length, requests, perCall: attempts / late.length };
}

export interface DeadlineResult {
  readonly calls: number;
  readonly attempts: number;
  /** Of all retries, how long after its call the latest was sent. */
  readonly latestMs: number;
  /** Nothing came after the deadline. */
  readonly endedWithinMs: number;
  readonly codes: Readonly<Record<string, number>>;
}

/** A model that is known to take `leastMs` at least, and then fails each time; calls have `deadlineMs`. */
export async function runDeadline(
  { openai, emulator, runtime }: OutageSetting,
  { calls, deadlineMs }: { readonly calls: number; readonly deadlineMs: number },
): Promise<DeadlineResult> {
  await emulator.reset();
  const retry = { attempts: 50, baseMs: 60, capMs: 200 };
  const policy: PolicyInput = {
    deadlineMs,
    retryBudget: { ratio: 1, minPerSecond: 1_000 },
    models: { default: { breaker: noBreaker, retry, concurrency: { limit: 1_000 } } },
  };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  for (let warm = 0; warm < 3; warm++) await ask(caller, MODEL);
  caller.records.length = 0;
  await emulator.script([FAILS]);
  await Promise.all(Array.from({ length: calls }, () => ask(caller, MODEL)));
  const { records } = caller;
  const codes: Record<string, number> = {};
  for (const { code = 'answered' } of records) codes[code] = (codes[code] ?? 0) + 1;
  return {
    calls: records.length,
    attempts: records.reduce((sum, { attempts }) => sum + attempts, 0),
    latestMs: Math.max(...records.map(({ askedMs, sentMs }) => sentMs - askedMs)),
    endedWithinMs: Math.max(...records.map(({ askedMs, endedMs }) => endedMs - askedMs)),
    codes,
  };
}

const messages = [{ role: 'user' as const, content: 'Hello' }];
const embed: ClientCall<unknown> = (client, signal, model) =>
  client.embeddings.create({ model, input: ['one'] }, { signal });

/** Requests that the provider sees of one call that fails, by each way to make one. The policy allows `attempts`. */
export async function attemptsSeen(
  { emulator, runtime }: Omit<OutageSetting, 'openai'>,
  make: (options: { fetch?: typeof globalThis.fetch }) => OpenAI,
  attempts: number,
): Promise<Readonly<Record<string, { readonly seen: number; readonly ours: number }>>> {
  const policy: PolicyInput = { models: { default: { breaker: noBreaker, retry: { attempts, baseMs: 1, capMs: 5 } } } };
  const ways: Readonly<Record<string, (caller: Caller) => Promise<unknown>>> = {
    chat: (caller) => ask(caller, MODEL),
    respond: (caller) => follow(caller, caller.sluice.respond({ model: MODEL, input: 'Hello' })),
    complete: (caller) => follow(caller, caller.sluice.complete({ model: MODEL, messages })),
    call: (caller) => follow(caller, caller.sluice.call(MODEL, embed)),
    fetch: ({ sluice }) => viaFetch(sluice, false),
    'fetch, streamed': ({ sluice }) => viaFetch(sluice, true),
  };
  const viaFetch = async (sluice: Sluice, stream: boolean): Promise<void> => {
    const create = make({ fetch: sluice.fetch }).chat.completions.create({ model: MODEL, messages, stream });
    await Promise.resolve(create).catch(() => {});
  };
  const seen: Record<string, { seen: number; ours: number }> = {};
  for (const [way, call] of Object.entries(ways)) {
    await emulator.reset();
    await emulator.script([FAILS]);
    const caller: Caller = { sluice: createSluice(make({}), policy, { runtime }), runtime, records: [] };
    let ours = 0;
    caller.sluice.events$.subscribe(({ type }) => (ours += type === 'attempt.started' ? 1 : 0));
    await call(caller);
    seen[way] = { seen: (await emulator.report()).requests, ours };
  }
  return seen;
}

export interface CloseResult {
  readonly answered: number;
  readonly cut: number;
  readonly refused: number;
  readonly closedAfterMs: number;
  /** Requests that the provider still ran a moment later. */
  readonly running: number;
  readonly left: number;
}

/** Closes a client on which short and endless answers run, and which is asked once more. */
export async function runClose(
  { openai, emulator, runtime }: OutageSetting,
  { short, long, drainMs }: { readonly short: number; readonly long: number; readonly drainMs: number },
): Promise<CloseResult> {
  await emulator.reset();
  const policy: PolicyInput = { models: { default: { concurrency: { limit: 1_000 } } } };
  const caller: Caller = { sluice: createSluice(openai, policy, { runtime }), runtime, records: [] };
  const shorts = Array.from({ length: short }, () => ask(caller, MODEL));
  const longs = Array.from({ length: long }, () => ask(caller, 'long'));
  await sleep(runtime, drainMs / 10);
  const startMs = runtime.clock.now();
  const closing = caller.sluice.close({ drainMs });
  const later = await ask(caller, MODEL);
  await closing;
  const closedAfterMs = runtime.clock.now() - startMs;
  const records = await Promise.all([...shorts, ...longs]);
  let { running } = await emulator.report();
  for (let i = 0; i < 50 && running > 0; i++) {
    await sleep(runtime, 20);
    ({ running } = await emulator.report());
  }
  return {
    answered: records.filter(({ code }) => code === undefined).length,
    cut: records.filter(({ code }) => code === 'closed').length,
    refused: later.code === 'closed' ? 1 : 0,
    closedAfterMs,
    running,
    left: caller.sluice.snapshot().calls,
  };
}
