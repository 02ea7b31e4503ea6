interface Low {
  /** The charge before which the debt was this low. */
  mark: number;
  low: number;
}

/**
 * Remembers the lowest debt since each charge: a stack of suffix minima. Recording is O(1) amortised, asking O(log n).
 *
 * Why: a charge that is undone must leave the debt as if it had never been made. What is left of it is the smaller of
 * its cost and the lowest debt since: where the debt was lower, the rest had been refilled for nobody's use.
 */
export class LowWater {
  // Stryker disable next-line ArrayDeclaration: what is no low is passed over
  readonly #stack: Low[] = [];

  /** `debt` is what it was just before charge `mark`. Lows closer than `grain` share an entry, at the lower one. */
  record(mark: number, debt: number, grain: number): void {
    const stack = this.#stack;
    let top = stack.at(-1);
    // Stryker disable next-line EqualityOperator: of two that are alike either may stay
    while (top !== undefined && top.low >= debt) {
      stack.pop();
      top = stack.at(-1);
    }
    if (top !== undefined && debt - top.low < grain) top.mark = mark;
    else stack.push({ mark, low: debt });
  }

  /** The lowest debt seen after charge `mark`; `Infinity` if no charge followed. */
  since(mark: number): number {
    return this.#stack[this.#firstAfter(mark)]?.low ?? Infinity;
  }

  /** A charge `mark` was undone by `amount`: all debts seen after it had been lower without it. */
  lower(mark: number, amount: number): void {
    const stack = this.#stack;
    const from = this.#firstAfter(mark);
    for (let i = from; i < stack.length; i++) {
      const entry = stack[i] as Low;
      entry.low = Math.max(0, entry.low - amount);
    }
    const lowest = stack[from]?.low;
    // Stryker disable next-line ConditionalExpression: then there is nothing to take out either
    if (lowest === undefined) return;
    let keep = from;
    // Stryker disable next-line EqualityOperator: of two that are alike either may stay
    while (keep > 0 && (stack[keep - 1] as Low).low >= lowest) keep--;
    stack.splice(keep, from - keep);
  }

  #firstAfter(mark: number): number {
    let low = 0;
    let high = this.#stack.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#stack[middle] as Low).mark > mark) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
