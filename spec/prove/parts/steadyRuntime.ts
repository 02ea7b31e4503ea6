import { Heap } from '../../../lib/core/Heap.ts';
import type { Runtime } from '../../../lib/core/runtime.ts';

/** Most that the clock moves from one turn of the event loop to the next. */
const MOST_MS = 2;

interface Timer {
  readonly atMs: number;
  readonly work: () => void;
}

/**
 * Real time, less what the machine takes away: the clock stands still within a turn of the event loop, and between two
 * turns it moves by 2 ms at most, however long the process was kept from running. A client and a server of one process
 * that share it measure what the code does, at the same figures on a quiet and on a busy machine.
 *
 * `pace`, from 1, is how many ms it makes of one: of 2, a quiet machine sees the turns of a busy one, in half the time.
 */
export function steadyRuntime({ pace = 1 }: { readonly pace?: number } = {}): Runtime & { stop(): void } {
  const timers = new Heap<Timer>((a, b) => a.atMs < b.atMs);
  let nowMs = 0;
  let tickedMs = performance.now();
  const tick = (): void => {
    const realMs = performance.now();
    nowMs += Math.min(pace * (realMs - tickedMs), MOST_MS);
    tickedMs = realMs;
    for (let next = timers.peek(); next && next.atMs <= nowMs; next = timers.peek()) {
      timers.pop();
      next.work();
    }
    ticker = setTimeout(tick, 1);
  };
  let ticker = setTimeout(tick, 1);
  return {
    clock: { now: () => nowMs, wallNow: () => Date.now() },
    random: Math.random,
    scheduler: {
      schedule(work, delayMs = 0) {
        const node = timers.push({ atMs: nowMs + delayMs, work });
        return { unsubscribe: () => void timers.remove(node) };
      },
    },
    stop: () => clearTimeout(ticker),
  };
}
