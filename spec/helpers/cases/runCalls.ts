import { getEventListeners } from 'node:events';
import { backoff } from '../../../lib/limits/backoff.ts';
import { isSluiceError } from '../../../lib/core/errors.ts';
import type { CallsInput, Step } from './callsCase.ts';
import { CallsWorld } from './CallsWorld.ts';
import type { CallFacts } from './CallsWorld.ts';
import { bulkOps } from './bulkOps.ts';
import type { MakeDriver } from './CallsDriver.ts';
import { handDriver } from './handDriver.ts';
import { realOps } from './realOps.ts';

/** What came of a case. What only some steps find out is in `found`. */
export interface CallsFacts {
  readonly world: CallsWorld | undefined;
  readonly calls: readonly CallFacts[];
  readonly constructed: string;
  readonly waits: readonly number[];
  readonly found: Readonly<Record<string, unknown>>;
  readonly queueLengths: ReadonlyMap<number, number>;
  readonly listenersMost: number;
  readonly listenersAfter: number;
  readonly warnings: readonly string[];
}

/** Runs the steps: those with a time at that time, those of one conversation or with a name at once, others in turn. */
export async function runCalls(input: CallsInput, make: MakeDriver = handDriver): Promise<CallsFacts> {
  const { config = {}, steps } = input;
  const waits: number[] = [];
  const found: Record<string, unknown> = {};
  const queueLengths = new Map<number, number>();
  const warnings: string[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning.name);
  const shared = new AbortController();
  let listenersMost = 0;
  let world: CallsWorld;
  try {
    world = new CallsWorld(input, make);
  } catch (error) {
    if (!isSluiceError(error) || !['invalid_option', 'invalid_policy'].includes(error.code)) throw error;
    const constructed = 'throws configuration error';
    const none = { calls: [], waits, found, queueLengths, listenersMost: 0, listenersAfter: 0, warnings };
    return { world: undefined, constructed, ...none };
  }
  const { time, upstream } = world;
  upstream.onRequest = () =>
    (listenersMost = Math.max(listenersMost, getEventListeners(shared.signal, 'abort').length));
  for (let ms = 10; ms <= 100; ms += 10) {
    time.runtime().scheduler.schedule(() => queueLengths.set(ms, world.driver.slots().waiting), ms);
  }
  process.on('warning', onWarning);
  for (const { op, id } of steps) if (op === 'abort_in_same_tick_as_grant') world.abortOnGrant.add(String(id));

  for (const step of steps) {
    if (step.t !== undefined) await time.run(() => false, step.t);
    switch (step.op) {
      case 'call':
        await call(world, step);
        break;
      case 'flood':
        flood(world, step);
        break;
      case 'abort':
        // Without a name it is part of the stream before it.
        if (step.id !== undefined) world.call(step.id).controller.abort();
        break;
      case 'abort_in_same_tick_as_grant':
        break;
      case 'call_in_same_microtask_as_finish_of': {
        const first = world.call(String(step.of));
        let started = false;
        first.onSettled.push(() => {
          world.start(step);
          started = true;
        });
        await time.run(() => started);
        break;
      }
      case 'wait_ms':
      case 'advance_ms':
      case 'advance_monotonic_ms':
        await time.run(() => false, time.nowMs + (step.ms ?? 0));
        break;
      case 'wall_clock_step_ms':
        time.stepWall(step.ms ?? 0);
        break;
      case 'backoff': {
        const { base_ms: baseMs, max_ms: capMs, jitter } = config;
        const random = world.runtime.random;
        for (let at = 0; at < 50; at++) waits.push(backoff(step.attempt ?? 1, { baseMs, capMs, jitter }, random));
        break;
      }
      case 'shared_signal':
        world.sharedSignal = shared.signal;
        break;
      case 'construct':
        break;
      default: {
        const work = bulkOps[step.op] ?? realOps[step.op];
        if (work === undefined) throw new Error(`nothing does the step ${step.op}`);
        Object.assign(found, await work(world, step, input));
      }
    }
  }
  await world.settled(world.calls);
  await time.run(() => false, time.nowMs);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  const listenersAfter = getEventListeners(shared.signal, 'abort').length;
  return {
    world,
    calls: world.calls,
    constructed: 'ok',
    waits,
    found,
    queueLengths,
    listenersMost,
    listenersAfter,
    warnings,
  };
}

async function call(world: CallsWorld, step: Step): Promise<void> {
  const times = step.times ?? 1;
  const atOnce = step.concurrent === true || step.concurrency !== undefined || step.t !== undefined;
  const named = step.id !== undefined || step.conversation !== undefined;
  if (atOnce || named) {
    const started = Array.from({ length: times }, (_, index) => world.start(step, index));
    if (step.t === undefined && !named) await world.settled(started);
    return;
  }
  for (let index = 0; index < times; index++) await world.settled([world.start(step, index)]);
}

/** Calls that keep coming, whatever becomes of them. */
function flood(world: CallsWorld, step: Step & { readonly every_ms?: number; readonly for_ms?: number }): void {
  const { every_ms: everyMs = 100, for_ms: forMs = 1_000 } = step;
  const scheduler = world.time.runtime().scheduler;
  for (let ms = everyMs; ms <= forMs; ms += everyMs) scheduler.schedule(() => world.start({ ...step, op: 'call' }), ms);
}
