import { tap } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import type { CallScope } from '../core/CallScope.ts';
import { nonEmpty, zeroOrInfinity } from '../core/checks.ts';
import type { EventListener } from '../core/events.ts';
import type { LanePlace, LanesPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Hold, OnQueued } from './Hold.ts';
import { guarded, holding } from './holding.ts';
import type { Guarded } from './holding.ts';
import type { Source } from './scoped.ts';

export interface InConversationOptions {
  /** End every turn of the conversation that runs or waits, with `superseded`, and start at once. Default: false. */
  readonly supersede?: boolean | undefined;
  /** Longest wait for the turn to start. 0 or more, or `Infinity`; 0 refuses rather than waits. Default: that of `lanes`. */
  readonly maxWaitMs?: number | undefined;
  /** Hears `queued`, `granted` and `refused`. */
  readonly onEvent?: EventListener | undefined;
  /** Dates events, and names the call where there is no scope. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const IN_CONVERSATION_DEFAULTS: { readonly supersede: boolean } = { supersede: false };

/**
 * Makes each subscription a turn of `conversation`: it starts when those that were subscribed to before it have ended,
 * and no two overlap. Other conversations never wait for it.
 *
 * ```text
 * turn 1:  (s)--a--b--|
 * turn 2:  -(s)                          subscribed to at 1, held back
 * result:  -----------c--d--|            the source of turn 2 is subscribed to as turn 1 ends
 * ```
 *
 * The place is taken in the tick of the subscription. A turn lasts until the consumer has seen its end, with the
 * retries and fallbacks that stand above this operator. One that fails, or is unsubscribed, lets the next start in the
 * same tick. What stands above sees the conversation in its scope. Put it outside retry, throttle and breaker.
 *
 * What is shared: `lanes`, between all operators that are given them. Each subscription is a turn of its own.
 *
 * Emits as errors, besides those of the source:
 * - `queue_full`: as many turns wait in the conversation as may;
 * - `queue_timeout`: the turn did not start within `maxWaitMs`;
 * - `timeout_deadline`: the call's deadline came before its turn;
 * - `superseded`: a turn with `supersede` took over; it starts when the source of this one has been unsubscribed from;
 * - `lane_lost`, where processes share the lanes: the lease ran out while the turn went on, so that another may have started.
 *
 * Unsubscribe: a waiting turn leaves the line; a running one unsubscribes from the source and lets the next start.
 *
 * @param conversation - Names the conversation. Not empty.
 * @throws SluiceError `invalid_option` if an option or the conversation is wrong.
 *
 * @example
 * ```ts
 * import { chat, createLanes, inConversation, retryWithJitter, text } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const openai = new OpenAI({ maxRetries: 0 });
 * const lanes = createLanes();
 * chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(retryWithJitter(), inConversation(lanes, 'c-17'), text())
 *   .subscribe((part) => process.stdout.write(part));
 * ```
 */
export function inConversation<T>(
  lanes: LanesPort,
  conversation: string,
  options: InConversationOptions = {},
): MonoTypeOperatorFunction<T> {
  return holding<T, LanePlace>(laneHold(lanes, conversation, options));
}

/** {@link inConversation} for what need not be there before its turn comes. */
export function inTurn<T>(
  lanes: LanesPort,
  conversation: string,
  options: InConversationOptions,
  source: Guarded<T, LanePlace>,
): Observable<T> {
  return guarded<T, LanePlace>(laneHold(lanes, conversation, options), source);
}

function laneHold(lanes: LanesPort, conversation: string, options: InConversationOptions): LaneHold {
  nonEmpty('conversation', conversation);
  const { supersede = IN_CONVERSATION_DEFAULTS.supersede, onEvent, runtime = systemRuntime } = options;
  const maxWaitMs = options.maxWaitMs === undefined ? undefined : zeroOrInfinity('maxWaitMs', options.maxWaitMs);
  return new LaneHold(lanes, conversation, supersede, maxWaitMs, onEvent, runtime);
}

/** A class, as a client makes one for each call. */
class LaneHold implements Hold<LanePlace> {
  readonly runtime: Runtime;
  readonly where = 'lane';
  readonly onEvent: EventListener | undefined;
  readonly conversation: string;
  /** The next turn is often written from what the consumer learned at the end of this one. */
  readonly releaseFirst = false;
  readonly #lanes: LanesPort;
  readonly #supersede: boolean;
  readonly #maxWaitMs: number | undefined;

  constructor(
    lanes: LanesPort,
    conversation: string,
    supersede: boolean,
    maxWaitMs: number | undefined,
    onEvent: EventListener | undefined,
    runtime: Runtime,
  ) {
    this.runtime = runtime;
    this.onEvent = onEvent;
    this.conversation = conversation;
    this.#lanes = lanes;
    this.#supersede = supersede;
    this.#maxWaitMs = maxWaitMs;
  }

  acquire(scope: CallScope, onQueued: OnQueued): Observable<LanePlace> {
    return this.#lanes.acquire({
      callId: scope.callId,
      model: scope.model,
      tenant: scope.tenant,
      priority: scope.priority,
      deadlineAtMs: scope.deadlineAtMs,
      conversation: this.conversation,
      supersede: this.#supersede,
      maxWaitMs: this.#maxWaitMs,
      onQueued,
    });
  }

  waitedMs(place: LanePlace): number {
    return place.waitedMs;
  }

  onLost(place: LanePlace, lose: (error: unknown) => void): void {
    place.onLost(lose);
  }

  /** A process that stood still finds out too late by its timers: what came meanwhile would be passed on before. */
  guard<T>(place: LanePlace, source: Source<T>): Source<T> {
    // Stryker disable next-line ConditionalExpression: there would be nothing to call
    if (place.check === undefined) return source;
    // Stryker disable next-line OptionalChaining: it is there
    const check = (): void => place.check?.();
    const checked = tap<T>({ next: check, error: check, complete: check });
    return () => checked(typeof source === 'function' ? source() : source);
  }

  release(place: LanePlace): void {
    place.release();
  }
}
