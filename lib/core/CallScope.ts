import type { Demand } from './attempt.ts';
import type { AttemptSink } from './AttemptSink.ts';
import type { CallScopeChanges, CallState, Ear, Route } from './CallScopeChanges.ts';
import type { AttemptContent } from './content.ts';
import type { EventListener, SluiceEvent, SluiceFact } from './events.ts';
import type { RateLimitHints, Usage } from './hints.ts';
import { newCallId } from './newCallId.ts';
import { currentPace } from './pace.ts';
import type { RetryBudgetPort } from './ports.ts';
import type { Runtime } from './runtime.ts';
import { surroundingsOf } from './Surroundings.ts';
import type { Surroundings } from './Surroundings.ts';

interface Listeners {
  readonly first: EventListener | Ear;
  readonly rest: Listeners | undefined;
}

interface Deadline {
  readonly atMs: number;
  readonly limitMs: number;
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
  readonly #around: Surroundings;
  #attempt = 1;
  #model: string | undefined;
  #deadline: Deadline | undefined;
  #route: Route | undefined;
  #listeners: Listeners | undefined;
  #sink: AttemptSink | undefined;
  /** The first frame from this one down that has a sink, and the next one below that. */
  #sinks: CallScope | undefined;
  readonly #outer: CallScope | undefined;

  private constructor(around: Surroundings, below: CallScope | undefined) {
    this.#around = around;
    if (below === undefined) return;
    this.#attempt = below.#attempt;
    this.#model = below.#model;
    this.#deadline = below.#deadline;
    this.#route = below.#route;
    this.#listeners = below.#listeners;
    this.#sinks = this.#outer = below.#sinks;
  }

  /** The frame of a new call, at the pace of {@link currentPace} unless another is given. `random` makes its id. */
  static start(runtime: Runtime, changes: CallScopeChanges & { readonly id?: string | undefined } = {}): CallScope {
    const { id = newCallId(runtime.random), demand = currentPace() } = changes;
    const { tenant, conversation, priority, budget, around, home, onContent } = changes;
    const call = { id, dispatched: 0, failed: [], observed: undefined };
    const scope = new CallScope(
      { call, tenant, conversation, priority, budget, demand, around, home, onContent },
      undefined,
    );
    scope.#change(changes);
    return scope;
  }

  get call(): CallState {
    return this.#around.call;
  }
  get callId(): string {
    return this.#around.call.id;
  }
  /** Number of the attempt within the call, from 1. */
  get attempt(): number {
    return this.#attempt;
  }
  get model(): string | undefined {
    return this.#model;
  }
  get tenant(): string | undefined {
    return this.#around.tenant;
  }
  get conversation(): string | undefined {
    return this.#around.conversation;
  }
  get priority(): string | undefined {
    return this.#around.priority;
  }
  /** Monotonic milliseconds; `Infinity` where the call has no deadline. */
  get deadlineAtMs(): number {
    return this.#deadline?.atMs ?? Infinity;
  }
  /** Milliseconds from where the deadline was set to it; `Infinity` where that is not known. */
  get deadlineMs(): number {
    return this.#deadline?.limitMs ?? Infinity;
  }
  get budget(): RetryBudgetPort | undefined {
    return this.#around.budget;
  }
  get route(): Route | undefined {
    return this.#route;
  }
  /** Paces the reading of bodies; `undefined` where the consumer takes everything as it comes. */
  get demand(): Demand | undefined {
    return this.#around.demand;
  }
  /** Whether anyone hears {@link report}. */
  get heard(): boolean {
    return this.#listeners !== undefined;
  }

