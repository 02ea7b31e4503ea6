/** An attempt as it was sent: its place among the others, from 1. */
export interface SentMark {
  readonly order: number;
  readonly atMs: number;
}

/** What happened between two rejections. */
export interface Between {
  /** Let in, and refused, among those that were sent in between. */
  readonly passed: number;
  readonly refused: number;
  readonly overMs: number;
}

interface Rejection extends SentMark {
  /** All that had been refused up to and including it, as far as was heard. */
  refused: number;
}

/**
 * Counts what passes between rejections. At a rejection the provider's bucket is empty, so what it has let in between two
 * of them is what has come in, whatever its burst. Times are those of sending: a way that always takes the same cancels
 * out.
 */
export class BetweenRejections {
  #sent = 0;
  #refused = 0;
  #last: Rejection | undefined;

  /** All that was sent. */
  get sent(): number {
    return this.#sent;
  }

  send(nowMs: number): SentMark {
    return { order: ++this.#sent, atMs: nowMs };
  }

  /** It was refused, or did not arrive. */
  uncount({ order }: SentMark): void {
    this.#refused++;
    // Heard late: it belongs to what was before.
    // Stryker disable next-line EqualityOperator: the marked one itself was counted before it was marked
    if (this.#last && order < this.#last.order) this.#last.refused++;
  }

  /** From here on. Call it after {@link uncount}. */
  mark(rejected: SentMark): void {
    this.#last = { ...rejected, refused: this.#refused };
  }

  /** The rate may have been another until now. */
  forget(): void {
    this.#last = undefined;
  }

  /** Since the last mark. */
  until(rejected: SentMark): Between | undefined {
    const from = this.#last;
    if (from === undefined) return undefined;
    const refused = Math.max(0, this.#refused - from.refused - 1);
    const passed = Math.max(0, rejected.order - from.order - 1 - refused);
    return { passed, refused, overMs: Math.max(1, rejected.atMs - from.atMs) };
  }
}
