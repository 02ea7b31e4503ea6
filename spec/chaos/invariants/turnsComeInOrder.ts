import type { CallTrace } from '../run/Fact.ts';
import type { Invariant } from './Invariant.ts';

/** One conversation, one turn at a time, in the order in which they were asked for. */
export const turnsComeInOrder: Invariant = {
  name: 'turnsComeInOrder',
  promise:
    'a turn of a conversation is sent when all turns before it have ended, and none before it is sent afterwards',
  watch(stage, fail) {
    const open = new Map<string, Set<CallTrace>>();
    // Processes of one store are in order by the clock of its server, and turns may have been given up for lost.
    const shared = stage.plan.world === 'redis';
    const laneOf = ({ planned, process }: CallTrace): string | undefined =>
      planned.conversation === undefined ? undefined : `${process} ${planned.conversation}`;
    return {
      see(fact) {
        if (fact.kind === 'asked') {
          const lane = laneOf(fact.call);
          if (lane !== undefined) open.set(lane, (open.get(lane) ?? new Set()).add(fact.call));
        }
        if (fact.kind === 'gone') open.get(laneOf(fact.call) ?? '')?.delete(fact.call);
        if (fact.kind !== 'sent') return;
        const { call } = fact.attempt;
        const turns = open.get(laneOf(call) ?? '') ?? [];
        for (const turn of turns) {
          if (turn === call) break;
          const began = turn.attempts.length > 0;
          if (turn.leftMs !== undefined || turn.endedMs !== undefined) continue;
          if (shared && !began) continue;
          fail(
            `call ${call.index} of ${call.planned.conversation} was sent while call ${turn.index} before it had not ended`,
          );
        }
      },
    };
  },
};
