import type { Invariant } from './Invariant.ts';

/** The deadline of a call bounds its beginning, whatever was waited for, and however late a timer came. */
export const nothingStartsAfterTheDeadline: Invariant = {
  name: 'nothingStartsAfterTheDeadline',
  promise: 'no attempt is sent when the deadline of its call has passed',
  watch: (_, fail) => ({
    see(fact) {
      if (fact.kind !== 'sent') return;
      const { call, sentMs } = fact.attempt;
      if (sentMs < call.deadlineAtMs) return;
      fail(`call ${call.index} is sent at ${sentMs} ms, and its deadline was at ${call.deadlineAtMs} ms`);
    },
  }),
};
