import { isOutside } from '../run/Fact.ts';
import type { CallTrace } from '../run/Fact.ts';
import type { Invariant } from './Invariant.ts';

/** What is told last of a turn that has not ended. */
const GOES_ON: ReadonlySet<string | undefined> = new Set([
  undefined,
  'queued',
  'granted',
  'attempt.started',
  'committed',
  'retry.scheduled',
  'fallback',
  'restart',
]);

/** One conversation, one turn at a time, in the order in which they were asked for. */
export const turnsComeInOrder: Invariant = {
  name: 'turnsComeInOrder',
  promise:
    'a turn of a conversation is sent when all turns before it have ended, and none before it is sent afterwards',
  watch(stage, fail) {
    const open = new Map<string, Set<CallTrace>>();
    const order = new Map<CallTrace, number>();
    const latest = new Map<string, CallTrace>();
    // Processes of one store are in order by the clock of its server, and turns may have been given up for lost.
    const shared = stage.plan.world === 'redis';
    const laneOf = ({ planned: { conversation, tenant, by }, process }: CallTrace): string | undefined => {
      if (conversation === undefined) return undefined;
      // A gateway keeps the names of its tenants apart.
      return `${process} ${by === 'gateway' && tenant !== undefined ? `${tenant}/` : ''}${conversation}`;
    };
    const told = new Map<CallTrace, string>();
    const goesOn = (turn: CallTrace): boolean =>
      GOES_ON.has(told.get(turn)) || turn.attempts.some(({ closedMs }) => closedMs === undefined);
    const placeOf = (call: CallTrace): number => order.get(call) ?? Infinity;
    return {
      see(fact) {
        if (fact.kind === 'asked') {
          const lane = laneOf(fact.call);
          if (lane === undefined) return;
          order.set(fact.call, order.size);
          open.set(lane, (open.get(lane) ?? new Set()).add(fact.call));
        }
        if (fact.kind === 'told' && fact.call !== undefined) told.set(fact.call, fact.event.type);
        if (fact.kind === 'gone') open.get(laneOf(fact.call) ?? '')?.delete(fact.call);
        if (fact.kind !== 'sent') return;
        const { call } = fact.attempt;
        const lane = laneOf(call);
        if (lane === undefined) return;
        const last = latest.get(lane);
        if (last === undefined || placeOf(last) < placeOf(call)) latest.set(lane, call);
        else if (last !== call && !shared) fail(`call ${call.index} was sent after call ${last.index} behind it`);
        for (const turn of open.get(lane) ?? []) {
          if (turn === call) break;
          if (turn.leftMs !== undefined || turn.endedMs !== undefined) continue;
          const began = turn.attempts.length > 0;
          if (shared && !began) continue;
          // Its end is on the way to the caller.
          if (isOutside(turn.planned) && !goesOn(turn)) continue;
          fail(
            `call ${call.index} of ${call.planned.conversation} was sent while call ${turn.index} before it had not ended`,
          );
        }
      },
    };
  },
};
