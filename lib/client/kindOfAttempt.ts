import type { CallPlan } from './CallPlan.ts';

/** Attempts of one kind can be compared by their times to the first value. */
export function kindOfAttempt({ api, stream }: Pick<CallPlan<unknown>, 'api' | 'stream'>, model: string): string {
  return `${String(api)} ${String(stream)} ${model}`;
}
