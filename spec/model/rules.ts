/** A rule of a model, checked in passing: the exploration ends with the shortest way to where it is broken. */
export function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(rule);
}

export class ModelClock {
  nowMs = 0;

  now(): number {
    return this.nowMs;
  }

  wallNow(): number {
    return this.nowMs;
  }
}
