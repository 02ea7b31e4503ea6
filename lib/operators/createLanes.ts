import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { invalidRequest } from '../core/errors.ts';
import type { SluiceError } from '../core/errors.ts';
import type { LanePlace, LaneRequest, LanesPort, LanesSnapshot } from '../core/ports.ts';
import { startTimer, systemRuntime } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { ConversationLanes } from '../limits/ConversationLanes.ts';
import type { ConversationLanesOptions } from '../limits/ConversationLanes.ts';
import { turnRefused, turnSuperseded } from '../limits/laneRefusals.ts';
import type { Turn } from '../limits/Lane.ts';

/** The lanes of this process. */
export interface LocalLanes extends LanesPort {
  /**
   * Takes other bounds, for turns to come: those that run or wait stay, under the bounds that they came under.
   * @throws SluiceError `invalid_option` if an option is not 0 or more; then nothing has changed.
   */
  reload(options: ConversationLanesOptions): void;
}

/**
 * Lanes of this process: in each conversation one turn runs at a time, in the order in which they were subscribed to,
 * and conversations do not wait for each other. Give it to {@link inConversation}.
 *
 * A conversation is remembered only while a turn of it runs or waits. Priorities do not change the order. At most one
 * timer is armed, for the turn whose wait ends first, and none while nobody waits.
 *
 * `acquire` emits as errors: `queue_full`, `queue_timeout` and `timeout_deadline`, each with `retryAfterMs`, a guess
 * from how long turns have taken; `superseded`; `invalid_request` for an empty conversation.
 *
 * @param options - `maxWaiting`: turns that may wait in one conversation, default 20; `maxWaitMs`: longest wait of one,
 * default 60,000. Both may be `Infinity`.
 * @throws SluiceError `invalid_option` if an option is not 0 or more.
 *
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { createLanes, inConversation } from 'sluice';
 *
 * const lanes = createLanes({ maxWaiting: 5, maxWaitMs: 20_000 });
 * of('first').pipe(inConversation(lanes, 'c-17')).subscribe(console.log);
 * ```
 */
export function createLanes(options: ConversationLanesOptions = {}, runtime: Runtime = systemRuntime): LocalLanes {
  return new LanesDesk(options, runtime);
}

class LanesDesk implements LocalLanes {
  readonly #runtime: Runtime;
  readonly #lanes: ConversationLanes;
  // Stryker disable next-line ArrayDeclaration: nobody waits for what is no turn
  readonly #started: Turn[] = [];
  #granting = false;
  #timerAtMs = Infinity;
  #stopTimer: Cancel | undefined;

  constructor(options: ConversationLanesOptions, runtime: Runtime) {
    this.#runtime = runtime;
    this.#lanes = new ConversationLanes(options, runtime.clock);
  }

  acquire(request: LaneRequest): Observable<LanePlace> {
    // Hand-written: the place in line must be taken in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<LanePlace>((subscriber) => this.#enter(request, subscriber));
  }

  reload(options: ConversationLanesOptions): void {
    this.#lanes.reload(options);
  }

  snapshot(): LanesSnapshot {
    return { conversations: this.#lanes.conversations, waiting: this.#lanes.waiting };
  }

  #enter(request: LaneRequest, subscriber: Subscriber<LanePlace>): void {
    if (subscriber.closed) return;
    const { conversation } = request;
    if (typeof conversation !== 'string' || conversation === '') {
      throw invalidRequest('conversation', 'a string that is not empty', conversation);
    }
    const decision = this.#lanes.enter(request);
    if (decision.kind === 'refused') {
      subscriber.error(turnRefused(decision.refusal));
      return;
    }
    const { turn } = decision;
    const place = new Place(this, turn, subscriber);
    turn.owner = place;
    // Nobody can leave in between, so nothing is made for that.
    // Stryker disable next-line ConditionalExpression,StringLiteral,BlockStatement: it is granted below too
    if (decision.kind === 'started' && decision.superseded.length === 0) {
      place.grant();
      return;
    }
    subscriber.add(() => {
      if (!place.granted) this.leave(turn);
    });
    if (decision.kind === 'waiting') {
      this.#watch();
      request.onQueued?.(decision.position, undefined);
      return;
    }
    // Those that waited leave as they hear of it, and the timer with them.
    for (const old of decision.superseded) this.#lose(old, ({ granted }) => turnSuperseded(granted));
    this.#grant(turn);
  }

  /** Every turn comes here in the end: when it is released, or when its receiver is gone without it. */
  leave(turn: Turn): void {
    turn.owner = undefined;
    const next = this.#lanes.leave(turn);
    this.#watch();
    if (next === undefined) return;
    this.#started.push(next);
    // Granting runs whatever the receiver does, which may end its turn at once: a loop, or ten thousand such turns in
    // one lane would overflow the stack.
    if (this.#granting) return;
    this.#granting = true;
    try {
      for (let started = this.#started.shift(); started; started = this.#started.shift()) this.#grant(started);
    } finally {
      this.#granting = false;
    }
  }

  #grant(turn: Turn): void {
    // Its receiver has gone since it was its turn, or was superseded.
    placeOf(turn)?.grant();
  }

  #lose(turn: Turn, errorOf: (place: Place) => SluiceError): void {
    const place = placeOf(turn);
    place?.lose(errorOf(place));
  }

  #watch(): void {
    const nextAtMs = this.#lanes.nextExpiryAtMs;
    // A timer that comes too early looks again; only one that comes too late must be replaced.
    // Stryker disable next-line EqualityOperator: one for the same time is as good
    if (nextAtMs === Infinity ? this.#timerAtMs === Infinity : this.#timerAtMs <= nextAtMs) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#timerAtMs = nextAtMs;
    this.#stopTimer = startTimer(this.#runtime, nextAtMs - this.#runtime.clock.now(), () => {
      this.#timerAtMs = Infinity;
      const expired = this.#lanes.expire();
      this.#watch();
      for (const { turn, refusal } of expired) this.#lose(turn, () => turnRefused(refusal));
    });
  }
}

function placeOf(turn: Turn): Place | undefined {
  return turn.owner as Place | undefined;
}

/** Of one who waits for a turn, or has it. */
class Place implements LanePlace {
  granted = false;
  readonly #desk: LanesDesk;
  readonly #turn: Turn;
  readonly #subscriber: Subscriber<LanePlace>;
  #lost: SluiceError | undefined;
  #tell: ((error: SluiceError) => void) | undefined;

  constructor(desk: LanesDesk, turn: Turn, subscriber: Subscriber<LanePlace>) {
    this.#desk = desk;
    this.#turn = turn;
    this.#subscriber = subscriber;
  }

  get waitedMs(): number {
    return this.#turn.waitedMs;
  }

  grant(): void {
    this.granted = true;
    this.#subscriber.next(this);
    this.#subscriber.complete();
  }

  onLost(tell: (error: SluiceError) => void): void {
    if (this.#lost) tell(this.#lost);
    else this.#tell = tell;
  }

  lose(error: SluiceError): void {
    this.#lost = error;
    if (this.granted) this.#tell?.(error);
    else this.#subscriber.error(error);
  }

  release(): void {
    this.#desk.leave(this.#turn);
  }
}
