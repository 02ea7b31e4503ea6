import { Observable } from 'rxjs';
import type { AttemptSource } from '../../../lib/core/attempt.ts';
import { currentScope } from '../../../lib/core/currentScope.ts';
import { createSluice } from '../../../lib/index.ts';
import { FairQueue } from '../../../lib/limits/FairQueue.ts';
import { virtualRuntime } from '../../../lib/testing/index.ts';
import { heapInUse } from '../../helpers/heap.ts';

const RATE_PER_MS = 10;
const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };
const choice = { index: 0, delta: { content: 'ok' }, finish_reason: 'stop' };

/** Answers within the tick of the request: all that a call takes is the client's own. */
const answering =
  (now: () => number): AttemptSource =>
  () =>
    new Observable((subscriber) => {
      const scope = currentScope();
      scope?.dispatched(now());
      subscriber.next({ kind: 'head', status: 200, requestId: undefined, hints: undefined });
      subscriber.next({ kind: 'data', value: { id: 'c', choices: [choice] }, event: undefined });
      subscriber.next({ kind: 'done' });
      subscriber.complete();
      return () => scope?.closed();
    });

export interface WaitersResult {
  readonly calls: number;
  readonly answered: number;
  /** CPU time of a whole call, from the subscription to the end of its answer. */
  readonly callUs: number;
  /** Heap in use for each that waits. */
  readonly waiterBytes: number;
}

/** Calls that are all made in one instant and wait for the same quota, one after the other: `rounds` times over. */
export async function runWaiters(waiters: number, rounds: number): Promise<WaitersResult> {
  const runtime = virtualRuntime();
  const sluice = createSluice(
    answering(() => runtime.clock.now()),
    {
      deadlineMs: null,
      quota: {
        account: { requestsPerMinute: 60_000 * RATE_PER_MS, burstRequests: 20, maxWaiting: 1e6, maxWaitMs: 1e9 },
      },
      models: { default: {} },
    },
    { runtime },
  );
  let answered = 0;
  let waiterBytes = 0;
  let usedUs = 0;
  for (let round = 0; round < rounds; round++) {
    const last = round === rounds - 1;
    const before = last ? await heapInUse() : 0;
    const began = process.cpuUsage();
    for (let at = 0; at < waiters; at++) sluice.chat(request).subscribe({ complete: () => answered++ });
    const asked = process.cpuUsage(began);
    if (last) waiterBytes = ((await heapInUse()) - before) / waiters;
    const served = process.cpuUsage();
    runtime.advance((2 * waiters) / RATE_PER_MS + 1_000);
    const done = process.cpuUsage(served);
    usedUs += asked.user + asked.system + done.user + done.system;
  }
  await sluice.close();
  return { calls: waiters * rounds, answered, callUs: usedUs / (waiters * rounds), waiterBytes };
}

/** CPU time of one call where as many conversations and tenants have been seen before, and one call at a time is made. */
export async function namesUs(names: number, calls: number): Promise<number> {
  const runtime = virtualRuntime();
  const sluice = createSluice(
    answering(() => runtime.clock.now()),
    {
      quota: { account: { requestsPerMinute: 6e9, burstRequests: 1e6 } },
      tenants: { default: { maxInFlight: 4, requestsPerMinute: 60, burstRequests: 10 } },
    },
    { runtime },
  );
  let answered = 0;
  const call = (at: number): void => {
    sluice
      .chat(request, { tenant: `tenant-${at % names}`, conversation: `conversation-${at % names}` })
      .subscribe({ complete: () => answered++ });
    runtime.advance(Math.max(1, 6_000 / names));
  };
  for (let at = 0; at < names; at++) call(at);
  const began = process.cpuUsage();
  for (let at = 0; at < calls; at++) call(at);
  const { user, system } = process.cpuUsage(began);
  if (answered !== names + calls) throw new Error(`${answered} of ${names + calls} were answered`);
  await sluice.close();
  return (user + system) / calls;
}

/** CPU time of one operation of the queue alone, where so many wait: one joins, and one is chosen and taken. */
export function queueUs(waiters: number, times: number): number {
  const queue = new FairQueue<{ tenant: string; weight: number; cost: Cost; order: number }>();
  const tenants = Math.max(1, waiters / 10);
  let order = 0;
  const join = (): void => {
    const at = order++;
    queue.join({ tenant: `t${at % tenants}`, weight: 1, cost: { requests: 1, tokens: 100 + (at % 400) }, order: at });
  };
  for (let at = 0; at < waiters; at++) join();
  const turn = (): void => {
    join();
    const [next] = queue.candidates(() => false);
    if (next === undefined) throw new Error('nobody waits');
    queue.take(next);
  };
  for (let at = 0; at < times / 10; at++) turn();
  const began = process.cpuUsage();
  for (let at = 0; at < times; at++) turn();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / times / 2;
}

type Cost = { readonly requests: number; readonly tokens: number };
