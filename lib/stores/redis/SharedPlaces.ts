import type { SlotsCall, SlotsReply, SlotsRules } from './SlotsCall.ts';

interface Holder {
  held: number;
  /** In use and wanted, as last heard. */
  demand: number;
  /** Orders those among whom there are fewer places than processes. */
  turn: number;
}

/**
 * What `slots.lua` decides, in TypeScript: the same calls get the same replies. Pure: the time is passed in, in whole
 * microseconds.
 *
 * Who wants less than an equal part has what it wants, and the others have equal parts of the rest. Nobody's place is taken away:
 * who has more than its part gives back what comes free. Where there are fewer places than processes that want one, they take
 * turns.
 *
 * Invariant: nothing is given while as many as the limit are held.
 */
export class SharedPlaces {
  readonly #rules: SlotsRules;
  readonly #holders = new Map<string, Holder>();
  readonly #leases = new Map<string, number>();
  readonly #members = new Map<string, number>();
  #known: number;
  /** Until then nothing is given: others may hold places that are not known here. */
  #closedUs: number;
  #order = 0;
  #heardUs = -Infinity;

  /** As the server makes it at the first call: with all places free, unless the caller had known another. */
  constructor(rules: SlotsRules, nowUs: number, known: number) {
    this.#rules = rules;
    this.#known = nowUs;
    this.#closedUs = known === 0 ? 0 : nowUs + rules.leaseUs;
  }

  call(nowUs: number, call: SlotsCall): SlotsReply {
    const { leaseUs, othersUs } = this.#rules;
    if (call.known !== 0 && call.known !== this.#known) {
      this.#closedUs = Math.max(this.#closedUs, this.#known + leaseUs);
    }
    if (call.returned && nowUs - this.#heardUs >= othersUs) this.#closedUs = Math.max(this.#closedUs, nowUs + othersUs);
    this.#heardUs = nowUs;
    this.#forget(nowUs, call);

    const own = this.#holder(call);
    own.demand = call.taken + call.wanted;
    const targets = this.#targets(call.limit);
    const target = targets.get(own) ?? 0;
    const wasEmpty = own.held === 0;
    if (nowUs >= this.#closedUs) this.#give(own, target, call);
    if (wasEmpty && own.held > 0) own.turn = ++this.#order;

    const pressed = this.#free(call.limit) < 0 || this.#somebody((other) => other !== own && short(other, targets));
    const given = own.held - call.keep;
    const owed = own.held < target ? 1 : 0;
    if (own.held === 0 && own.demand === 0) this.#drop(call.process);
    else this.#leases.set(call.process, nowUs);
    return [this.#known, this.#members.size, given, pressed ? target : -1, owed];
  }

  #forget(nowUs: number, { member, former }: SlotsCall): void {
    const { leaseUs, memberUs } = this.#rules;
    this.#members.set(member, nowUs);
    for (const [name, heardUs] of this.#members) if (heardUs < nowUs - memberUs) this.#members.delete(name);
    this.#drop(former);
    for (const [process, heardUs] of this.#leases) if (heardUs < nowUs - leaseUs) this.#drop(process);
  }

  #drop(process: string): void {
    this.#holders.delete(process);
    this.#leases.delete(process);
  }

  /** What runs is counted, whether or not it had been forgotten. */
  #holder({ process, keep, taken }: SlotsCall): Holder {
    const known = this.#holders.get(process);
    if (known === undefined) {
      const made = { held: taken, demand: 0, turn: ++this.#order };
      this.#holders.set(process, made);
      return made;
    }
    const held = Math.max(Math.min(known.held, keep), taken);
    if (held < known.held) known.turn = ++this.#order;
    known.held = held;
    return known;
  }

  #give(own: Holder, target: number, { limit, spare }: SlotsCall): void {
    own.held += Math.max(0, Math.min(target - own.held, this.#free(limit)));
    if (this.#somebody(({ held, demand }) => held < demand)) return;
    own.held += Math.max(0, Math.min(spare, Math.floor(this.#free(limit) / 2)));
  }

  #free(limit: number): number {
    let free = limit;
    for (const { held } of this.#holders.values()) free -= held;
    return free;
  }

  #somebody(is: (holder: Holder) => boolean): boolean {
    for (const holder of this.#holders.values()) if (is(holder)) return true;
    return false;
  }

  #targets(limit: number): Map<Holder, number> {
    const targets = new Map<Holder, number>();
    const holders = [...this.#holders.values()].sort((a, b) => a.demand - b.demand || a.turn - b.turn);
    let left = limit;
    let from = 0;
    let part = 0;
    for (; from < holders.length; from++) {
      const holder = holders[from] as Holder;
      part = Math.floor(left / (holders.length - from));
      if (holder.demand > part) break;
      targets.set(holder, holder.demand);
      left -= holder.demand;
    }
    // Those who still wait take turns before those who have had one, and of these the one that has had it longest ends first.
    const rank = ({ held, turn }: Holder): number => (part > 0 ? (held > part ? -1 : 0) : held > 0 ? 1 / turn : -1);
    const rest = holders.slice(from).sort((a, b) => rank(a) - rank(b) || a.turn - b.turn);
    rest.forEach((holder, i) => targets.set(holder, part + (i < left - part * rest.length ? 1 : 0)));
    return targets;
  }
}

function short(holder: Holder, targets: ReadonlyMap<Holder, number>): boolean {
  return holder.held < (targets.get(holder) ?? 0);
}
