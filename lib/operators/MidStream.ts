import type { Answer } from '../core/answer.ts';
import type { ErrorCode, SluiceError } from '../core/errors.ts';
import type { MidStreamMode } from '../core/midStream.ts';
import { isContinuable, joinAnswers } from './joinAnswers.ts';

export { MID_STREAM_MODES } from '../core/midStream.ts';
export type { MidStreamMode } from '../core/midStream.ts';

/** How the next attempt relates to what the consumer holds: nothing, instead of it, behind it, or no attempt. */
export type GoOn =
  { readonly kind: 'first' | 'restart' | 'fail' } | { readonly kind: 'continue'; readonly partial: Answer };

/** Nothing has come yet. */
export const FROM_THE_START: GoOn = { kind: 'first' };

/** With an assistant prefix these are answers to the prefix: the request went through without it. */
const REFUSES_PREFIX: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['bad_request', 'context_too_long']);

/** What the consumer of one subscription holds, over all its attempts. Of no use before one of them has failed. */
export class MidStream {
  readonly #mode: MidStreamMode;
  readonly #restarts: boolean;
  /** How the running attempt relates to what the consumer holds. */
  #kind = FROM_THE_START.kind;
  #broke: SluiceError | undefined;
  #held: Answer | undefined;
  /** Whether `held` is all that the consumer holds. */
  // Stryker disable next-line BooleanLiteral: of no use before something broke
  #whole = false;
  // Stryker disable next-line BooleanLiteral: `fail` comes first
  #refused = false;
  #neverAgain = false;

  /** `restarts`: whether the consumer knows what a restart marker is. */
  constructor(mode: MidStreamMode, restarts: boolean) {
    this.#mode = mode;
    this.#restarts = restarts;
  }

  /** The failure that broke off what the consumer holds, with all of that as its `partial`. */
  get broke(): SluiceError | undefined {
    return this.#broke;
  }

  /** Whether the attempt that failed last was refused for its assistant prefix. */
  get prefixRefused(): boolean {
    return this.#refused;
  }

  /**
   * Takes the failure of the running attempt, and returns the one to tell the consumer if nothing mends it. `emitted`:
   * the attempt had given the consumer something.
   */
  fail(failure: SluiceError, emitted: boolean): SluiceError {
    this.#refused = false;
    if (emitted) {
      const { partial } = failure;
      this.#whole = partial !== undefined;
      if (this.#kind !== 'continue') this.#held = partial;
      else if (partial && this.#held) this.#held = joinAnswers(this.#held, partial);
      // Stryker disable next-line ConditionalExpression: a copy would say the same
      this.#broke = this.#held === partial ? failure : failure.with({ partial: this.#held });
      return this.#broke;
    }
    if (this.#broke === undefined) return failure;
    if (this.#kind === 'continue' && REFUSES_PREFIX.has(failure.code)) {
      this.#refused = true;
      this.#neverAgain = true;
      return this.#broke.with({ attempts: failure.attempts });
    }
    return failure.with({ partial: this.#held });
  }

  /** What the next attempt is to be. `mayContinue`: whether the model asked next accepts an assistant prefix. */
  next(mayContinue: boolean): GoOn {
    const goOn = this.#goOn(mayContinue);
    this.#kind = goOn.kind;
    return goOn;
  }

  #goOn(mayContinue: boolean): GoOn {
    if (this.#broke === undefined) return FROM_THE_START;
    const partial = this.#held;
    if (this.#mode === 'continue' && mayContinue && !this.#neverAgain && this.#whole && partial) {
      if (isContinuable(partial)) return { kind: 'continue', partial };
    }
    return { kind: this.#mode !== 'fail' && this.#restarts ? 'restart' : 'fail' };
  }
}
