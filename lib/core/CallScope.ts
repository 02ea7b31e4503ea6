import type { Demand } from './attempt.ts';
import type { AttemptSink } from './AttemptSink.ts';
import type { Home } from './CallObserver.ts';
import type { AttemptContent, ContentListener } from './content.ts';
import type { AttemptRecord, ErrorCode } from './errors.ts';
import type { EventListener, SluiceEvent, SluiceFact } from './events.ts';
import type { RateLimitHints, Usage } from './hints.ts';
import { currentPace } from './pace.ts';
import type { RetryBudgetPort } from './ports.ts';
import type { Runtime } from './runtime.ts';

/** Shared by all frames of one call. */
export interface CallState {
  readonly id: string;
  /** Attempts sent so far. */
  dispatched: number;
  /** Those of them that failed, oldest first. */
  readonly failed: AttemptRecord[];
  /** Kept for whoever observes the call; a map beside it would cost every call more. */
  observed?: unknown;
}

/** What fallbacks tell those above them, nested ones as one. */
export interface Route {
  /** Models that have been asked. */
  readonly asked: Set<string>;
  /** Whether another model would be asked after such a failure. */
  leads(code: ErrorCode): boolean;
}

export interface CallScopeChanges {
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly conversation?: string | undefined;
  readonly priority?: string | undefined;
  /** Monotonic milliseconds. The earlier of this and the frame's own deadline holds. */
  readonly deadlineAtMs?: number | undefined;
  /** How long that was from where the deadline was set, in milliseconds. */
  readonly deadlineMs?: number | undefined;
  readonly budget?: RetryBudgetPort | undefined;
  readonly route?: Route | undefined;
  /** Added to the listeners that the frame already has. */
  readonly onEvent?: EventListener | undefined;
  /** Whether that listener hears facts of a type, now; what nobody hears is not put together. Default: all of them. */
  readonly hears?: ((type: SluiceFact['type']) => boolean) | undefined;
  /** Added to the sinks that the frame already has. */
  readonly sink?: AttemptSink | undefined;
  /** The consumer's pace: sources await it before each read of a body, unless they were given one of their own. */
  readonly demand?: Demand | undefined;
  /** Runs the attempt inside something, such as a trace context; wraps what the frame already has. */
  readonly around?: (<R>(work: () => R) => R) | undefined;
  /** Where the call was started from, such as a trace context. What others set off, such as a grant, goes on in there. */
  readonly home?: Home | undefined;
  /** Hears what attempts ask and answer. Without it, nobody copies any of it. */
  readonly onContent?: ContentListener | undefined;
}

interface Listeners<L> {
  readonly first: L;
  readonly rest: Listeners<L> | undefined;
  readonly hears?: CallScopeChanges['hears'];
}

interface Frame {
  readonly call: CallState;
  readonly attempt: number;
  readonly model: string | undefined;
  readonly tenant: string | undefined;
  readonly conversation: string | undefined;
  readonly priority: string | undefined;
  readonly deadlineAtMs: number;
  readonly deadlineMs: number;
  readonly budget: RetryBudgetPort | undefined;
  readonly route: Route | undefined;
  readonly listeners: Listeners<EventListener> | undefined;
  readonly sinks: Listeners<AttemptSink> | undefined;
  readonly demand: Demand | undefined;
  readonly around: (<R>(work: () => R) => R) | undefined;
  readonly home: Home | undefined;
  readonly onContent: ContentListener | undefined;
}

const plainly = <R>(work: () => R): R => work();

/**
 * What operators and sources of one call tell each other down the subscription, since RxJS has no downward context.
 * Immutable: a change is a new frame that shares the call's state.
 *
 * Rules: read `currentScope` only while being subscribed; subscribe upwards, now or later, inside
 * `runInScope`; deliver downwards through `deliverIn`. Otherwise one call's frame leaks into another's.
 */
export class CallScope {
  readonly #frame: Frame;

  private constructor(frame: Frame) {
    this.#frame = frame;
  }

  /** The frame of a new call, at the pace of {@link currentPace} unless another is given. `random` makes its id. */
  static start(runtime: Runtime, changes: CallScopeChanges & { readonly id?: string | undefined } = {}): CallScope {
    const call = { id: changes.id ?? newCallId(runtime.random), dispatched: 0, failed: [], observed: undefined };
    return new CallScope({
      call,
      attempt: 1,
      model: changes.model,
      tenant: changes.tenant,
      conversation: changes.conversation,
      priority: changes.priority,
      deadlineAtMs: changes.deadlineAtMs ?? Infinity,
      deadlineMs: changes.deadlineMs ?? Infinity,
      budget: changes.budget,
      route: changes.route,
      listeners: changes.onEvent && { first: changes.onEvent, rest: undefined, hears: changes.hears },
      sinks: changes.sink && { first: changes.sink, rest: undefined },
      demand: changes.demand ?? currentPace(),
      around: changes.around,
      home: changes.home,
      onContent: changes.onContent,
    });
  }

