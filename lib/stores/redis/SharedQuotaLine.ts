import { Cooldown } from '../../limits/Cooldown.ts';
import type { CooldownOptions } from '../../limits/Cooldown.ts';

/** Someone who waits for a shared quota. */
export interface InLine {
  readonly order: number;
  readonly process: string;
  readonly pause: SharedPause;
  readonly requests: number;
  readonly tokens: number;
  /** Of the buckets that it waits for. */
  keys: readonly string[];
  turnUs: number;
}

/** While one is out on trial nobody knows when the others may follow. */
const TRIAL_LOOK_US = 250_000;

/** A pause that several routes share, and how many wait on those. */
export class SharedPause {
  readonly cooldown: Cooldown;
  waiting = 0;

  constructor(options: CooldownOptions, random: () => number) {
    this.cooldown = new Cooldown(options, random);
  }

  waitUs(nowUs: number): number {
    const pauseUs = this.cooldown.waitMs(nowUs / 1000) * 1000;
    return this.cooldown.certainMs(nowUs / 1000) === 0 ? Math.min(pauseUs, TRIAL_LOOK_US) : pauseUs;
  }
}

/** All who wait for a shared quota, whatever their route, in the order in which they came. */
export class SharedQuotaLine {
  readonly #entries = new Map<string, InLine>();

  get size(): number {
    return this.#entries.size;
  }

  get(id: string): InLine | undefined {
    return this.#entries.get(id);
  }

  /** Up to `most` who came after the one of that order. */
  after(order: number, most: number): InLine[] {
    const found: InLine[] = [];
    for (const entry of this.#entries.values()) {
      if (found.length === most) break;
      if (entry.order > order) found.push(entry);
    }
    return found;
  }

  join(id: string, entry: InLine): void {
    this.#entries.set(id, entry);
    entry.pause.waiting++;
  }

  /** Whether it was in line. */
  leave(id: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    this.#entries.delete(id);
    entry.pause.waiting--;
    return true;
  }

  /** Whether one of that process was in line. */
  forget(process: string): boolean {
    let found = false;
    for (const [id, entry] of this.#entries) if (entry.process === process) found = this.leave(id);
    return found;
  }

  /** Whether nobody came earlier whom the same pause holds. */
  isFirst(entry: InLine): boolean {
    for (const other of this.#entries.values()) if (other.pause === entry.pause) return other === entry;
    return false;
  }
}
