import { count, duration, percent } from '../../policy/words.ts';
import type { PlanFigure } from './judged.ts';
import type { PlanValue } from './PlanInput.ts';

/** `1.8 s`, `0.05 %`, `1,200`. */
export function shownAmount(unit: PlanFigure['unit'], amount: number): string {
  if (!Number.isFinite(amount)) return 'none';
  switch (unit) {
    case 'ms':
      return amount < 10_000 && amount >= 1000 ? `${count(amount / 1000)} s` : duration(amount);
    case 'share':
      // Of a millionth there is something too.
      return amount > 0 && amount < 0.0001 ? `${Number((100 * amount).toPrecision(2))} %` : percent(amount);
    case 'money':
      return amount.toLocaleString('en-US', { maximumFractionDigits: amount < 100 ? 2 : 0 });
  }
}

export function shownValue(value: PlanValue): string {
  return typeof value === 'number' ? count(value) : String(value);
}

/** `time to first content, p95 is 2.31 s, where it is to be at most 2 s`. */
export function shownMiss({ label, unit, side, limit, bound }: PlanFigure): string {
  const [measured, most] = [shownAmount(unit, bound), shownAmount(unit, limit)];
  const near = measured === most ? (side === 'at most' ? 'just above ' : 'just below ') : '';
  return `${label} is ${near}${measured}, where it is to be ${side} ${most}`;
}

/** The one that is furthest from its target, or nearest to it. */
export function tightest(figures: readonly PlanFigure[]): PlanFigure | undefined {
  return figures.reduce<PlanFigure | undefined>(
    (least, figure) => (least === undefined || figure.room < least.room ? figure : least),
    undefined,
  );
}
