import type { Scenario } from '../scenario/Scenario.ts';
import type { SimulationResult } from '../simulate.ts';
import type { StrategyResult } from '../SimulationRun.ts';

/** Something that happens to a provider, as the scenario says. `toMs` is `fromMs` for what changes at once. */
export interface Happening {
  readonly fromMs: number;
  readonly toMs: number;
  readonly what: string;
}

/** What the scripts of the report read. */
export function reportData(scenario: Scenario, { best, strategies }: SimulationResult): object {
  const results = [best, ...strategies];
  let others = 1;
  return {
    forMs: scenario.forMs,
    endMs: Math.max(scenario.forMs, ...results.map(lastMs)),
    bands: happenings(scenario),
    strategies: results.map((result, place) => {
      const { timeline, name, calls, answered, rateLimitedShare, attemptsPerCall } = result;
      const { queueMs, firstContentMs, totalMs } = result;
      const role = place === 0 ? 'best' : isOurs(scenario, place - 1) ? 'ours' : 'other';
      const isFirst = role === 'ours' && place - 1 === strategies.findIndex((_, i) => isOurs(scenario, i));
      return {
        name,
        place,
        role,
        colour: isFirst ? 0 : role === 'best' ? undefined : others++,
        figures: { calls, answered, rateLimitedShare, attemptsPerCall, queueMs, firstContentMs, totalMs },
        timeline: rounded(timeline),
      };
    }),
  };
}

export function isOurs({ strategies }: Scenario, index: number): boolean {
  // Without a list of them, Sluice is the last of four.
  return strategies === undefined ? index === 3 : strategies[index]?.kind === 'sluice';
}

/** Outages and changes of limits, in the order of their times. */
export function happenings({ upstreams }: Scenario): Happening[] {
  const all = Object.entries(upstreams).flatMap(([client, { outages = [], changes = [] }]) => [
    ...outages.map((outage) => ({
      fromMs: outage.fromMs,
      toMs: outage.toMs,
      what: `${outage.model ?? 'all models'} of ${client}: ${outage.kind === 'error' ? outage.error : outage.kind}`,
    })),
    ...changes.map(({ atMs, account, models = {} }) => ({
      fromMs: atMs,
      toMs: atMs,
      what: `${client}: limits change to ${JSON.stringify({ ...(account && { account }), ...models })}`,
    })),
  ]);
  return all.sort((a, b) => a.fromMs - b.fromMs);
}

function lastMs({ timeline }: StrategyResult): number {
  return timeline === undefined ? 0 : timeline.bucketMs * timeline.calls.length;
}

const DIGITS = 5;

/** A plot shows no more digits. */
function rounded(value: unknown): unknown {
  const text = JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'number' && !Number.isInteger(part) ? Number(part.toPrecision(DIGITS)) : part,
  );
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}
