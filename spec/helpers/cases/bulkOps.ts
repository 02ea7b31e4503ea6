import { concatMap, lastValueFrom, map, mergeMap, range } from 'rxjs';
import type { Observable } from 'rxjs';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import type { Runtime } from '../../../lib/core/runtime.ts';
import { createBreaker } from '../../../lib/operators/createBreaker.ts';
import { createConcurrencyLimit } from '../../../lib/operators/createConcurrencyLimit.ts';
import { createLanes } from '../../../lib/operators/createLanes.ts';
import { createQuota } from '../../../lib/operators/createQuota.ts';
import { circuitBreak } from '../../../lib/operators/circuitBreak.ts';
import { concatByConversation } from '../../../lib/operators/concatByConversation.ts';
import { inConversation } from '../../../lib/operators/inConversation.ts';
import { limitConcurrency } from '../../../lib/operators/limitConcurrency.ts';
import { retryWithJitter } from '../../../lib/operators/retryWithJitter.ts';
import { throttleByBucket } from '../../../lib/operators/throttleByBucket.ts';
import { withDeadline } from '../../../lib/operators/withDeadline.ts';
import { fromCall } from '../../../lib/sources/fromCall.ts';
import { heapInUse } from '../heap.ts';
import { failed, scripted } from '../scripted.ts';
import type { Step as ScriptedStep } from '../scripted.ts';
import type { CallsInput, Step } from './callsCase.ts';
import type { CallsWorld } from './CallsWorld.ts';

export type Op = (world: CallsWorld, step: Step, input: CallsInput) => Promise<Record<string, unknown>>;

const MB = 1024 * 1024;

/** Real time whose timers are counted. */
function countedSystem(): Runtime & { readonly pending: number } {
  const pending = new Set<object>();
  return {
    ...systemRuntime,
    scheduler: {
      schedule(work, delayMs) {
        const mark = {};
        pending.add(mark);
        const timer = systemRuntime.scheduler.schedule(() => {
          pending.delete(mark);
          work();
        }, delayMs);
        return {
          unsubscribe: () => {
            pending.delete(mark);
            timer.unsubscribe();
          },
        };
      },
    },
    get pending() {
      return pending.size;
    },
  };
}

/** Everything that the library makes, over one source. */
function guarded<T>(source: Observable<T>, runtime: Runtime): Observable<T> {
  return source.pipe(
    throttleByBucket(createQuota({ requestsPerMinute: 600 }, runtime), { runtime }),
    limitConcurrency(createConcurrencyLimit(4, runtime), { runtime }),
    circuitBreak(createBreaker({}, runtime), { runtime }),
    retryWithJitter({ runtime }),
    inConversation(createLanes({}, runtime), 'c', { runtime }),
    withDeadline(60_000, { runtime }),
  );
}

/** Steps about what many calls leave behind. */
export const bulkOps: Readonly<Record<string, Op>> = {
  async create_and_dispose(_world, { times = 1 }) {
    const runtime = countedSystem();
    const silent = (signal: AbortSignal): Promise<string> =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    for (let at = 0; at < times; at++) {
      await lastValueFrom(
        guarded(
          fromCall(() => Promise.resolve('ok'), { runtime }),
          runtime,
        ),
      );
      guarded(fromCall(silent, { runtime }), runtime).subscribe().unsubscribe();
    }
    await new Promise((resolve) => setImmediate(resolve));
    return { activeTimers: runtime.pending };
  },

  async call_each(world, { conversations = 1 }) {
    const before = await heapInUse();
    const plain = (): Observable<string> => fromCall(() => Promise.resolve('ok'));
    await lastValueFrom(range(0, conversations).pipe(mergeMap((n) => world.driver.turn(`c${n}`), 100)));
    await lastValueFrom(range(0, conversations).pipe(concatByConversation((n) => `c${n}`, plain)));
    return { heapGrowthMb: ((await heapInUse()) - before) / MB };
  },

  async pipe_calls(_world, { count = 1, payload_kb: kb = 1 }) {
    const before = await heapInUse();
    let most = before;
    const answer = async (n: number): Promise<{ readonly text: string }> => {
      // In the middle of things: what is still held at the end of all is another matter.
      if (n % 5_000 === 4_999) most = Math.max(most, await heapInUse());
      return { text: String.fromCharCode(97 + (n % 26)).repeat(kb * 1024) };
    };
    const lengths$ = range(0, count).pipe(
      concatMap((n) =>
        fromCall(() => answer(n)).pipe(
          retryWithJitter(),
          map(({ text }) => text.length),
        ),
      ),
    );
    await lastValueFrom(lengths$);
    return { heapGrowthMb: (most - before) / MB };
  },

  async custom_source({ runtime, time }, step, { config = {} }) {
    const { max_attempts: attempts, base_ms: baseMs } = config.policy ?? {};
    const steps = (step.script as readonly string[]).map((said): ScriptedStep =>
      said === 'ok' ? { values: ['ok'] } : { error: failed('server_error', { status: 503 }) },
    );
    const source = scripted(runtime, ...steps);
    let done = false;
    source.source.pipe(retryWithJitter({ attempts, baseMs, runtime })).subscribe({ complete: () => (done = true) });
    await time.run(() => done);
    return { log: source.log };
  },

  async subscribe_twice(world) {
    world.upstream.plan('twice', { op: 'call' }, 0);
    let ended = 0;
    const call$ = world.pipe({ op: 'call', conversation: 'k', estimate: 10 }, 'twice');
    for (let at = 0; at < 2; at++) call$.subscribe({ complete: () => ended++ });
    await world.time.run(() => ended === 2);
    return {};
  },
};