  /** The same call, seen from further up. */
  with(changes: CallScopeChanges): CallScope {
    const scope = new CallScope(surroundingsOf(this.#around, changes), this);
    scope.#change(changes);
    return scope;
  }

  /** The same as `with({ sink })`, as every operator that holds something says it for every attempt. */
  withSink(sink: AttemptSink): CallScope {
    const scope = new CallScope(this.#around, this);
    scope.#hear(sink);
    return scope;
  }

  /** The frame for the next attempt: its number follows the attempts sent so far. */
  forNextAttempt(): CallScope {
    const attempt = this.#around.call.dispatched + 1;
    if (attempt === this.#attempt) return this;
    const scope = new CallScope(this.#around, this);
    scope.#attempt = attempt;
    return scope;
  }

  /** What a frame has of its own. Only for one that nobody has seen yet. */
  #change({
    model,
    deadlineAtMs = Infinity,
    deadlineMs = Infinity,
    route,
    onEvent,
    ear,
    sink,
  }: CallScopeChanges): void {
    if (model !== undefined) this.#model = model;
    if (deadlineAtMs < this.deadlineAtMs) this.#deadline = { atMs: deadlineAtMs, limitMs: deadlineMs };
    if (route !== undefined) this.#route = route;
    if (onEvent !== undefined) this.#listeners = { first: onEvent, rest: this.#listeners };
    if (ear !== undefined) this.#listeners = { first: ear, rest: this.#listeners };
    if (sink !== undefined) this.#hear(sink);
  }

  #hear(sink: AttemptSink): void {
    this.#sink = sink;
    this.#sinks = this;
  }

  /** Runs `work` inside what the frame's `around` functions set up. */
  around<R>(work: () => R): R {
    return (this.#around.around ?? plainly)(work);
  }

  /** Runs `work`, which something else has set off, in the place that the call was started from. */
  home<R>(work: () => R): R {
    const { home } = this.#around;
    return home === undefined ? work() : home(work, undefined);
  }

  /** Whether {@link content} is heard; for nobody else is it worth putting together. */
  get wantsContent(): boolean {
    return this.#around.onContent !== undefined;
  }

  /** For sources: what was asked and answered. A listener that throws is ignored. */
  content(content: Omit<AttemptContent, 'attempt'>): void {
    try {
      this.#around.onContent?.({ attempt: this.#attempt, ...content });
    } catch {
      // A listener's fault is its own.
    }
  }

  /** Tells every listener. One that throws is ignored: telemetry must not break a stream. */
  report(atMs: number, fact: SluiceFact, model: string | undefined = this.#model): void {
    let event: SluiceEvent | undefined;
    for (let node = this.#listeners; node; node = node.rest) {
      const { first } = node;
      if (typeof first !== 'function' && !first.hears(fact.type)) continue;
      event ??= this.#eventOf(atMs, fact, model);
      try {
        if (typeof first === 'function') first(event);
        else first.hear(event);
      } catch {
        // A listener's fault is its own.
      }
    }
  }

  #eventOf(atMs: number, fact: SluiceFact, model: string | undefined): SluiceEvent {
    const { call, tenant, conversation } = this.#around;
    return { callId: call.id, attempt: this.#attempt, model, tenant, conversation, atMs, ...fact };
  }

  /** For sources: the request leaves now. `sentFollows`: {@link sent} will be called, unless the attempt ends before. */
  dispatched(atMs: number, sentFollows = false): void {
    this.#around.call.dispatched++;
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.dispatched?.(atMs, sentFollows);
  }

  /** For sources that know: the request was handed over only now, some time after it was dispatched. */
  sent(atMs: number): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.sent?.(atMs);
  }

  /** For gates: the attempt waits here from now on. */
  gateClosed(): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.gateClosed?.();
  }

  gateOpened(through: boolean): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.gateOpened?.(through);
  }

  responded(status: number): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.responded?.(status);
  }

  hints(hints: RateLimitHints): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.hints?.(hints);
  }

  usage(usage: Usage): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.usage?.(usage);
  }

  /** For sources: the body reader has settled, and nothing of the attempt runs any more. */
  closed(): void {
    for (let at = this.#sinks; at; at = at.#outer) at.#sink?.closed?.();
  }
}
