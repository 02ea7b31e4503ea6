import type { CallTrace } from '../run/Fact.ts';
import type { Invariant } from './Invariant.ts';

interface Counts {
  granted: number;
  settled: number;
  started: number;
  ended: number;
}

/** Whoever acquires releases: as many settlements as grants, as many ends as beginnings. */
export const everyGrantIsSettled: Invariant = {
  name: 'everyGrantIsSettled',
  promise: 'when a call has ended, all that was granted to it is settled, once, and it stands in no queue',
  watch(_, fail) {
    const counts = new Map<CallTrace, Counts>();
    const waiting = new Map<CallTrace, Set<string>>();
    return {
      see(fact) {
        if (fact.kind !== 'told' || fact.call === undefined) return;
        const { call, event } = fact;
        let own = counts.get(call);
        let queues = waiting.get(call);
        if (own === undefined) {
          counts.set(call, (own = { granted: 0, settled: 0, started: 0, ended: 0 }));
        }
        if (queues === undefined) waiting.set(call, (queues = new Set()));
        switch (event.type) {
          case 'queued':
            if (queues.has(event.where)) fail(`call ${call.index} waits twice for ${event.where}`);
            queues.add(event.where);
            break;
          case 'granted':
            queues.delete(event.where);
            if (event.where === 'quota') own.granted++;
            break;
          case 'left':
            if (!queues.delete(event.where)) fail(`call ${call.index} left ${event.where}, where it did not wait`);
            break;
          case 'refused':
            // It says not by whom; a call waits in one place at a time.
            queues.clear();
            break;
          case 'settled':
            own.settled++;
            if (own.settled > own.granted) fail(`call ${call.index} settled ${own.settled} of ${own.granted} grants`);
            break;
          case 'attempt.started':
            own.started++;
            if (own.started > own.granted)
              fail(`call ${call.index} sent ${own.started} attempts on ${own.granted} grants`);
            break;
          case 'attempt.ended':
            own.ended++;
            break;
          case 'call.ended': {
            const { granted, settled, started, ended } = own;
            if (settled !== granted)
              fail(`call ${call.index} ended with ${granted} grants, ${settled} of them settled`);
            if (started !== ended) fail(`call ${call.index} ended with ${started} attempts, ${ended} of them ended`);
            if (queues.size > 0) fail(`call ${call.index} ended while it waits for ${[...queues].join(', ')}`);
            break;
          }
          default:
        }
      },
    };
  },
};
