import type { AdmissionTarget } from './AdmissionTarget.ts';

/** The least loaded, and before them those whose breaker is to be tried. */
export function bestFirst(nowMs: number, targets: readonly AdmissionTarget[]): readonly AdmissionTarget[] {
  // Stryker disable next-line ConditionalExpression: nothing is made for one alone
  if (targets.length === 1) return targets;
  const loads = new Map(targets.map((target) => [target, target.load(nowMs)]));
  return [...targets].sort((a, b) => probing(b) - probing(a) || (loads.get(a) ?? 0) - (loads.get(b) ?? 0));
}

/** A deployment whose breaker lets a share of the traffic probe is asked first, or it would never be closed again. */
function probing({ breaker }: AdmissionTarget): number {
  return breaker.state === 'open' || breaker.state === 'half_open' ? 1 : 0;
}
