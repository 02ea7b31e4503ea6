import type { CallStart } from '../core/CallObserver.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { SluiceEvent } from '../core/events.ts';
import type { Cell } from './Series.ts';

export type EventOf<T extends SluiceEvent['type']> = Extract<SluiceEvent, { readonly type: T }>;

/** Tokens that one model reported within a call. */
export interface ModelTokens {
  readonly model: string | undefined;
  responseModel: string | undefined;
  inputTokens: number;
  outputTokens: number;
}

interface Held {
  readonly where: string;
  readonly attempt: number;
  readonly cell: Cell;
}

/** What a call holds of the gauges, and what can be measured only at its end. */
export class CallTally {
  /** `undefined` where nobody said that a call starts: then nobody says that it ends. */
  readonly start: CallStart | undefined;
  firstContentAtMs: number | undefined;
  /** The last attempt that ended. */
  last: EventOf<'attempt.ended'> | undefined;
  lastRefusal: ErrorCode | undefined;
  /** Who answers; found out once. */
  provider: string | undefined;
  readonly tokens: ModelTokens[] = [];
  readonly #owner: object;
  readonly #held: Held[] = [];
  /** Calls that began under its id and have not ended: one of a client may be part of one by hand. */
  #running = 1;
  /** Kept only if its owner may hear everything twice. */
  #heard: WeakSet<SluiceEvent> | undefined;

  /** `owner`: who counts it. */
  constructor(start: CallStart | undefined, owner: object) {
    this.start = start;
    this.#owner = owner;
  }

  /** Another call began under its id. */
  joined(by: object): void {
    this.#running++;
    if (by === this.#owner) this.#heard ??= new WeakSet();
  }

  /** Whether it is for `by` to count the event: where several observe one call, only the first does, and only once. */
  counts(event: SluiceEvent, by: object): boolean {
    if (this.start === undefined) return true;
    if (by !== this.#owner || this.#heard?.has(event)) return false;
    this.#heard?.add(event);
    return true;
  }

  /** Whether that was the last of the calls under its id. */
  endsNow(): boolean {
    return --this.#running === 0;
  }

  get holdsNothing(): boolean {
    return this.#held.length === 0;
  }

  /** Adds one to `cell` until it is let go of. A second time for the same does nothing. */
  hold(where: string, attempt: number, cell: Cell): void {
    if (this.#held.some((held) => held.where === where && held.attempt === attempt)) return;
    cell.value++;
    this.#held.push({ where, attempt, cell });
  }

  letGo(where: string, attempt: number): void {
    this.#drop((held) => held.where === where && held.attempt === attempt);
  }

  /** Whatever the attempt waited in. */
  letGoOfQueues(attempt: number, sent: string): void {
    this.#drop((held) => held.attempt === attempt && held.where !== sent);
  }

  letGoOfAll(): void {
    this.#drop(() => true);
  }

  ended(attempt: EventOf<'attempt.ended'>): void {
    this.last = attempt;
    const { model, usage, responseModel } = attempt;
    let of = this.tokens.find((tokens) => tokens.model === model);
    if (of === undefined) {
      if (usage === undefined && attempt.outcome !== 'success') return;
      this.tokens.push((of = { model, responseModel, inputTokens: 0, outputTokens: 0 }));
    }
    of.responseModel = responseModel ?? of.responseModel;
    of.inputTokens += usage?.inputTokens ?? 0;
    of.outputTokens += usage?.outputTokens ?? 0;
  }

  #drop(which: (held: Held) => boolean): void {
    const held = this.#held;
    for (let at = held.length - 1; at >= 0; at--) {
      const one = held[at] as Held;
      if (!which(one)) continue;
      one.cell.value--;
      held.splice(at, 1);
    }
  }
}
