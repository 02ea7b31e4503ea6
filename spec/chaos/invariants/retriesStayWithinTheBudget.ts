import { tokensOf } from '../plan/requestOf.ts';
import type { Invariant } from './Invariant.ts';

interface Entry {
  readonly atMs: number;
  readonly tokens: number;
}

/**
 * Counted anew from what was told. The client's window moves in steps of a tenth of itself, and forgets what was earned
 * meanwhile; so what is checked is what follows for windows a step shorter, and nearly twice as long.
 */
export const retriesStayWithinTheBudget: Invariant = {
  name: 'retriesStayWithinTheBudget',
  promise: 'retries of a model stay within the share of its first attempts, or the floor, that the policy allows',
  watch(stage, fail) {
    const earned = new Map<string, Entry[]>();
    const spent = new Map<string, Entry[]>();
    const first = new Set<string>();
    const reloads = stage.plan.shocks.some(({ kind }) => kind === 'reload');
    const listOf = (lists: Map<string, Entry[]>, key: string): Entry[] => {
      const list = lists.get(key) ?? [];
      lists.set(key, list);
      return list;
    };
    return {
      see(fact) {
        // Under changing rules windows are cut where they changed.
        if (reloads || fact.kind !== 'told' || fact.call === undefined) return;
        const { event, process, call } = fact;
        if (event.model === undefined) return;
        const key = `${process} ${event.model}`;
        const nowMs = stage.nowMs();
        const tokens = tokensOf(call.planned, call.index);
        if (event.type === 'attempt.started') {
          const own = `${call.index} ${event.model}`;
          if (!first.has(own)) listOf(earned, key).push({ atMs: nowMs, tokens });
          first.add(own);
          return;
        }
        if (event.type !== 'retry.scheduled') return;
        listOf(spent, key).push({ atMs: nowMs, tokens });
        const { ratio, minPerSecond, windowMs } = stage.policy.retryBudget;
        const floor = Math.floor((minPerSecond * windowMs) / 1000);
        const sum = (list: readonly number[]): number => list.reduce((total, one) => total + one, 0);
        const within = (entries: readonly Entry[], forMs: number): number[] =>
          entries.filter(({ atMs }) => atMs > nowMs - forMs).map((entry) => entry.tokens);
        const retries = within(listOf(spent, key), 0.9 * windowMs).sort((a, b) => b - a);
        const beyondFloor = sum(retries.slice(floor));
        const allowed = ratio * sum(within(listOf(earned, key), 1.9 * windowMs));
        if (beyondFloor > allowed + 1e-6) {
          fail(
            `${event.model} is retried with ${beyondFloor} tokens beyond the floor of ${floor}, of ${allowed} allowed`,
          );
        }
      },
    };
  },
};
