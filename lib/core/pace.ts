import type { Demand } from './attempt.ts';

let pace: Demand | undefined;

/** The pace of the consumer that is subscribing. Read it while being subscribed and never later. */
export function currentPace(): Demand | undefined {
  return pace;
}

/**
 * Runs `work`, a subscription upwards by a consumer with a pace of its own: every call started in it takes that pace
 * into its frame. Not a frame by itself, because what the consumer reads may be many calls.
 */
export function runAtPace<R>(demand: Demand | undefined, work: () => R): R {
  const outer = pace;
  pace = demand;
  try {
    return work();
  } finally {
    pace = outer;
  }
}
