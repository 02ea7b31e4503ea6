import type { Invariant } from './Invariant.ts';

/** A caller that unsubscribes or aborts is gone in the same tick, and so is everything that was done for it. */
export const nothingHappensAfterTheCallerLeft: Invariant = {
  name: 'nothingHappensAfterTheCallerLeft',
  promise: 'when a caller has left, or has its end, nothing is sent for it, nothing reaches it, and no attempt is open',
  watch(stage, fail) {
    return {
      see(fact) {
        switch (fact.kind) {
          case 'sent': {
            const { call } = fact.attempt;
            if (call.leftMs !== undefined || call.endedMs !== undefined) {
              fail(`call ${call.index} sends an attempt, and is over`);
            }
            return;
          }
          case 'value': {
            const { call } = fact;
            if (call.goneMs !== undefined || call.endedMs !== undefined)
              fail(`call ${call.index} gets a value, and is over`);
            return;
          }
          case 'ended': {
            const { call } = fact;
            if (call.leftMs !== undefined && call.planned.leaves?.how === 'unsubscribe') {
              fail(`call ${call.index} was left, and gets an end`);
            }
            return;
          }
          case 'left':
            if (fact.call.goneMs === undefined) fail(`call ${fact.call.index} was left, and goes on`);
            return;
          case 'gone': {
            const open = fact.call.attempts.filter(({ closedMs }) => closedMs === undefined).length;
            if (open > 0)
              fail(`call ${fact.call.index} is over at ${stage.nowMs()}, and ${open} of its attempts are open`);
            return;
          }
          default:
        }
      },
    };
  },
};
