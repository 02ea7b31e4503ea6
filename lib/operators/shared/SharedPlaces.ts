import { isSluiceError, SluiceError } from '../../core/errors.ts';
import { DROPPED_UNSENT } from '../../core/outcome.ts';
import type { Grant } from '../../core/ports.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Admission } from '../../limits/Admission.ts';
import type { AdmissionTicket } from '../../limits/AdmissionPool.ts';
import { PlaceCounts } from './PlaceCounts.ts';
import type { Credit, SharedLine } from './SharedLine.ts';
import type { SharedTarget } from './SharedTarget.ts';
import type { LinePlace, Waiter } from './Waiter.ts';

export interface PlacesUser {
  readonly clock: Pick<Clock, 'now'>;
  readonly machine: Admission;
  /** The deployments of the waiter's model. */
  targetsOf(ticket: AdmissionTicket): readonly SharedTarget[];
  /** Something has come, or is over. */
  serve(): void;
  /** The store refuses it. */
  refuse(ticket: AdmissionTicket, error: SluiceError): void;
}

/** Nothing is asked for so long for one whose grant could not be used. */
const REST_MS = 25;

/**
 * Keeps the places of this process in the store's lines: one for each waiter that could go if there were quota for it. What
 * comes of a place is a credit at its line, for whoever is next here by the rules of this process; what nobody takes goes
 * back at once.
 *
 * - Of several deployments that is asked at which the wait is likely to be shortest; where there is one, all others too, and
 *   what comes first is taken.
 * - Who is granted what another one's place brought leaves its own place to that one, if it is as large.
 */
export class SharedPlaces {
  readonly #user: PlacesUser;
  readonly #waiters = new Map<AdmissionTicket, Waiter>();
  /** Those without a place, by what bounds them. */
  readonly #unplaced = new Map<string, Set<Waiter>>();
  readonly #counts = new PlaceCounts();
  readonly #lines = new Set<SharedLine>();
  #came = false;
  #restUntilMs = Infinity;

  constructor(user: PlacesUser) {
    this.#user = user;
  }

  join(waiter: Waiter): void {
    this.#waiters.set(waiter.ticket, waiter);
    this.#unplace(waiter);
  }

  waiterOf(ticket: AdmissionTicket): Waiter | undefined {
    return this.#waiters.get(ticket);
  }

  /** It no longer waits. */
  leave(ticket: AdmissionTicket): void {
    const waiter = this.#waiters.get(ticket);
    if (waiter === undefined) return;
    this.#waiters.delete(ticket);
    this.#groupOf(waiter)?.delete(waiter);
    for (const [target, place] of [...waiter.places]) this.#drop(target, place);
  }

  /** It has been granted at that deployment: takes the credit that let it go. */
  take(ticket: AdmissionTicket, target: SharedTarget): Credit | undefined {
    const credit = target.lineOf(ticket.tenant).take(target.target.costOf(ticket.cost));
    const waiter = this.#waiters.get(ticket);
    if (waiter && credit) this.#swap(waiter, credit, target);
    this.leave(ticket);
    return credit;
  }

  /** Whether something has come since it was last asked. */
  get came(): boolean {
    const came = this.#came;
    this.#came = false;
    return came;
  }

  /** Gives back what nobody took. */
  giveBack(): void {
    const nowMs = this.#user.clock.now();
    for (const line of [...this.#lines]) {
      // Stryker disable next-line CallExpression: it only gives memory back
      this.#lines.delete(line);
      for (const { grant, ticket } of line.leftOver()) {
        grant.release(DROPPED_UNSENT);
        const waiter = this.#waiters.get(ticket);
        if (waiter === undefined) continue;
        waiter.restUntilMs = nowMs + REST_MS;
        this.#restUntilMs = Math.min(this.#restUntilMs, waiter.restUntilMs);
      }
    }
  }

  /** Asks for those who could go if there were quota for them. Returns when to do so again, at the latest. */
  arrange(): number {
    const nowMs = this.#user.clock.now();
    if (this.#restUntilMs <= nowMs) this.#restUntilMs = Infinity;
    for (const group of this.#inTurn()) {
      for (const waiter of group) {
        if (waiter.restUntilMs > nowMs) continue;
        if (this.#counts.room(this.#user.machine, waiter.ticket) <= 0) break;
        // All of a group are alike, but for those that were refused somewhere.
        if (!this.#ask(waiter, nowMs) && waiter.refused.size === 0) break;
        if (this.#came) return this.#restUntilMs;
      }
    }
    return this.#restUntilMs;
  }

  /** Other options hold: places that lead nowhere any more are left, and everyone is looked at anew. */
  rearrange(): void {
    this.#unplaced.clear();
    for (const waiter of this.#waiters.values()) {
      const targets = this.#user.targetsOf(waiter.ticket);
      for (const [target, place] of [...waiter.places]) {
        if (!targets.includes(target) || target.lineOf(waiter.ticket.tenant) !== place.line) this.#drop(target, place);
      }
      if (waiter.places.size === 0) this.#unplace(waiter);
    }
    this.#counts.recount(this.#waiters.values());
  }

  /** Where something can be asked for it, the shortest wait first. */
  #candidates({ ticket, places, refused }: Waiter, nowMs: number): SharedTarget[] {
    const can = this.#user.targetsOf(ticket).filter((target) => {
      if (places.has(target) || refused.has(target) || !target.decides(ticket.tenant)) return false;
      return target.room > 0 && target.target.unavailableMs(nowMs) === 0;
    });
    const { tenant } = ticket;
    const waitMs = (target: SharedTarget): number => target.lineOf(tenant).expectedMs(nowMs);
    return can.sort((a, b) => waitMs(a) - waitMs(b) || a.load(tenant) - b.load(tenant));
  }

  #ask(waiter: Waiter, nowMs: number): boolean {
    const [first] = this.#candidates(waiter, nowMs);
    if (first) this.#askAt(waiter, first);
    return first !== undefined;
  }

  #askAt(waiter: Waiter, target: SharedTarget): void {
    const { ticket, request } = waiter;
    const line = target.lineOf(ticket.tenant);
    const cost = line.costOf(ticket.cost);
    let left = false;
    let credit: Credit | undefined;
    const place: LinePlace = { line, cost, waiter, lentOn: false, leave: () => (left = true) };
    this.#place(target, place);
    const nowMs = this.#user.clock.now();
    const subscription = line.route
      .acquire({
        cost: { ...cost, explicit: request.cost.explicit },
        model: request.model,
        tenant: request.tenant,
        priority: request.priority,
        maxWaitMs: Math.max(0, waiter.untilMs - nowMs),
        deadlineAtMs: request.deadlineAtMs,
        onQueued: (position, waitMs) => this.#queued(place, position, waitMs),
        onCooldown: (waitMs, reason) => credit?.onCooldown?.(waitMs, reason),
      })
      .subscribe({
        next: (grant) => (credit = this.#granted(target, place, grant)),
        error: (error: unknown) => this.#refused(target, place, error),
      });
    const leave = (): void => subscription.unsubscribe();
    place.leave = leave;
    if (left) subscription.unsubscribe();
  }

  #granted(target: SharedTarget, place: LinePlace, grant: Grant): Credit {
    const { line, cost, waiter } = place;
    const credit: Credit = { grant, cost, ticket: waiter.ticket, onCooldown: undefined };
    this.#forget(target, place);
    line.bring(credit);
    // What a tenant of its own waits for has come.
    this.#user.machine.tenants.unpark(waiter.ticket.from);
    this.#lines.add(line);
    this.#came = true;
    this.#user.serve();
    return credit;
  }

