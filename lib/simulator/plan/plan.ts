import { systemRuntime } from '../../core/runtime.ts';
import type { PolicyInput } from '../../policy/PolicyInput.ts';
import { strategyOf } from '../strategies/strategyOf.ts';
import { confirmed } from './confirmed.ts';
import { Judge } from './Judge.ts';
import type { PlanCandidate } from './Judge.ts';
import type { PlanFigure } from './judged.ts';
import { knobOf } from './knobOf.ts';
import { rangeOf } from './Knob.ts';
import type { Knob } from './Knob.ts';
import { missReasons } from './missReasons.ts';
import { parsePlan } from './parsePlan.ts';
import { PLAN_DEFAULTS } from './PlanInput.ts';
import type { PlanInput, PlanValue } from './PlanInput.ts';
import { reasonsOf } from './reasonsOf.ts';
import { searchAxes } from './searchAxes.ts';
import { shortened } from './shortened.ts';
import { Simulator } from './Simulator.ts';
import { targetsOf } from './targets.ts';

/** A number that was looked for. */
export interface PlanFinding {
  /** `requests a minute of main`. */
  readonly label: string;
  /** `1,160 requests a minute of main`. */
  readonly told: string;
  readonly value: PlanValue;
  /** What was looked through. */
  readonly from: PlanValue;
  readonly to: PlanValue;
  /** Why this value, in words. */
  readonly why: string;
  /** Where it stands in the policy, each a list of names. */
  readonly places: readonly (readonly (string | number)[])[];
  /** What else has to be done for it, where the policy alone does not do it. */
  readonly aside: string | undefined;
}

/** What came of a plan. */
export interface PlanResult {
  /** Its name. */
  readonly plan: string;
  /** Whether all targets are met, with seeds that had no part in the choice too. */
  readonly reached: boolean;
  /** In the order of `find`: what was found, or what came nearest. */
  readonly found: readonly PlanFinding[];
  /** With those seeds; where nothing was reached, with the seeds of the search. */
  readonly figures: readonly PlanFigure[];
  /** Why a target is missed, a sentence for each. Empty where all are met. */
  readonly reasons: readonly string[];
  /** The policy of the scenario with what was found in it. */
  readonly policy: PolicyInput;
  /** In the order in which they were tried. */
  readonly tried: readonly PlanCandidate[];
  /** What was run for it. */
  readonly simulated: {
    /** Of each run, and how long the load is. */
    readonly forMs: number;
    readonly ofMs: number;
    /** Which part of the load that is. */
    readonly part: 'all' | 'first' | 'peak';
    /** Runs of each candidate that met the targets. */
    readonly seeds: number;
    readonly runs: number;
    readonly calls: number;
  };
}

/** How far a plan is. */
export interface PlanProgress {
  readonly doing: 'searching' | 'confirming' | 'explaining';
  /** Values that are tried, in the order of `find`. */
  readonly values: readonly PlanValue[];
  /** Candidates that were judged, and runs that were made. */
  readonly candidates: number;
  readonly runs: number;
  /** Of the run that goes on, from 0 to 1. */
  readonly done: number;
}