  get call(): CallState {
    return this.#frame.call;
  }
  get callId(): string {
    return this.#frame.call.id;
  }
  /** Number of the attempt within the call, from 1. */
  get attempt(): number {
    return this.#frame.attempt;
  }
  get model(): string | undefined {
    return this.#frame.model;
  }
  get tenant(): string | undefined {
    return this.#frame.tenant;
  }
  get conversation(): string | undefined {
    return this.#frame.conversation;
  }
  get priority(): string | undefined {
    return this.#frame.priority;
  }
  /** Monotonic milliseconds; `Infinity` where the call has no deadline. */
  get deadlineAtMs(): number {
    return this.#frame.deadlineAtMs;
  }
  /** Milliseconds from where the deadline was set to it; `Infinity` where that is not known. */
  get deadlineMs(): number {
    return this.#frame.deadlineMs;
  }
  get budget(): RetryBudgetPort | undefined {
    return this.#frame.budget;
  }
  get route(): Route | undefined {
    return this.#frame.route;
  }
  /** Paces the reading of bodies; `undefined` where the consumer takes everything as it comes. */
  get demand(): Demand | undefined {
    return this.#frame.demand;
  }
  /** Whether anyone hears {@link report}. */
  get heard(): boolean {
    return this.#frame.listeners !== undefined;
  }

  /** The same call, seen from further up. */
  with(changes: CallScopeChanges): CallScope {
    const frame = this.#frame;
    const { around: outer } = frame;
    const { around: inner } = changes;
    return new CallScope({
      call: frame.call,
      attempt: frame.attempt,
      model: changes.model ?? frame.model,
      tenant: changes.tenant ?? frame.tenant,
      conversation: changes.conversation ?? frame.conversation,
      priority: changes.priority ?? frame.priority,
      deadlineAtMs: Math.min(changes.deadlineAtMs ?? Infinity, frame.deadlineAtMs),
      deadlineMs:
        (changes.deadlineAtMs ?? Infinity) < frame.deadlineAtMs ? (changes.deadlineMs ?? Infinity) : frame.deadlineMs,
      budget: changes.budget ?? frame.budget,
      route: changes.route ?? frame.route,
      listeners: changes.onEvent
        ? { first: changes.onEvent, rest: frame.listeners, hears: changes.hears }
        : frame.listeners,
      sinks: changes.sink ? { first: changes.sink, rest: frame.sinks } : frame.sinks,
      demand: changes.demand ?? frame.demand,
      around: inner && outer ? (work) => outer(() => inner(work)) : (inner ?? outer),
      home: changes.home ?? frame.home,
      onContent: changes.onContent ?? frame.onContent,
    });
  }

  /** The frame for the next attempt: its number follows the attempts sent so far. */
  forNextAttempt(): CallScope {
    const attempt = this.#frame.call.dispatched + 1;
    return attempt === this.#frame.attempt ? this : new CallScope({ ...this.#frame, attempt });
  }

  /** Runs `work` inside what the frame's `around` functions set up. */
  around<R>(work: () => R): R {
    return (this.#frame.around ?? plainly)(work);
  }

  /** Runs `work`, which something else has set off, in the place that the call was started from. */
  home<R>(work: () => R): R {
    const { home } = this.#frame;
    return home === undefined ? work() : home(work, undefined);
  }

  /** Whether {@link content} is heard; for nobody else is it worth putting together. */
  get wantsContent(): boolean {
    return this.#frame.onContent !== undefined;
  }

  /** For sources: what was asked and answered. A listener that throws is ignored. */
  content(content: Omit<AttemptContent, 'attempt'>): void {
    try {
      this.#frame.onContent?.({ attempt: this.#frame.attempt, ...content });
    } catch {
      // A listener's fault is its own.
    }
  }

  /** Tells every listener. One that throws is ignored: telemetry must not break a stream. */
  report(atMs: number, fact: SluiceFact, model: string | undefined = this.#frame.model): void {
    let event: SluiceEvent | undefined;
    for (let node = this.#frame.listeners; node; node = node.rest) {
      if (node.hears?.(fact.type) === false) continue;
      event ??= this.#eventOf(atMs, fact, model);
      try {
        node.first(event);
      } catch {
        // A listener's fault is its own.
      }
    }
  }

  #eventOf(atMs: number, fact: SluiceFact, model: string | undefined): SluiceEvent {
    const { call, attempt, tenant, conversation } = this.#frame;
    return { callId: call.id, attempt, model, tenant, conversation, atMs, ...fact };
  }

  /** For sources: the request leaves now. `sentFollows`: {@link sent} will be called, unless the attempt ends before. */
  dispatched(atMs: number, sentFollows = false): void {
    this.#frame.call.dispatched++;
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.dispatched?.(atMs, sentFollows);
  }

  /** For sources that know: the request was handed over only now, some time after it was dispatched. */
  sent(atMs: number): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.sent?.(atMs);
  }

  /** For gates: the attempt waits here from now on. */
  gateClosed(): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.gateClosed?.();
  }

  gateOpened(through: boolean): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.gateOpened?.(through);
  }

  responded(status: number): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.responded?.(status);
  }

  hints(hints: RateLimitHints): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.hints?.(hints);
  }

  usage(usage: Usage): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.usage?.(usage);
  }

  /** For sources: the body reader has settled, and nothing of the attempt runs any more. */
  closed(): void {
    for (let node = this.#frame.sinks; node; node = node.rest) node.first.closed?.();
  }
}

function newCallId(random: () => number): string {
  return hex(random()) + hex(random());
}

const BYTES: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Eight digits of a fraction. By the table: `toString(16)` takes ten times as long. */
function hex(fraction: number): string {
  const bits = Math.floor(fraction * 0x1_0000_0000);
  const byte = (shift: number): string => BYTES[(bits >>> shift) & 0xff] as string;
  return byte(24) + byte(16) + byte(8) + byte(0);
}