  #refused(target: SharedTarget, place: LinePlace, thrown: unknown): void {
    const { waiter } = place;
    const { ticket, request } = waiter;
    const error = isSluiceError(thrown)
      ? thrown
      : new SluiceError('limiter_unavailable', 'the store has failed', { while: 'queue' });
    this.#forget(target, place);
    this.#came = true;
    // The bounds of one that had it before are not its own: it asks for itself.
    if (!place.lentOn) waiter.refused.set(target, error);
    const open = this.#user.targetsOf(ticket).some((other) => !waiter.refused.has(other));
    if (!open) this.#user.refuse(ticket, error.with({ model: request.model }));
    this.#user.serve();
  }

  #queued({ line, waiter }: LinePlace, position: number, waitMs: number | undefined): void {
    const nowMs = this.#user.clock.now();
    line.waits(nowMs, waitMs);
    if (!waiter.told) {
      waiter.told = true;
      waiter.request.onQueued?.(position, waitMs);
    }
    for (const other of this.#candidates(waiter, nowMs)) {
      if (!this.#waiters.has(waiter.ticket)) return;
      this.#askAt(waiter, other);
    }
  }

  /** `waiter` goes by what the place of another one has brought: that one gets its place, if that is as good. */
  #swap(waiter: Waiter, { ticket, cost }: Credit, target: SharedTarget): void {
    const place = waiter.places.get(target);
    const other = this.#waiters.get(ticket);
    if (place === undefined || other === undefined || other.places.has(target)) return;
    const alike = place.cost.tokens === cost.tokens && place.cost.requests === cost.requests;
    if (!alike || target.lineOf(ticket.tenant) !== place.line) return;
    this.#forget(target, place);
    place.waiter = other;
    place.lentOn = true;
    // Should it come to nothing, it asks there for itself, though it has been refused there.
    other.refused.delete(target);
    this.#place(target, place);
  }

  #place(target: SharedTarget, place: LinePlace): void {
    const { waiter, line } = place;
    if (waiter.places.size === 0) {
      this.#groupOf(waiter)?.delete(waiter);
      this.#counts.add(waiter.ticket, 1);
    }
    waiter.places.set(target, place);
    line.places++;
    target.asking++;
  }

  /** The place is no more, whatever became of it. */
  #forget(target: SharedTarget, place: LinePlace): void {
    const { waiter, line } = place;
    if (waiter.places.get(target) !== place) return;
    waiter.places.delete(target);
    line.places--;
    target.asking--;
    if (waiter.places.size > 0) return;
    this.#counts.add(waiter.ticket, -1);
    if (this.#waiters.has(waiter.ticket)) this.#unplace(waiter);
  }

  #drop(target: SharedTarget, place: LinePlace): void {
    this.#forget(target, place);
    place.leave();
  }

  #unplace(waiter: Waiter): void {
    const key = groupKey(waiter);
    let group = this.#unplaced.get(key);
    if (group === undefined) this.#unplaced.set(key, (group = new Set()));
    group.add(waiter);
  }

  #groupOf(waiter: Waiter): Set<Waiter> | undefined {
    return this.#unplaced.get(groupKey(waiter));
  }

  /** The most urgent first, then those whose tenant is furthest behind. */
  #inTurn(): Set<Waiter>[] {
    const groups: { readonly group: Set<Waiter>; readonly first: AdmissionTicket }[] = [];
    for (const [key, group] of this.#unplaced) {
      const [first] = group;
      if (first) groups.push({ group, first: first.ticket });
      else this.#unplaced.delete(key);
    }
    groups.sort(({ first: a }, { first: b }) => a.level - b.level || a.from.tag - b.from.tag || a.order - b.order);
    return groups.map(({ group }) => group);
  }
}

function groupKey({ ticket: { level, tenant }, request: { model } }: Waiter): string {
  return JSON.stringify([model, level, tenant]);
}
