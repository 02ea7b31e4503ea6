import { Heap } from '../../core/Heap.ts';
import type { LaneTurn } from './LaneTurn.ts';

/** The turns of this process, in the order in which they came. */
export class LaneTurns {
  readonly #turns = new Set<LaneTurn>();
  readonly #inLane = new Map<string, number>();
  readonly #placed = new Map<number, LaneTurn>();
  readonly #expiring = new Heap<LaneTurn>((a, b) => a.bound.atMs < b.bound.atMs);
  #held = 0;
  #foreign = 0;
  #latestForeignMs = 0;

  [Symbol.iterator](): IterableIterator<LaneTurn> {
    return this.#turns.values();
  }

  get size(): number {
    return this.#turns.size;
  }

  get lanes(): number {
    return this.#inLane.size;
  }

  get held(): number {
    return this.#held;
  }

  /** Places that the store has for this process: those of turns that it has not heard have left included. */
  get placed(): number {
    return this.#placed.size;
  }

  /** When the latest turn came that waits for another process; undefined if none does. */
  get latestForeignMs(): number | undefined {
    return this.#foreign > 0 ? this.#latestForeignMs : undefined;
  }

  /** When the first of those waiting has waited too long; `Infinity` if none ever will. */
  get expiresAtMs(): number {
    return this.#expiring.peek()?.bound.atMs ?? Infinity;
  }

  add(turn: LaneTurn): void {
    turn.before = this.#inLane.get(turn.lane) ?? 0;
    this.#inLane.set(turn.lane, turn.before + 1);
    this.#turns.add(turn);
  }

  placedAs(order: number): LaneTurn | undefined {
    return this.#placed.get(order);
  }

  place(turn: LaneTurn, order: number): void {
    turn.order = order;
    this.#placed.set(order, turn);
  }

  unplace(order: number): void {
    this.#placed.delete(order);
  }

  /** What the store has is named anew. */
  unplaceAll(): void {
    this.#placed.clear();
  }

  /** From now on its wait has an end. */
  bound(turn: LaneTurn): void {
    if (turn.expiry === undefined && turn.bound.atMs < Infinity) turn.expiry = this.#expiring.push(turn);
  }

  waits(turn: LaneTurn, position: number): void {
    // One that supersedes, or was named anew, knows not who is before it.
    const unknown = turn.request.supersede === true || turn.position > 0;
    turn.state = 'waiting';
    turn.position = position;
    this.#setForeign(turn, unknown || position > turn.before);
    this.bound(turn);
  }

  holds(turn: LaneTurn, token: number): void {
    this.#waitsNoMore(turn);
    turn.token = token;
    turn.state = 'held';
    this.#held++;
  }

  remove(turn: LaneTurn): void {
    this.#turns.delete(turn);
    const others = (this.#inLane.get(turn.lane) ?? 0) - 1;
    if (others > 0) this.#inLane.set(turn.lane, others);
    else this.#inLane.delete(turn.lane);
    if (turn.state === 'held') this.#held--;
    this.#waitsNoMore(turn);
    turn.state = 'over';
  }

  nextExpired(nowMs: number): LaneTurn | undefined {
    const turn = this.#expiring.peek();
    return turn && turn.bound.atMs <= nowMs ? turn : undefined;
  }

  #waitsNoMore(turn: LaneTurn): void {
    if (turn.expiry) this.#expiring.remove(turn.expiry);
    turn.expiry = undefined;
    this.#setForeign(turn, false);
  }

  #setForeign(turn: LaneTurn, foreign: boolean): void {
    if (turn.foreign === foreign) return;
    turn.foreign = foreign;
    this.#foreign += foreign ? 1 : -1;
    if (foreign) this.#latestForeignMs = turn.enteredAtMs;
  }
}
