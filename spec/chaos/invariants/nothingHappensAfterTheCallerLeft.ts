import type { Invariant } from './Invariant.ts';

/** A gateway hears from the network that its client has gone. */
const HEARD_WITHIN_MS = 100;

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
            const { leftMs, endedMs, planned } = call;
            const heardMs = planned.by === 'gateway' ? HEARD_WITHIN_MS : 0;
            const over = leftMs === undefined ? endedMs !== undefined : leftMs + heardMs <= stage.nowMs();
            if (over) {
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
            if (fact.call.planned.by === 'gateway') return;
            const open = fact.call.attempts.filter(({ closedMs }) => closedMs === undefined).length;
            if (open > 0)
              fail(`call ${fact.call.index} is over at ${stage.nowMs()}, and ${open} of its attempts are open`);
            return;
          }
          default:
        }
      },
      end() {
        for (const { index, attempts } of stage.calls) {
          const open = attempts.filter(({ closedMs }) => closedMs === undefined).length;
          if (open > 0) fail(`${open} attempts of call ${index} are open in the end`);
        }
      },
    };
  },
};
