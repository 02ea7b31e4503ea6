import type { PlanTarget } from './PlanInput.ts';
import type { Target } from './targets.ts';

/** One target, as some runs met it. */
export interface PlanFigure {
  readonly target: Exclude<keyof PlanTarget, 'tenants'>;
  /** Of whose calls; of all of them where it is undefined. */
  readonly tenant: string | undefined;
  readonly label: string;
  readonly limit: number;
  readonly side: 'at most' | 'at least';
  readonly unit: 'ms' | 'share' | 'money';
  /** Over the runs. */
  readonly mean: number;
  /** Of the run that was furthest from the target. */
  readonly worst: number;
  /**
   * What the next run is on the right side of with 95 % confidence, and all of these were: the prediction bound of a normal
   * distribution, or the worst run if that is further off. Decides.
   */
  readonly bound: number;
  /** From the bound to the limit, as a part of the limit; below 0 where the target is missed. */
  readonly room: number;
  readonly met: boolean;
}

/** `values`: one for each run. */
export function figureOf({ measure, limit }: Target, values: readonly number[]): PlanFigure {
  const { name, tenant, label, side, unit } = measure;
  const sign = side === 'at most' ? 1 : -1;
  const worst = sign * Math.max(...values.map((value) => sign * value));
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const predicted = mean + sign * predictionMargin(values, mean);
  const bound = within(unit, sign * Math.max(sign * worst, sign * predicted));
  const ratio = ratioOf(bound, limit, side);
  return { target: name, tenant, label, limit, side, unit, mean, worst, bound, room: 1 - ratio, met: ratio <= 1 };
}

/** A bound of a normal distribution may lie where no share can. */
function within(unit: PlanFigure['unit'], bound: number): number {
  return unit === 'share' ? Math.min(1, Math.max(0, bound)) : bound;
}

/** Above 1 where the limit is passed. A share that is to be high is judged by what is missing of it. */
function ratioOf(bound: number, limit: number, side: PlanFigure['side']): number {
  const [measured, most] = side === 'at most' ? [bound, limit] : [1 - bound, 1 - limit];
  // Shares are quotients of counts: their differences from 1 are not exact.
  if (measured <= most + 1e-12) return most === 0 ? 0 : Math.min(1, measured / most);
  return most === 0 ? Infinity : measured / most;
}

/** Student's t, one-sided, 95 %: Fisher, "Statistical Methods for Research Workers", 1925, table IV. */
const STUDENT = [
  6.314, 2.92, 2.353, 2.132, 2.015, 1.943, 1.895, 1.86, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.74,
  1.734, 1.729, 1.725,
];
const NORMAL = 1.645;

/** How far above the mean of these the next one is, at most. 0 for a single one, of which nothing is known. */
function predictionMargin(values: readonly number[], mean: number): number {
  const count = values.length;
  if (count < 2 || !Number.isFinite(mean)) return 0;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (count - 1));
  // Beyond the table the value for fewer runs is the safer one.
  const student = STUDENT[count - 2] ?? Math.max(NORMAL, STUDENT.at(-1) ?? NORMAL);
  return student * deviation * Math.sqrt(1 + 1 / count);
}
