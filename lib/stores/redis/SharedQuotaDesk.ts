import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { RateLimitHints } from '../../core/hints.ts';
import type { Grant, QuotaPort, QuotaRequest, QuotaSnapshot } from '../../core/ports.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import { REPLY } from './QuotaCall.ts';
import type { OpReply, QuotaOp } from './QuotaCall.ts';
import { QuotaCalls } from './QuotaCalls.ts';
import { QuotaDecider } from './QuotaDecider.ts';
import type { DeciderOptions } from './QuotaDecider.ts';
import { QuotaLine } from './QuotaLine.ts';
import { boundOf, costOf } from './quotaAsk.ts';
import type { QuotaPlan } from './quotaRules.ts';
import type { QuotaWaiter } from './QuotaWaiter.ts';
import { lineFull, noRoom, storeClosed, storeUnavailable } from './refusals.ts';
import type { Script } from './Script.ts';
import { reportOf, SharedGrant } from './SharedGrant.ts';
import type { GrantDesk } from './SharedGrant.ts';
import type { StoreLink } from './StoreLink.ts';

/** What is not urgent is told within this time. */
const LATER_MS = 20;
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
  #calledAtMs = 0;
  #laterAtMs = Infinity;
  #moved = false;
  #closed = false;
  #timerAtMs = Infinity;
  #stopTimer: Cancel | undefined;

  constructor(plan: QuotaPlan, link: StoreLink, script: Script, options: DeciderOptions) {
    this.#plan = plan;
    this.#runtime = link.runtime;
    this.#renewMs = plan.shared.leaseUs / 3000;
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
      if (op) this.#tell(op);
    }
    if (hints.retryAfterMs !== undefined) this.#tell(['hint', hints.retryAfterMs]);
    this.#calls.send();
  }

  snapshot(): QuotaSnapshot {
    const { cooldownMs, drainUs } = this.#decider;
    return { waiting: this.#line.size, cooldownMs, layers: this.#plan.snapshot(drainUs) };
  }

  /** Ends those who wait with `closed`, and all that come. Grants that are out end as they would. */
  close(): void {
    this.#closed = true;
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
    const waiter: QuotaWaiter = {
      subscriber,
      request,
      cost,
      enqueuedAtMs: nowMs,
      bound,
      expiresAtMs: nowMs + bound.limitMs,
      id: '',
      state: 'asked',
      turnAtMs: Infinity,
      lookAtMs: Infinity,
      reply: [],
      told: false,
      place: undefined,
    };
    this.#line.join(waiter);
    subscriber.add(() => this.#leave(waiter));
    this.#ask(waiter);
    this.#calls.send();
  }

  #ask(waiter: QuotaWaiter): void {
    const { cost, expiresAtMs } = waiter;
    waiter.id = this.#decider.nextId();
    waiter.state = 'asked';
    // Reserved tokens may come back early: then only the wait itself can tell.
    const limitMs = this.#plan.own.settle === 'usage' ? Infinity : expiresAtMs - this.#nowMs();
    const limitUs = Math.min(ENDLESS_US, Math.max(0, Math.floor(limitMs * 1000)));
    this.#calls.add(
      ['enter', waiter.id, cost.requests, cost.tokens, limitUs, 0, 0],
      (reply) => this.#answered(waiter, reply),
      () => waiter.state === 'asked',
    );
  }

  #askAnew(first: readonly QuotaOp[]): void {
    this.#calls.reset();
    for (const op of first) this.#calls.add(op);
    const { refusing } = this.#decider;
    for (const waiter of [...this.#line]) {
      if (refusing === undefined) this.#ask(waiter);
      else {
        waiter.state = 'asked';
        this.#fail(waiter, storeUnavailable(refusing));
      }
    }
    this.#calls.send();
  }

  #answered(waiter: QuotaWaiter, reply: OpReply): void {
    const [kind, us = 0, position = 0] = reply;
    if (waiter.state === 'over') {
      if (kind === REPLY.granted) this.#giveBack(waiter, reply);
      return;
    }
    const retryAfterMs = Math.max(1, Math.ceil(us / 1000));
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
        this.#ask(waiter);
        this.#calls.send();
        return;
      case REPLY.full:
        this.#fail(waiter, lineFull(this.#plan.own.maxWaiting, retryAfterMs));
        return;
      default:
        this.#fail(waiter, noRoom(waiter.bound, retryAfterMs));
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
    const [, , trial = 0] = reply;
    const waitedMs = this.#nowMs() - enqueuedAtMs;
    const granted = { cost, takenTokens: cost.tokens, marks: reply.slice(4), trial, waitedMs };
    subscriber.next(new SharedGrant(granted, request, this.#plan, this.#grantDesk()));
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

  #grantDesk(): GrantDesk {
    const { way } = this.#decider;
    return {
      nowMs: () => this.#nowMs(),
      tell: (op, soon, hear) => {
        // Who granted it is gone; only what the provider asks for still means something.
        if (this.#decider.way !== way && op[0] !== 'hint') return;
        this.#tell(op, hear);
        if (soon) this.#calls.send();
        else {
          this.#laterAtMs = Math.min(this.#laterAtMs, this.#nowMs() + LATER_MS);
          this.#watch();
        }
      },
    };
  }

  #tell(op: QuotaOp, hear?: (reply: OpReply) => void): void {
    if (this.#decider.refusing === undefined) this.#calls.add(op, hear);
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
    this.#laterAtMs = Infinity;
    return this.#decider.decide(ops, this.#line.size > 0);
  }

  #serve(): void {
    const nowMs = this.#nowMs();
    for (let due = this.#line.nextDue(nowMs); due; due = this.#line.nextDue(nowMs)) this.#grant(due);
    for (let late = this.#line.nextExpired(nowMs); late; late = this.#line.nextExpired(nowMs)) {
      const waitMs = late.turnAtMs === Infinity ? 1 : Math.max(1, Math.ceil(late.turnAtMs - nowMs));
      this.#fail(late, noRoom(late.bound, waitMs));
    }
    if (this.#callAtMs() <= this.#nowMs()) this.#calls.send();
    this.#watch();
  }

  #callAtMs(): number {
    const renewAtMs = this.#line.size > 0 ? this.#calledAtMs + this.#renewMs : Infinity;
    return Math.min(this.#laterAtMs, this.#line.lookAtMs, renewAtMs);
  }

  #watch(): void {
    // What is under way watches when it is back; those whose grant begins do not wait for that.
    const callAtMs = this.#calls.busy ? Infinity : this.#callAtMs();
    const atMs = Math.min(this.#line.tellAtMs, callAtMs);
    // A timer that comes too early looks again; only one that comes too late must be replaced.
    if (atMs === Infinity ? this.#timerAtMs === Infinity : this.#timerAtMs <= atMs) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#timerAtMs = atMs;
    if (atMs === Infinity) return;
    this.#stopTimer = startTimer(this.#runtime, atMs - this.#nowMs(), () => {
      this.#timerAtMs = Infinity;
      this.#serve();
    });
  }

  #nowMs(): number {
    return this.#runtime.clock.now();
  }
}
