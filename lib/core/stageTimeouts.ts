/**
 * How long each stage of an attempt may take, in milliseconds. `Infinity` switches a limit off. Defaults:
 * {@link STAGE_TIMER_DEFAULTS}.
 */
export interface StageTimeouts {
  /** From dispatch to the head of the answer. */
  readonly headersMs?: number | undefined;
  /** From dispatch to the first content. Default: the table's value, or half of what is left to the deadline if less. */
  readonly firstContentMs?: number | undefined;
  /** Between two pieces of progress, from the first content on. */
  readonly idleMs?: number | undefined;
  /** From the last finish reason to usage, `[DONE]` or the end. Running out is no failure. */
  readonly tailMs?: number | undefined;
  /** From dispatch to the whole of an answer that is not streamed. Default: the deadline, or else the table's value. */
  readonly responseMs?: number | undefined;
}

/** Defaults of {@link StageTimeouts}, in milliseconds. */
export const STAGE_TIMER_DEFAULTS: Required<{ readonly [K in keyof StageTimeouts]: number }> = Object.freeze({
  headersMs: 10_000,
  firstContentMs: 30_000,
  idleMs: 30_000,
  tailMs: 1_000,
  responseMs: 600_000,
});
