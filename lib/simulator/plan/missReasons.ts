import { modelPolicy } from '../../policy/modelPolicy.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import { listed, percent } from '../../policy/words.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import type { StrategyResult } from '../SimulationRun.ts';
import { bestSchedule } from '../strategies/bestSchedule.ts';
import { strategyOf } from '../strategies/strategyOf.ts';
import { turned } from './Judge.ts';
import type { PlanCandidate } from './Judge.ts';
import type { PlanFigure } from './judged.ts';
import type { Knob } from './Knob.ts';
import type { Simulator } from './Simulator.ts';
import { shownAmount } from './shownFigure.ts';
import type { Target } from './targets.ts';

interface Miss {
  readonly scenario: Scenario;
  readonly knobs: readonly Knob[];
  /** What came nearest, or what was found and not confirmed. */
  readonly candidate: PlanCandidate;
  readonly figures: readonly PlanFigure[];
  readonly targets: readonly Target[];
  readonly simulator: Simulator;
}

/** Runs that tell the causes apart. */
interface Causes {
  readonly nearest: StrategyResult;
  /** Everything sent at once to providers without limits and faults: what the answers themselves take. */
  readonly floor: StrategyResult;
  /** Who knows limits and outages beforehand; not where accounts share the calls, which the yardstick does not do. */
  readonly best: StrategyResult | undefined;
  /** Without the limits that were looked for, where there were any. */
  readonly free: StrategyResult | undefined;
}

/** For each target that is missed: the nearest figure, and what is in the way. */
export async function missReasons(miss: Miss): Promise<readonly string[]> {
  const { scenario, knobs, candidate, figures, targets, simulator } = miss;
  const missed = figures.filter(({ met }) => !met);
  if (missed.length === 0) return [];
  const nearest = turned(scenario, knobs, candidate.values);
  const frees = knobs.flatMap(({ free }) => free ?? []);
  const causes: Causes = {
    nearest: await simulator.run(nearest, strategyOf({ kind: 'sluice' })),
    floor: await simulator.run(nearest, strategyOf({ kind: 'bare' }), { free: true }),
    best: isShared(nearest) ? undefined : await simulator.run(nearest, bestSchedule(nearest), { free: true }),
    free:
      frees.length === 0
        ? undefined
        : await simulator.run(
            frees.reduce((of, free) => free(of), nearest),
            strategyOf({ kind: 'sluice' }),
          ),
  };
  const where = listed(knobs.map((knob, i) => knob.told(candidate.values[i] ?? '')));
  return missed.map((figure) => {
    const target = targets.find(
      ({ measure }) => measure.name === figure.target && measure.tenant === figure.tenant,
    ) as Target;
    const { label, unit, side, limit, bound } = figure;
    const head = `${label}: ${shownAmount(unit, bound)} is the nearest, at ${where}; it is to be ${side} ${shownAmount(unit, limit)}.`;
    return `${head} ${causeOf(target, causes, scenario)}`;
  });
}

function causeOf({ measure, limit }: Target, causes: Causes, scenario: Scenario): string {
  const { nearest, floor, best, free } = causes;
  const of = (result: StrategyResult): number => measure.of(result);
  const shown = (result: StrategyResult): string => shownAmount(measure.unit, of(result));
  const isMissed = (result: StrategyResult): boolean =>
    measure.side === 'at most' ? of(result) > limit : of(result) < limit;
  const raise =
    free !== undefined && !isMissed(free) ? `; without these limits it is ${shown(free)}: look further up` : '';
  if (measure.name === 'costPerMonth') {
    return isMissed(floor)
      ? `The tokens that are asked for cost ${shown(floor)} by themselves: no quota makes them cheaper.`
      : `The tokens that are asked for cost ${shown(floor)} by themselves; the rest is retries and fallbacks.`;
  }
  if (measure.name === 'rateLimitedShare') return `${causesOf429s(scenario)}${raise}.`;
  if (measure.name === 'answeredShare') {
    const failures = Object.entries(nearest.failed).map(([code, count]) => `${code} ${percent(count / nearest.calls)}`);
    const left = nearest.left > 0 ? [`left by users ${percent(nearest.left / nearest.calls)}`] : [];
    return `Of all calls: ${listed([...failures, ...left])}${raise}.`;
  }
  if (isMissed(floor)) {
    return `Even without any limit, fault or wait it is ${shown(floor)}: that is what the model itself and the network take.`;
  }
  if (best !== undefined && isMissed(best) && raise === '') {
    return `The model itself takes ${shown(floor)}; even who knows all limits and outages beforehand gets to ${shown(best)} with these limits, in order of arrival.`;
  }
  const schedule = best === undefined ? '' : `, and the best possible schedule gets to ${shown(best)}`;
  return `The model itself takes ${shown(floor)}${schedule}; waits before the first request are ${shownAmount('ms', nearest.queueMs.p95)} at p95${raise}.`;
}

/** What there is in the scenario that makes a provider refuse what a policy lets through. */
function causesOf429s({ upstreams }: Scenario): string {
  const found = Object.entries(upstreams).flatMap(([client, upstream]) => {
    const layers = [upstream, ...Object.values(upstream.models ?? {})];
    const some = (is: (layer: (typeof layers)[number]) => boolean): boolean => layers.some(is);
    return [
      ...(some(({ noiseShare = 0 }) => noiseShare > 0) ? [`others use a part of the quota of ${client}`] : []),
      ...(some(({ maxConcurrent }) => maxConcurrent !== undefined) ? [`${client} bounds requests at once`] : []),
      ...((upstream.changes ?? []).length > 0 ? [`the limits of ${client} change`] : []),
      ...((upstream.randomFaults ?? []).length + (upstream.script ?? []).length + (upstream.outages ?? []).length > 0
        ? [`${client} has faults`]
        : []),
    ];
  });
  return found.length > 0
    ? `They come although limits are kept, since ${listed(found)}`
    : 'The limits of the provider are below those of the policy';
}

/** Whether any calls may go to several accounts. */
function isShared({ policy = {}, upstreams, load }: Scenario): boolean {
  const parsed = parsePolicy(policy, { clients: Object.keys(upstreams) });
  return load.some(({ model }) => modelPolicy(parsed, model).deployments.length > 1);
}
