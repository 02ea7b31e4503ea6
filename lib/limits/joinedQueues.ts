import type { AdmissionTicket } from './AdmissionPool.ts';
import { FairQueue } from './FairQueue.ts';

/** One queue of all who wait in several, in the order in which they came. */
export function joinedQueues([first, ...others]: readonly FairQueue<AdmissionTicket>[]): FairQueue<AdmissionTicket> {
  if (first && others.every(({ size }) => size === 0)) return first;
  const queue = new FairQueue<AdmissionTicket>();
  const tickets = [...(first?.waiters() ?? []), ...others.flatMap((other) => [...other.waiters()])];
  for (const ticket of tickets.sort((a, b) => a.order - b.order)) queue.join(ticket);
  return queue;
}
