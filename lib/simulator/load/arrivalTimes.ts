import type { Arrivals } from '../scenario/Scenario.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Kinds of arrivals whose times do not depend on what becomes of the calls. */
export type OpenArrivals = Exclude<Arrivals, { kind: 'workers' } | { kind: 'trace' }>;

/** The times at which calls are made, ascending, all before `untilMs`. Drawn as they are asked for. */
export function* arrivalTimes(arrivals: OpenArrivals, untilMs: number, random: () => number): Generator<number, void> {
  switch (arrivals.kind) {
    case 'constant': {
      // Multiplied first: 700 times a seven hundredth of a minute is rounded to less than a minute.
      const timeOf = (i: number): number => (i * MINUTE_MS) / arrivals.perMinute;
      for (let i = 0; timeOf(i) < untilMs; i++) yield timeOf(i);
      return;
    }
    case 'bursts':
      for (let atMs = 0; atMs < untilMs; atMs += arrivals.everyMs) {
        for (let i = 0; i < arrivals.size; i++) yield atMs;
      }
      return;
    case 'poisson': {
      const gapMs = MINUTE_MS / arrivals.perMinute;
      for (let atMs = gap(gapMs, random); atMs < untilMs; atMs += gap(gapMs, random)) yield atMs;
      return;
    }
    case 'daily': {
      const { perMinute, peak = 1.5, periodMs = DAY_MS, peakAtMs = periodMs / 2 } = arrivals;
      // Thinning: Lewis and Shedler, "Simulation of nonhomogeneous Poisson processes by thinning", 1979.
      const gapMs = MINUTE_MS / (perMinute * peak);
      for (let atMs = gap(gapMs, random); atMs < untilMs; atMs += gap(gapMs, random)) {
        const swing = 1 + (peak - 1) * Math.cos((2 * Math.PI * (atMs - peakAtMs)) / periodMs);
        if (random() * peak < swing) yield atMs;
      }
    }
  }
}

function gap(meanMs: number, random: () => number): number {
  return -Math.log(1 - random()) * meanMs;
}
