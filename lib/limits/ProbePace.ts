/**
 * How a rate is probed. From a little below the estimate it rises by twice `spread` in `overMs`: all in all as much is sent
 * as the estimate allows, and what had gathered at the provider is used up by then. Afterwards the excess doubles every
 * `doublesMs`, until there is a rejection. `holds`: it stays below for `overMs`.
 */
export interface ProbePace {
  readonly spread: number;
  readonly overMs: number;
  readonly doublesMs: number;
  readonly holds: boolean;
}

/** What to send after probing for so long, as a part of the estimate. */
export function paceAt({ spread, overMs, doublesMs, holds }: ProbePace, probedMs: number): number {
  const beyondMs = probedMs - overMs;
  // Stryker disable next-line EqualityOperator: both are the same there
  if (beyondMs > 0) {
    const grown = spread * 2 ** (beyondMs / doublesMs);
    return holds ? 1 - 2 * spread + grown : 1 + grown;
  }
  return holds ? 1 - spread : 1 - spread + (2 * spread * Math.max(0, probedMs)) / overMs;
}
