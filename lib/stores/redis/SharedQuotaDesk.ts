import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { RateLimitHints } from '../../core/hints.ts';
import type { Grant, QuotaPort, QuotaRequest, QuotaSnapshot } from '../../core/ports.ts';
import type { Runtime } from '../../core/runtime.ts';
import { Alarm } from './Alarm.ts';
import { REPLY } from './QuotaCall.ts';
import type { OpReply, QuotaOp } from './QuotaCall.ts';
import { QuotaCalls } from './QuotaCalls.ts';
import { QuotaDecider } from './QuotaDecider.ts';
import type { DeciderOptions } from './QuotaDecider.ts';
import { QuotaLine } from './QuotaLine.ts';
import { boundOf, costOf } from './quotaAsk.ts';
import type { QuotaPlan } from './quotaRules.ts';
import { QuotaTelling } from './QuotaTelling.ts';
import { newWaiter } from './QuotaWaiter.ts';
import type { QuotaWaiter } from './QuotaWaiter.ts';
import { lineFull, noRoom, storeClosed, storeUnavailable } from './refusals.ts';
import type { Script } from './Script.ts';
import { reportOf, SharedGrant } from './SharedGrant.ts';
import type { Granted } from './SharedGrant.ts';
import { SpareSlice } from './SpareSlice.ts';
import type { StoreLink } from './StoreLink.ts';

/** A wait that JSON has a number for. */
const ENDLESS_US = 1e15;
/** A turn that has moved up by more than this: so have those behind it. */
const MOVED_MS = 5;

/** Hands out what is granted to this process, by the store or by itself. One timer, and none while nobody waits. */
export class SharedQuotaDesk implements QuotaPort {
  readonly #plan: QuotaPlan;
  readonly #runtime: Runtime;
  readonly #line = new QuotaLine();
  readonly #calls: QuotaCalls;
  readonly #decider: QuotaDecider;
  readonly #renewMs: number;
  readonly #slice: SpareSlice;
  readonly #telling: QuotaTelling;
  readonly #alarm: Alarm;
  #calledAtMs = 0;
  #moved = false;
  #closed = false;

