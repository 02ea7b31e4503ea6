import { concatMap, concatWith, defer, EMPTY, of, share } from 'rxjs';
import type { Observable } from 'rxjs';
import type { AttemptSource, WireEvent } from '../../../lib/core/attempt.ts';
import type { ObservedCall } from '../../../lib/core/CallObserver.ts';
import { currentScope } from '../../../lib/core/currentScope.ts';
import type { EventListener, ModelInput, PolicyInput, Runtime } from '../../../lib/index.ts';
import { RELEASE_WITHIN_MS } from '../../../lib/operators/HeldRun.ts';
import { PROMPT_MARK } from '../plan/requestOf.ts';
import { contentOf } from '../run/contentOf.ts';
import type { Sabotage } from './Sabotage.ts';

// What each of these breaks, an invariant has to find.

const overModels = (policy: PolicyInput, changes: ModelInput): PolicyInput => ({
  ...policy,
  models: Object.fromEntries(Object.entries(policy.models ?? {}).map(([name, own]) => [name, { ...own, ...changes }])),
});

export const ignoresQuota: Sabotage = {
  policy: ({ quota: _, ...policy }) => ({
    ...overModels(policy, { quota: {} }),
    quota: { account: { maxWaiting: null } },
  }),
};

export const ignoresTenants: Sabotage = { policy: ({ tenants: _, ...policy }) => policy };

export const ignoresCeilings: Sabotage = {
  policy: ({ maxInFlight: _, ...policy }) => overModels(policy, { concurrency: { limit: null } }),
};

const ignoresBreakers: Sabotage = {
  policy: (policy) => overModels(policy, { breaker: { consecutiveFailures: null, errorRatio: null } }),
};

/** Says that it opens, and lets everything through. */
export const openBreakersLeak: Sabotage = {
  ...ignoresBreakers,
  telemetry: (observer) => ({
    ...observer,
    onEvent: (event) => {
      observer.onEvent?.(event);
      if (event.type !== 'attempt.ended' || event.outcome !== 'failure') return;
      observer.onEvent?.({
        ...event,
        type: 'breaker.changed',
        breaker: event.model as string,
        from: 'closed',
        to: 'open',
        reason: 'consecutive',
      });
    },
  }),
};

export const triesForEver: Sabotage = {
  policy: (policy) => ({ ...overModels(policy, { retry: { attempts: 50, baseMs: 1, capMs: 10 } }), maxAttempts: null }),
};

export const ignoresTheRetryBudget: Sabotage = {
  policy: (policy) => ({ ...policy, retryBudget: { ratio: 1, minPerSecond: 1_000 } }),
};

export const ignoresDeadlines: Sabotage = {
  policy: (policy) => ({ ...policy, deadlineMs: null, totalMs: null }),
  options: ({ deadlineMs: _, ...options }) => options,
};

export const ignoresConversations: Sabotage = { options: ({ conversation: _, ...options }) => options };

/** Goes on with what was begun when its caller has gone. */
export const goesOnWithoutItsCaller: Sabotage = {
  call: (call$) => call$.pipe(share({ resetOnRefCountZero: false })),
};

function eachContent(
  source: AttemptSource,
  change: (event: WireEvent, index: number) => Observable<WireEvent>,
): AttemptSource {
  return (attempt) => {
    let index = 0;
    return source(attempt).pipe(
      concatMap((event) =>
        event.kind === 'data' && contentOf(event.value) !== '' ? change(event, index++) : of(event),
      ),
    );
  };
}

export const repeatsAChunk: Sabotage = {
  source: (source) => eachContent(source, (event, index) => (index === 1 ? of(event, event) : of(event))),
};

export const losesAChunk: Sabotage = {
  source: (source) => eachContent(source, (event, index) => (index === 1 ? EMPTY : of(event))),
};

/** Takes a stream that is cut for one that is whole. */
export const takesPartsForAnswers: Sabotage = {
  source: (source) => (attempt) => source(attempt).pipe(concatWith(of(FINISH))),
};

const FINISH: WireEvent = {
  kind: 'data',
  event: undefined,
  value: {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'gold',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
  },
};

/** The transport counts two requests for one, so that one of them never closes, and the time that would end the wait is lost. */
export const leaksPermits: Sabotage = {
  source: (source) => (attempt) =>
    defer(() => {
      currentScope()?.dispatched(0);
      return source(attempt);
    }),
  runtime: (runtime) =>
    overTimers(runtime, (schedule, work, delayMs) => (delayMs === RELEASE_WITHIN_MS ? LOST : schedule(work, delayMs))),
};

const LOST = { unsubscribe: () => {} };

type Schedule = Runtime['scheduler']['schedule'];

function overTimers(
  { clock, random, scheduler }: Runtime,
  change: (schedule: Schedule, ...timer: Parameters<Schedule>) => ReturnType<Schedule>,
): Runtime {
  const schedule: Schedule = (work, delayMs) => scheduler.schedule(work, delayMs);
  return { clock, random, scheduler: { schedule: (work, delayMs) => change(schedule, work, delayMs) } };
}

/** One timer in seven never fires. */
export const losesTimers: Sabotage = {
  runtime: (runtime) => {
    let armed = 0;
    return overTimers(runtime, (schedule, work, delayMs) => (++armed % 7 === 0 ? LOST : schedule(work, delayMs)));
  },
};

/** Long timers are not cancelled. */
export const leavesTimers: Sabotage = {
  runtime: (runtime) =>
    overTimers(runtime, (schedule, work, delayMs = 0) => {
      const timer = schedule(work, delayMs);
      return delayMs > 5_000 ? LOST : timer;
    }),
};

/** Observers of all calls and of single ones hear nothing of one kind. */
const forgetting = (type: string): Sabotage => ({
  telemetry: (observer) => {
    const deaf =
      (listener: EventListener | undefined): EventListener =>
      (event) => {
        if (event.type !== type) listener?.(event);
      };
    return {
      ...observer,
      onCall: (call) => {
        const observed = observer.onCall?.(call) as ObservedCall | undefined;
        return observed && { ...observed, onEvent: deaf(observed.onEvent) };
      },
      onEvent: deaf(observer.onEvent),
    };
  },
});

export const forgetsToSettle: Sabotage = forgetting('settled');
export const forgetsTheEnd: Sabotage = forgetting('call.ended');

/** Puts what was asked next to the call, where telemetry finds it. */
export const saysWhatWasAsked: Sabotage = {
  options: ({ attributes, ...options }) => ({ ...options, attributes: { ...attributes, question: PROMPT_MARK } }),
};
