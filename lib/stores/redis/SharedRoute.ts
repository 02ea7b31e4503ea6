import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { RateLimitHints } from '../../core/hints.ts';
import type { QuotaRequest, QuotaSnapshot } from '../../core/ports.ts';
import type { RouteOptions, SharedQuotaGrant, SharedRoute as SharedRoutePort } from '../../limits/LimitStore.ts';
import { REPLY } from './QuotaCall.ts';
import type { OpReply } from './QuotaCall.ts';
import type { QuotaCalls } from './QuotaCalls.ts';
import type { QuotaDecider } from './QuotaDecider.ts';
import type { QuotaLayers, RoutePlan } from './QuotaLayers.ts';
import { QuotaLine } from './QuotaLine.ts';
import { boundOf, costOf, enterOp } from './quotaAsk.ts';
import type { QuotaTelling } from './QuotaTelling.ts';
import { newWaiter } from './QuotaWaiter.ts';
import type { QuotaWaiter } from './QuotaWaiter.ts';
import { lineFull, noRoom, storeClosed, storeUnavailable } from './refusals.ts';
import { reportOf, SharedGrant } from './SharedGrant.ts';
import type { Granted } from './SharedGrant.ts';
import { SpareSlice } from './SpareSlice.ts';

/** What all routes of a quota use together. */
export interface RouteHost {
  readonly layers: QuotaLayers;
  readonly calls: QuotaCalls;
  readonly decider: QuotaDecider;
  readonly telling: QuotaTelling;
  readonly closed: boolean;
  readonly sliceMs: number;
  nowMs(): number;
  /** Something may be due now. */
  busy(route: SharedRoute): void;
}

/** A turn that has moved up by more than this: so have those behind it. */
const MOVED_MS = 5;

/** Hands out what is granted on one route of a shared quota, by the store or by this process. */
export class SharedRoute implements SharedRoutePort {
  readonly names: readonly string[];
  readonly line: QuotaLine = new QuotaLine();
  readonly #host: RouteHost;
  readonly #slice: SpareSlice;
  #options: RouteOptions;
  #plan: RoutePlan;
  #planned: number;
  #moved = false;

  constructor(names: readonly string[], options: RouteOptions, host: RouteHost) {
    this.names = names;
    this.#host = host;
    this.#options = options;
    this.#slice = new SpareSlice(host.sliceMs);
    this.#plan = host.layers.plan(names, options);
    this.#planned = host.layers.version;
  }

  /** As the layers are now. */
  get plan(): RoutePlan {
    const { layers } = this.#host;
    if (this.#planned !== layers.version) {
      this.#plan = layers.plan(this.names, this.#options);
      this.#planned = layers.version;
    }
    return this.#plan;
  }

