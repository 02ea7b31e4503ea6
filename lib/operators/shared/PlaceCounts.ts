import type { Admission } from '../../limits/Admission.ts';
import type { AdmissionTicket } from '../../limits/AdmissionPool.ts';
import type { Waiter } from './Waiter.ts';

/** How many have a place in a line of the store, by what bounds them. */
export class PlaceCounts {
  #all = 0;
  #levels = new Map<number, number>();
  #tenants = new Map<string, number>();

  add({ level, tenant }: AdmissionTicket, by: 1 | -1): void {
    this.#all += by;
    move(this.#levels, level, by);
    move(this.#tenants, tenant, by);
  }

  /** Priorities have moved. */
  recount(waiters: Iterable<Waiter>): void {
    this.#all = 0;
    this.#levels = new Map();
    this.#tenants = new Map();
    for (const { ticket, places } of waiters) if (places.size > 0) this.add(ticket, 1);
  }

  /** How many more like this one could go at once, if there were quota for them. */
  room(machine: Admission, { level, from }: AdmissionTicket): number {
    const { rules, levels, lent } = machine;
    const { name = '', maxInFlight = Infinity } = rules.levels[level] ?? {};
    const all = Math.min(rules.maxInFlight, lent) - machine.inFlight - this.#all;
    const ofLevel =
      Math.min(maxInFlight, levels.lent.get(name) ?? Infinity) -
      (levels.inFlight[level] ?? 0) -
      (this.#levels.get(level) ?? 0);
    const ofTenant = Math.min(from.rules.maxInFlight, from.lent) - from.inFlight - (this.#tenants.get(from.name) ?? 0);
    return Math.min(all, ofLevel, ofTenant);
  }
}

function move<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  // Stryker disable next-line ConditionalExpression,CallExpression: it only gives memory back
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