/** How {@link plan} is watched, and ended. */
export interface PlanOptions {
  /** Called now and then. */
  readonly onProgress?: ((progress: PlanProgress) => void) | undefined;
  /** Ends the search: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Looks for the smallest quota, or for the numbers of a policy, with which a load meets its targets, by simulating it.
 *
 * Each candidate is run with several seeds. It meets a target if every run does, and if the next run would with 95 % confidence,
 * by the spread of these; the choice is then confirmed with as many other seeds. Where more cannot be worse, as with a
 * quota, the search bisects; else it looks all over the range, and then closer around the best.
 *
 * Pauses every 50 ms, so that the process can do other work. Nothing is shared between two plans, and the same plan gives the
 * same result.
 *
 * @param input - See {@link PlanInput}.
 * @param options - See {@link PlanOptions}.
 * @returns What was found, or why nothing was and what came nearest.
 *
 * @throws SluiceError `invalid_option` that names everything that is wrong with the plan; `aborted` by `options.signal`.
 *
 * @example
 * ```ts
 * import { plan, planYaml } from 'sluice/simulator';
 *
 * const result = await plan({
 *   scenario: {
 *     name: 'an hour of people',
 *     forMs: 3_600_000,
 *     load: [{ arrivals: { kind: 'poisson', perMinute: 540 }, model: 'gpt-5.5' }],
 *     upstreams: { main: { requestsPerMinute: 600, firstTokenMs: { median: 300, sigma: 0.3 } } },
 *     policy: { quota: { account: { requestsPerMinute: 600 } } },
 *   },
 *   target: { firstContentP95Ms: 1500, rateLimitedShare: 0.001, answeredShare: 0.999 },
 *   find: [{ kind: 'quota', rate: 'requestsPerMinute' }],
 * });
 * console.log(result.reached ? planYaml(result) : result.reasons.join('\n'));
 * ```
 */
export async function plan(input: PlanInput, options: PlanOptions = {}): Promise<PlanResult> {
  const { onProgress, signal } = options;
  const checked = parsePlan(input);
  const { precision = PLAN_DEFAULTS.precision, seeds = PLAN_DEFAULTS.seeds } = checked;
  const { callsPerRun = PLAN_DEFAULTS.callsPerRun, target } = checked;
  const { scenario, part } = shortened(checked.scenario, callsPerRun, target.costPerMonth !== undefined);
  const knobs = checked.find.map((search) => knobOf(search, checked.scenario, precision));
  const simulator = new Simulator(systemRuntime, signal);
  let doing: PlanProgress['doing'] = 'searching';
  const targets = targetsOf(target);
  const judge = new Judge(scenario, knobs, targets, seeds, (candidate, values) =>
    simulator.run(candidate, strategyOf({ kind: 'sluice' }), {
      tell: (done) => onProgress?.({ doing, values, candidates: judge.tried.length, runs: simulator.runs, done }),
    }),
  );

  const axes = knobs.map(({ search, values: all, start }) => ({
    size: all.length,
    wanted: search === 'best' ? ('best' as const) : ('least' as const),
    start,
  }));
  const { at, met } = await searchAxes(axes, (position) => judge.judge(position));
  doing = 'confirming';
  const confirmation = met ? await confirmed(judge, knobs, at) : undefined;
  doing = 'explaining';
  const chosen = confirmation?.at ?? at;
  const candidate = await judge.judge(chosen);
  const figures = confirmation?.figures ?? candidate.figures;
  const reached = confirmation?.met === true;
  const reasons = reached ? [] : await missReasons({ scenario, knobs, candidate, figures, targets, simulator });
  return {
    plan: checked.name ?? checked.scenario.name,
    reached,
    found: findings(knobs, judge, chosen, at, figures),
    figures,
    reasons,
    policy: judge.scenarioAt(chosen).policy ?? {},
    tried: judge.tried,
    simulated: {
      forMs: scenario.forMs,
      ofMs: checked.scenario.forMs,
      part,
      seeds,
      runs: simulator.runs,
      calls: simulator.calls,
    },
  };
}

function findings(
  knobs: readonly Knob[],
  judge: Judge,
  chosen: readonly number[],
  at: readonly number[],
  figures: readonly PlanFigure[],
): readonly PlanFinding[] {
  const values = knobs.map((knob, i) => knob.values[chosen[i] as number] as PlanValue);
  const reasons = reasonsOf({ knobs, tried: judge.tried, values, searched: at, figures });
  return knobs.map((knob, i) => {
    const value = values[i] as PlanValue;
    const [from, to] = rangeOf(knob);
    return {
      label: knob.label,
      told: knob.told(value),
      value,
      from,
      to,
      why: reasons[i] as string,
      places: knob.places,
      aside: knob.aside?.(value),
    };
  });
}
