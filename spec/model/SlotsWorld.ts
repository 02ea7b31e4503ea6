import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import { ConcurrencyLimit } from '../../lib/limits/ConcurrencyLimit.ts';
import type { ConcurrencyLimitOptions, Slot, Waiter } from '../../lib/limits/ConcurrencyLimit.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Caller {
  readonly number: number;
  phase: 'new' | 'waiting' | 'holding' | 'over';
  waiter?: Waiter<Caller>;
  slot?: Slot;
}

export type Slots = ConcurrencyLimit<Caller>;

const WAIT_MS = 2;
const MOST_WAITING = 2;
const LIMIT = 1;
export const SLOTS: ConcurrencyLimitOptions = { limit: LIMIT, maxWaiting: MOST_WAITING };
const OUTCOMES = [SUCCESS, DROPPED, { kind: 'failure', error: new SluiceError('rate_limited', 'no') }] as const;

/** Callers that want a slot each: some give up after 2 ms, all can leave the line, and the limit is set anew meanwhile. */
export class SlotsWorld implements World {
  readonly #clock = new ModelClock();
  readonly #slots: Slots;
  readonly #limits: readonly number[];
  readonly #callers: readonly Caller[];
  readonly #line: Caller[] = [];
  #limit: number;

  constructor(callers: number, limits: readonly number[], make: (clock: ModelClock) => Slots = slotsOf) {
    this.#limits = limits;
    this.#slots = make(this.#clock);
    this.#limit = LIMIT;
    this.#callers = Array.from({ length: callers }, (_, number) => ({ number, phase: 'new' }));
  }

  get #inFlight(): number {
    return this.#callers.filter(({ phase }) => phase === 'holding').length;
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    // Those who have not come are alike: the first of them stands for any.
    const fresh = this.#callers.find(({ phase }) => phase === 'new');
    if (fresh) {
      deeds.push([`${fresh.number} acquires, patiently`, () => this.#acquire(fresh, Infinity)]);
      deeds.push([`${fresh.number} acquires`, () => this.#acquire(fresh, WAIT_MS)]);
    }
    for (const caller of this.#line) deeds.push([`${caller.number} leaves the line`, () => this.#leave(caller)]);
    const holder = this.#callers.find(({ phase }) => phase === 'holding');
    if (holder) {
      OUTCOMES.forEach((outcome) =>
        deeds.push([`${holder.number} releases after ${outcome.kind}`, () => this.#release(holder, outcome)]),
      );
    }
    deeds.push(['the next one is served', () => this.#next()]);
    deeds.push(['the next one expires', () => this.#expire()]);
    deeds.push(['1 ms passes', () => void this.#clock.nowMs++]);
    for (const limit of this.#limits) {
      if (limit !== this.#limit) deeds.push([`the limit becomes ${limit}`, () => this.#adjust(limit)]);
    }
    return deeds;
  }

  key(): string {
    const line = this.#line.map(({ waiter }) => (waiter as Waiter<Caller>).expiresAtMs - this.#clock.nowMs);
    const fresh = this.#callers.filter(({ phase }) => phase === 'new').length;
    return `${this.#limit} ${this.#inFlight} ${fresh} [${line.map((leftMs) => Math.max(0, leftMs)).join()}]`;
  }

  wrong(): string | undefined {
    const { limit, inFlight, waiting } = this.#slots.snapshot();
    if (limit !== this.#limit) return `the limit is ${limit}, and ${this.#limit} was set`;
    if (inFlight !== this.#inFlight) return `${inFlight} in flight, and ${this.#inFlight} hold a slot`;
    if (waiting !== this.#line.length) return `${waiting} wait, and ${this.#line.length} should`;
    const expiries = this.#line.map(({ waiter }) => waiter?.expiresAtMs ?? 0).filter((atMs) => atMs < Infinity);
    const first = expiries.length > 0 ? Math.min(...expiries) : undefined;
    return this.#slots.nextExpiryAtMs === first ? undefined : `expects the next to expire at ${first}`;
  }

  ended(): boolean {
    return this.#callers.every(({ phase }) => phase === 'over');
  }

  #acquire(caller: Caller, maxWaitMs: number): unknown {
    const decision = this.#slots.acquire({ maxWaitMs }, caller);
    const room = this.#line.length === 0 && this.#inFlight < this.#limit;
    must((decision.kind === 'granted') === room, `${decision.kind} where there was ${room ? '' : 'no '}room`);
    if (decision.kind === 'granted') {
      caller.phase = 'holding';
      caller.slot = decision.slot;
    } else if (decision.kind === 'queued') {
      caller.phase = 'waiting';
      caller.waiter = decision.waiter;
      this.#line.push(caller);
      must(decision.position === this.#line.length, `is told place ${decision.position}`);
    } else {
      caller.phase = 'over';
      must(decision.code === 'queue_full' && this.#line.length === MOST_WAITING, `is refused with ${decision.code}`);
      must(decision.retryAfterMs > 0 && decision.retryAfterMs < Infinity, `is told ${decision.retryAfterMs} ms`);
    }
    return decision.kind;
  }

  #leave(caller: Caller): unknown {
    caller.phase = 'over';
    this.#line.splice(this.#line.indexOf(caller), 1);
    const waiter = caller.waiter as Waiter<Caller>;
    must(this.#slots.leave(waiter), 'was not in line');
    must(!this.#slots.leave(waiter), 'leaves twice');
    return 'left';
  }

  #release(caller: Caller, outcome: (typeof OUTCOMES)[number]): unknown {
    caller.phase = 'over';
    this.#slots.release(caller.slot as Slot, outcome);
    // What is released twice, as by an error and by the unsubscribe that follows it, is one slot.
    this.#slots.release(caller.slot as Slot, outcome);
    return 'released';
  }

  #next(): unknown {
    const served = this.#slots.next();
    const room = this.#inFlight < this.#limit;
    const first = this.#line[0];
    must(
      (served !== undefined) === (room && first !== undefined),
      served ? 'served without room' : 'left waiting beside a free slot',
    );
    if (served === undefined) return 'none';
    must(served.waiter.item === first, `${served.waiter.item.number} is served before ${first?.number}`);
    this.#line.shift();
    first.phase = 'holding';
    first.slot = served.slot;
    return 'served';
  }

  #expire(): unknown {
    const expired = this.#slots.expire();
    const overdue = this.#line.some(({ waiter }) => (waiter as Waiter<Caller>).expiresAtMs <= this.#clock.nowMs);
    must((expired !== undefined) === overdue, overdue ? 'nobody expires, and one is overdue' : 'expires early');
    if (expired === undefined) return 'none';
    const { item } = expired.waiter;
    must(expired.refusal.code === 'queue_timeout', `expires with ${expired.refusal.code}`);
    item.phase = 'over';
    this.#line.splice(this.#line.indexOf(item), 1);
    return 'expired';
  }

  #adjust(limit: number): unknown {
    this.#limit = limit;
    return this.#slots.adjust(limit).kind;
  }
}

export function slotsOf(clock: ModelClock): Slots {
  return new ConcurrencyLimit<Caller>(SLOTS, clock);
}
