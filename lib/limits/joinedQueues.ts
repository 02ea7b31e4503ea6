import { FairQueue } from './FairQueue.ts';
import type { FairWaiter } from './FairQueue.ts';

/** One queue of all who wait in several, in the order in which they came. */
export function joinedQueues<T extends FairWaiter>([first, ...others]: readonly FairQueue<T>[]): FairQueue<T> {
  if (first && others.every(({ size }) => size === 0)) return first;
  const queue = new FairQueue<T>();
  const waiters = [...(first?.waiters() ?? []), ...others.flatMap((other) => [...other.waiters()])];
  for (const waiter of waiters.sort((a, b) => a.order - b.order)) queue.join(waiter);
  return queue;
}
