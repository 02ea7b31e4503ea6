import type { SharedSpend } from '../../limits/LimitStore.ts';
import { Alarm } from './Alarm.ts';
import { OneCall } from './OneCall.ts';
import { Script } from './Script.ts';
import type { LinkUser, StoreLink } from './StoreLink.ts';

export interface SharedSpendOptions {
  /** Of the keys in the store, with the hash tag; that of a day has its number after it. */
  readonly name: string;
  /** Of this process among those that share the store. */
  readonly member: string;
}

/** What a process knows of a tenant on one day, in whole billionths of the currency. */
interface Tenant {
  own: number;
  /** What it had spent when the store last heard of it, and what all had. */
  told: number;
  total: number | undefined;
  heardAtMs: number;
  /** Whether the store is to hear of it, or to be asked. */
  due: boolean;
}

/** What is spent within this time is told together. */
const LATER_MS = 100;
/** What is older than this is asked for anew when somebody wants to know. */
const FRESH_MS = 1000;
/** What is older than this is asked for before a call goes. */
const STALE_MS = 5000;
const KEEP_MS = 2 * 86_400_000;
const UNITS = 1e9;

const SCRIPT = Script.read('spend.lua');

/**
 * Tells the store what this process spends, and hears what the others do. Each time it tells all that it has spent on that
 * day: what is told twice counts once, and what a lost store has forgotten is there again. While it is lost, what was last
 * heard stands.
 */
export class SharedSpendDesk implements SharedSpend, LinkUser {
  readonly #link: StoreLink;
  readonly #options: SharedSpendOptions;
  readonly #days = new Map<number, Map<string, Tenant>>();
  readonly #calls: OneCall;
  readonly #alarm: Alarm;
  #hearers = new Set<() => void>();

  constructor(link: StoreLink, options: SharedSpendOptions) {
    this.#link = link;
    this.#options = options;
    this.#calls = new OneCall(
      (current) => this.#call(current),
      () => {},
    );
    this.#alarm = new Alarm(link.runtime, () => this.#send());
    link.use(this);
  }

  add(day: number, tenant: string, cost: number): void {
    const entry = this.#at(day, tenant);
    entry.own += Math.round(cost * UNITS);
    entry.due = true;
    this.#sendLater();
  }

  others(day: number, tenant: string): number | undefined {
    const entry = this.#at(day, tenant);
    if (entry.total === undefined) return undefined;
    if (this.#nowMs() - entry.heardAtMs >= FRESH_MS && !entry.due) {
      entry.due = true;
      this.#send();
    }
    return (entry.total - entry.told) / UNITS;
  }

  fresh(day: number, tenant: string): boolean {
    const { total, heardAtMs } = this.#at(day, tenant);
    return total !== undefined && (!this.#link.up || this.#nowMs() - heardAtMs < STALE_MS);
  }

  ask(day: number, tenant: string, heard: () => void): () => void {
    this.#at(day, tenant).due = true;
    const hearer = (): void => heard();
    this.#hearers.add(hearer);
    this.#send();
    if (!this.#link.up) this.#hear();
    return () => void this.#hearers.delete(hearer);
  }

  close(): void {
    this.#alarm.set(Infinity);
    if (this.#due()) this.#send();
  }

  lost(): void {
    this.#calls.reset();
    this.#hear();
  }

  returned(): void {
    for (const day of this.#days.values()) for (const tenant of day.values()) tenant.due ||= tenant.own > 0;
    if (this.#due()) this.#send();
  }

  /** What is not told yet can wait: nobody waits for it. */
  wanting(): boolean {
    return false;
  }

  #sendLater(): void {
    if (!this.#calls.busy) this.#alarm.set(this.#nowMs() + LATER_MS);
  }

  #send(): void {
    if (this.#link.up) this.#calls.ask();
    else this.#link.wanted();
  }

  async #call(current: () => boolean): Promise<void> {
    const hearers = this.#hearers;
    this.#hearers = new Set();
    for (const [day, tenants] of this.#days) {
      const due = [...tenants].filter(([, tenant]) => tenant.due);
      if (due.length === 0) continue;
      const told = due.map(([, tenant]) => {
        tenant.due = false;
        return tenant.own;
      });
      const args = due.flatMap(([name], i) => [name, String(told[i])]);
      const keys = [`${this.#options.name}:${day}`];
      const reply = await this.#link.run(SCRIPT, keys, [String(KEEP_MS), this.#options.member, ...args]);
      if (!current() || reply === undefined) {
        for (const [, tenant] of due) tenant.due = true;
        break;
      }
      due.forEach(([, tenant], i) => {
        tenant.told = told[i] ?? 0;
        tenant.total = Number((reply as unknown[])[i]);
        tenant.heardAtMs = this.#nowMs();
      });
    }
    for (const hear of hearers) hear();
    if (this.#link.up && this.#due()) this.#alarm.set(this.#nowMs() + LATER_MS);
  }

  #hear(): void {
    const hearers = this.#hearers;
    this.#hearers = new Set();
    for (const hear of hearers) hear();
  }

  #due(): boolean {
    return [...this.#days.values()].some((tenants) => [...tenants.values()].some(({ due }) => due));
  }

  #at(day: number, name: string): Tenant {
    let tenants = this.#days.get(day);
    if (tenants === undefined) {
      this.#days.set(day, (tenants = new Map<string, Tenant>()));
      for (const before of this.#days.keys()) if (before < day - 1) this.#days.delete(before);
    }
    let tenant = tenants.get(name);
    if (tenant === undefined) {
      tenant = { own: 0, told: 0, total: undefined, heardAtMs: -Infinity, due: false };
      tenants.set(name, tenant);
    }
    return tenant;
  }

  #nowMs(): number {
    return this.#link.runtime.clock.now();
  }
}