  constructor(plan: QuotaPlan, link: StoreLink, script: Script, options: DeciderOptions) {
    this.#plan = plan;
    this.#runtime = link.runtime;
    this.#renewMs = plan.shared.leaseUs / 3000;
    this.#slice = new SpareSlice(plan.shared.sliceUs / 1000);
    this.#alarm = new Alarm(this.#runtime, () => this.#serve());
    this.#calls = new QuotaCalls({
      beforeCall: () => this.#addLooks(),
      decide: (ops) => this.#decide(ops),
      heard: (reply) => this.#decider.heard(reply),
      afterCalls: () => this.#watch(),
    });
    this.#decider = new QuotaDecider(plan, link, script, options, {
      changed: (first) => this.#askAnew(first),
      wanting: () => this.#line.size > 0,
    });
    this.#telling = new QuotaTelling(
      this.#calls,
      this.#decider,
      this.#slice,
      () => this.#nowMs(),
      () => this.#watch(),
    );
  }

  acquire(request: QuotaRequest): Observable<Grant> {
    // Hand-written: the place in line must be taken in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<Grant>((subscriber) => {
      if (!subscriber.closed) this.#enter(request, subscriber);
    });
  }

  observe(hints: RateLimitHints): void {
    for (const unit of ['requests', 'tokens'] as const) {
      const op = reportOf(this.#plan, unit, hints[unit], 0, -1);
      if (op) this.#telling.tell(op);
    }
    if (hints.retryAfterMs !== undefined) this.#telling.tell(['hint', hints.retryAfterMs]);
    this.#calls.send();
  }

  snapshot(): QuotaSnapshot {
    const { cooldownMs, drainUs } = this.#decider;
    return { waiting: this.#line.size, cooldownMs, layers: this.#plan.snapshot(drainUs) };
  }

  /** Ends those who wait with `closed`, and all that come. Grants that are out end as they would. */
  close(): void {
    this.#closed = true;
    this.#telling.endSlice();
    for (const waiter of [...this.#line]) this.#fail(waiter, storeClosed());
    this.#calls.send();
  }

  #enter(request: QuotaRequest, subscriber: Subscriber<Grant>): void {
    const cost = costOf(this.#plan, request);
    if (this.#closed) throw storeClosed();
    this.#decider.wanted();
    const { refusing } = this.#decider;
    if (refusing !== undefined) throw storeUnavailable(refusing);
    const bound = boundOf(this.#plan, request, this.#nowMs());
    if (bound.limitMs < 0) throw noRoom({ ...bound, limitMs: 0 }, undefined);
    const nowMs = this.#nowMs();
    this.#slice.arrived(nowMs);
    const spare = this.#line.size === 0 && this.#decider.cooldownMs === 0 ? this.#slice.take(nowMs, cost) : undefined;
    if (spare) {
      this.#handOver(subscriber, { ...spare, waitedMs: 0 }, request);
      return;
    }
    const waiter = newWaiter({ subscriber, request, cost, bound }, nowMs);
    this.#line.join(waiter);
    subscriber.add(() => this.#leave(waiter));
    this.#ask(waiter);
    this.#calls.send();
  }

  #ask(waiter: QuotaWaiter): void {
    const { cost, expiresAtMs } = waiter;
    waiter.id = this.#decider.nextId();
    // Reserved tokens may come back early: then only the wait itself can tell.
    const limitMs = this.#plan.own.settle === 'usage' ? Infinity : expiresAtMs - this.#nowMs();
    const limitUs = Math.min(ENDLESS_US, Math.max(0, Math.floor(limitMs * 1000)));
    // A share is too small to take ahead of need.
    const spare = this.#decider.way?.leadMs ? this.#slice.want(this.#nowMs()) : 0;
    this.#calls.add(
      ['enter', waiter.id, cost.requests, cost.tokens, limitUs, spare, cost.tokens],
      (reply) => this.#answered(waiter, reply),
      () => waiter.state === 'asked',
    );
  }

  #askAnew(first: readonly QuotaOp[]): void {
    this.#slice.end();
    this.#calls.reset();
    for (const op of first) this.#calls.add(op);
    const { refusing } = this.#decider;
    for (const waiter of [...this.#line]) {
      waiter.state = 'asked';
      if (refusing === undefined) this.#ask(waiter);
      else this.#fail(waiter, storeUnavailable(refusing));
    }
    this.#calls.send();
  }

  #answered(waiter: QuotaWaiter, reply: OpReply): void {
    const [kind, us = 0, position = 0] = reply;
    if (waiter.state === 'over') {
      if (kind === REPLY.granted) this.#giveBack(waiter, reply);
      return;
    }
    switch (kind) {
      case REPLY.granted:
        waiter.turnAtMs = this.#nowMs() + us / 1000;
        waiter.reply = reply;
        if (us > 0) this.#line.becomeDue(waiter);
        else this.#grant(waiter);
        return;
      case REPLY.wait:
        this.#waits(waiter, us / 1000, position);
        return;
      case REPLY.gone:
        waiter.state = 'asked';
        this.#ask(waiter);
        this.#calls.send();
        return;
      default: {
        const retryAfterMs = Math.max(1, Math.ceil(us / 1000));
        const full = kind === REPLY.full;
        this.#fail(
          waiter,
          full ? lineFull(this.#plan.own.maxWaiting, retryAfterMs) : noRoom(waiter.bound, retryAfterMs),
        );
      }
    }
  }

  #waits(waiter: QuotaWaiter, waitMs: number, position: number): void {
    const leadMs = this.#decider.way?.leadMs ?? 0;
    const turnAtMs = this.#nowMs() + waitMs;
    if (waiter.state === 'waiting' && turnAtMs < waiter.turnAtMs - MOVED_MS) {
      this.#moved = true;
      this.#calls.send();
    }
    waiter.state = 'waiting';
    waiter.turnAtMs = turnAtMs;
    // What was refused just now would be refused again at once: no lead, then.
    waiter.lookAtMs = waitMs > 2 * leadMs ? turnAtMs - leadMs : turnAtMs;
    if (!waiter.told) waiter.request.onQueued?.(position, Math.max(1, Math.ceil(waitMs)));
    waiter.told = true;
  }

  #grant(waiter: QuotaWaiter): void {
    this.#line.leave(waiter);
    const { cost, request, enqueuedAtMs, subscriber, reply } = waiter;
    const [, , trial = 0, spare = 0, ...marks] = reply;
    const nowMs = this.#nowMs();
    if (spare > 0) {
      this.#telling.endSlice();
      this.#slice.fill(nowMs, spare, cost.tokens, marks.slice(marks.length / 2));
    }
    const granted = { cost, takenTokens: cost.tokens, marks, trial, waitedMs: nowMs - enqueuedAtMs };
    this.#handOver(subscriber, granted, request);
  }

  #handOver(subscriber: Subscriber<Grant>, granted: Granted, request: QuotaRequest): void {
    subscriber.next(new SharedGrant(granted, request, this.#plan, this.#telling.grantDesk()));
    subscriber.complete();
  }

  #fail(waiter: QuotaWaiter, error: Error): void {
    this.#forget(waiter);
    waiter.subscriber.error(error);
  }

  #leave(waiter: QuotaWaiter): void {
    if (waiter.state === 'over') return;
    this.#forget(waiter);
    this.#calls.send();
  }

  #forget(waiter: QuotaWaiter): void {
    const { state, id } = waiter;
    this.#line.leave(waiter);
    if (state === 'due') this.#giveBack(waiter, waiter.reply);
    if (state === 'waiting') this.#calls.add(['leave', id]);
  }

  #giveBack({ cost }: QuotaWaiter, reply: OpReply): void {
    const [, , trial = 0] = reply;
    if (trial > 0) this.#calls.add(['gaveUp', trial]);
    this.#calls.add(['back', cost.requests, cost.tokens, ...reply.slice(4)]);
    this.#calls.send();
  }

  #addLooks(): void {
    const aheadMs = 2 * (this.#decider.way?.leadMs ?? 0);
    for (const waiter of this.#line.toLookAt(this.#nowMs(), aheadMs, this.#moved)) {
      const hear = (reply: OpReply): void => this.#answered(waiter, reply);
      this.#calls.add(['look', waiter.id], hear, () => waiter.state === 'waiting');
    }
    this.#moved = false;
  }

  #decide(ops: readonly QuotaOp[]): ReturnType<QuotaDecider['decide']> {
    this.#calledAtMs = this.#nowMs();
    this.#telling.sent();
    return this.#decider.decide(ops, this.#line.size > 0);
  }

  #serve(): void {
    const nowMs = this.#nowMs();
    for (let due = this.#line.nextDue(nowMs); due; due = this.#line.nextDue(nowMs)) this.#grant(due);
    for (let late = this.#line.nextExpired(nowMs); late; late = this.#line.nextExpired(nowMs)) {
      const waitMs = late.turnAtMs === Infinity ? 1 : Math.max(1, Math.ceil(late.turnAtMs - nowMs));
      this.#fail(late, noRoom(late.bound, waitMs));
    }
    if (this.#slice.endsAtMs <= nowMs) this.#telling.endSlice();
    if (this.#callAtMs() <= this.#nowMs()) this.#calls.send();
    this.#watch();
  }

  #callAtMs(): number {
    const renewAtMs = this.#line.size > 0 ? this.#calledAtMs + this.#renewMs : Infinity;
    return Math.min(this.#telling.laterAtMs, this.#line.lookAtMs, this.#slice.endsAtMs, renewAtMs);
  }

  #watch(): void {
    // What is under way watches when it is back; those whose grant begins do not wait for that.
    const callAtMs = this.#calls.busy ? Infinity : this.#callAtMs();
    this.#alarm.set(Math.min(this.#line.tellAtMs, callAtMs));
  }

  #nowMs(): number {
    return this.#runtime.clock.now();
  }
}
