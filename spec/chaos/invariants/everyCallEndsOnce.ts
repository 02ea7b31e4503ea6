import { isSluiceError } from '../../../lib/index.ts';
import { isOutside } from '../run/Fact.ts';
import type { CallTrace } from '../run/Fact.ts';
import type { Invariant } from './Invariant.ts';

const SHARED: ReadonlySet<string> = new Set(['breaker.changed', 'cooldown']);

/** Answered, failed or left: nobody waits for ever, and what is told of the end is what the caller saw. */
export const everyCallEndsOnce: Invariant = {
  name: 'everyCallEndsOnce',
  promise: 'every call ends once, with an answer or an error of ours, and its last event says the same',
  watch(stage, fail) {
    const shared = stage.plan.world === 'redis';
    const told = new Map<CallTrace, string>();
    return {
      see(fact) {
        if (fact.kind === 'ended' && fact.error !== undefined && !isSluiceError(fact.error)) {
          fail(`call ${fact.call.index} failed with something else: ${causesOf(fact.error)}`);
        }
        if (fact.kind !== 'told' || fact.call === undefined) return;
        const { call, event } = fact;
        const before = told.get(call);
        // What a store makes of the end of an attempt is heard some time later.
        if (shared && SHARED.has(event.type)) return;
        if (before !== undefined) fail(`call ${call.index} had ended as ${before}, and then told of ${event.type}`);
        if (event.type === 'call.ended') told.set(call, [event.outcome, event.code].join(' '));
      },
      end() {
        for (const call of stage.calls) {
          const { index, goneMs, askedMs, endedMs, code, planned, begun, leftMs } = call;
          if (goneMs === undefined) {
            fail(`call ${index}, asked at ${Math.round(askedMs)} ms, never ends`);
            continue;
          }
          // Turned away at the door, or gone before it got there.
          if (!begun) continue;
          const seen = endedMs === undefined ? 'dropped' : code === undefined ? 'success' : 'failure';
          if (isOutside(planned)) {
            // Its failures have the words of providers. How it ended of those who left is known inside alone.
            const [outcome] = told.get(call)?.split(' ') ?? [];
            const same = leftMs === undefined ? outcome === seen : outcome !== undefined;
            if (!same) fail(`call ${index} ended as ${seen}, and told of ${outcome}`);
            continue;
          }
          const ended = [seen, code].join(' ');
          if (told.get(call) !== ended) fail(`call ${index} ended as ${ended}, and told of ${told.get(call)}`);
        }
      },
    };
  },
};

function causesOf(error: unknown): string {
  return error instanceof Error
    ? [error.message, ...(error.cause ? [causesOf(error.cause)] : [])].join(', as ')
    : String(error);
}