  acquire(request: QuotaRequest): Observable<SharedQuotaGrant> {
    // Hand-written: the place in line must be taken in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<SharedQuotaGrant>((subscriber) => {
      if (!subscriber.closed) this.#enter(request, subscriber);
    });
  }

  observe(hints: RateLimitHints): void {
    const { plan } = this;
    const { telling, calls } = this.#host;
    for (const unit of ['requests', 'tokens'] as const) {
      const op = reportOf(plan, unit, hints[unit], 0, -1);
      if (op) telling.tell(plan, op);
    }
    if (hints.retryAfterMs !== undefined) telling.tell(plan, ['hint', hints.retryAfterMs]);
    calls.send();
  }

  snapshot(): QuotaSnapshot {
    const { decider } = this.#host;
    const { plan } = this;
    return {
      waiting: this.line.size,
      cooldownMs: decider.pausedMs(plan),
      layers: plan.snapshot((key) => decider.drainUs(key)),
    };
  }

  /** Takes other options. */
  reload(options: RouteOptions): void {
    this.#options = options;
    this.#planned = -1;
  }

  /** Whether nothing of it is under way. */
  get idle(): boolean {
    return this.line.size === 0 && this.line.tellAtMs === Infinity && this.#slice.endsAtMs === Infinity;
  }

  /** When there is something to ask. */
  get askAtMs(): number {
    return Math.min(this.line.lookAtMs, this.#slice.endsAtMs);
  }

  /** Its turns may be others than it was told. */
  moved(): void {
    this.#moved = true;
  }

  /** Whether it is worth asking about someone whose turn comes within that time. */
  dueWithin(aheadMs: number): boolean {
    return this.#moved || this.line.turnAtMs <= this.#host.nowMs() + aheadMs;
  }

  /** Asks about up to `most` turns. Returns about how many. */
  look(aheadMs: number, most: number): number {
    const { plan } = this;
    const looks = this.line.toLookAt(this.#host.nowMs(), aheadMs, this.#moved, most);
    for (const waiter of looks) {
      const hear = (reply: OpReply): void => this.#answered(waiter, plan, reply);
      this.#host.calls.add(plan, ['look', waiter.id], hear, () => waiter.state === 'waiting');
    }
    this.#moved = false;
    return looks.length;
  }

  /** Does what is due. */
  serve(): void {
    const nowMs = this.#host.nowMs();
    for (let due = this.line.nextDue(nowMs); due; due = this.line.nextDue(nowMs)) this.#grant(due);
    for (let late = this.line.nextExpired(nowMs); late; late = this.line.nextExpired(nowMs)) {
      const waitMs = late.turnAtMs === Infinity ? 1 : Math.max(1, Math.ceil(late.turnAtMs - nowMs));
      this.#fail(late, noRoom(late.bound, waitMs));
    }
    if (this.#slice.endsAtMs <= nowMs) this.#host.telling.endSlice(this.#slice);
  }

  /** Somebody else decides from now on. */
  askAnew(): void {
    this.#slice.end();
    const { refusing } = this.#host.decider;
    for (const waiter of [...this.line]) {
      waiter.state = 'asked';
      if (refusing === undefined) this.#ask(waiter);
      else this.#fail(waiter, storeUnavailable(refusing));
    }
  }

  /** Ends those who wait with `closed`. */
  close(): void {
    this.#host.telling.endSlice(this.#slice);
    for (const waiter of [...this.line]) this.#fail(waiter, storeClosed());
  }

  #enter(request: QuotaRequest, subscriber: Subscriber<SharedQuotaGrant>): void {
    const { plan } = this;
    const { decider, closed, calls } = this.#host;
    const cost = costOf(plan, request);
    if (closed) throw storeClosed();
    decider.wanted();
    const { refusing } = decider;
    if (refusing !== undefined) throw storeUnavailable(refusing);
    const nowMs = this.#host.nowMs();
    const bound = boundOf(plan, request, nowMs);
    if (bound.limitMs < 0) throw noRoom({ ...bound, limitMs: 0 }, undefined);
    this.#slice.arrived(nowMs);
    const free = this.line.size === 0 && decider.pausedMs(plan) === 0;
    const spare = free ? this.#slice.take(nowMs, cost, plan) : undefined;
    if (spare) {
      this.#handOver(subscriber, { ...spare, waitedMs: 0 }, request, plan);
      return;
    }
    const waiter = newWaiter({ subscriber, request, plan, cost, bound }, nowMs);
    this.line.join(waiter);
    this.#host.busy(this);
    subscriber.add(() => this.#leave(waiter));
    this.#ask(waiter);
    calls.send();
  }

  #ask(waiter: QuotaWaiter): void {
    const { decider, calls } = this.#host;
    const { plan } = this;
    const nowMs = this.#host.nowMs();
    waiter.id = decider.nextId();
    // A share is too small to take ahead of need.
    const spare = decider.way?.leadMs ? this.#slice.want(nowMs) : 0;
    calls.add(
      plan,
      enterOp(waiter, plan, nowMs, spare),
      (reply) => this.#answered(waiter, plan, reply),
      () => waiter.state === 'asked',
    );
  }

  #answered(waiter: QuotaWaiter, plan: RoutePlan, reply: OpReply): void {
    const [kind, us = 0, position = 0] = reply;
    waiter.plan = plan;
    if (waiter.state === 'over') {
      if (kind === REPLY.granted) this.#giveBack(waiter, reply);
      return;
    }
    switch (kind) {
      case REPLY.granted:
        waiter.turnAtMs = this.#host.nowMs() + us / 1000;
        waiter.reply = reply;
        if (us > 0) this.line.becomeDue(waiter);
        else this.#grant(waiter);
        return;
      case REPLY.wait:
        this.#waits(waiter, us / 1000, position);
        return;
      case REPLY.gone:
        waiter.state = 'asked';
        this.#ask(waiter);
        this.#host.calls.send();
        return;
      default: {
        const waitMs = Math.max(1, Math.ceil(us / 1000));
        this.#fail(waiter, kind === REPLY.full ? lineFull(plan.own.maxWaiting, waitMs) : noRoom(waiter.bound, waitMs));
      }
    }
  }

  #waits(waiter: QuotaWaiter, waitMs: number, position: number): void {
    const leadMs = this.#host.decider.way?.leadMs ?? 0;
    const turnAtMs = this.#host.nowMs() + waitMs;
    if (waiter.state === 'waiting' && turnAtMs < waiter.turnAtMs - MOVED_MS) {
      this.#moved = true;
      this.#host.calls.send();
    }
    waiter.state = 'waiting';
    waiter.turnAtMs = turnAtMs;
    // What was refused just now would be refused again at once: no lead, then.
    waiter.lookAtMs = waitMs > 2 * leadMs ? turnAtMs - leadMs : turnAtMs;
    if (!waiter.told) waiter.request.onQueued?.(position, Math.max(1, Math.ceil(waitMs)));
    waiter.told = true;
  }

  #grant(waiter: QuotaWaiter): void {
    this.line.leave(waiter);
    const { cost, request, enqueuedAtMs, subscriber, reply, plan } = waiter;
    const [, , trial = 0, spare = 0, ...marks] = reply;
    const nowMs = this.#host.nowMs();
    if (spare > 0) {
      this.#host.telling.endSlice(this.#slice);
      this.#slice.fill(nowMs, spare, cost.tokens, marks.slice(marks.length / 2), plan);
      this.#host.busy(this);
    }
    const granted = { cost, takenTokens: cost.tokens, marks, trial, waitedMs: nowMs - enqueuedAtMs };
    this.#handOver(subscriber, granted, request, plan);
  }

  #handOver(subscriber: Subscriber<SharedQuotaGrant>, granted: Granted, request: QuotaRequest, plan: RoutePlan): void {
    const desk = this.#host.telling.grantDesk(plan, this.#slice);
    subscriber.next(new SharedGrant(granted, request, plan, desk));
    subscriber.complete();
  }

  #fail(waiter: QuotaWaiter, error: Error): void {
    this.#forget(waiter);
    waiter.subscriber.error(error);
  }

  #leave(waiter: QuotaWaiter): void {
    if (waiter.state === 'over') return;
    this.#forget(waiter);
    this.#host.calls.send();
  }

  #forget(waiter: QuotaWaiter): void {
    const { state, id } = waiter;
    this.line.leave(waiter);
    if (state === 'due') this.#giveBack(waiter, waiter.reply);
    if (state === 'waiting') this.#host.calls.add(this.plan, ['leave', id]);
  }

  #giveBack({ cost, plan }: QuotaWaiter, reply: OpReply): void {
    const { calls } = this.#host;
    const [, , trial = 0, spare = 0, ...marks] = reply;
    if (trial > 0) calls.add(plan, ['gaveUp', trial]);
    calls.add(plan, ['back', cost.requests, cost.tokens, ...marks]);
    if (spare > 0) calls.add(plan, ['back', spare, spare * cost.tokens, ...marks.slice(marks.length / 2)]);
    calls.send();
  }
}
