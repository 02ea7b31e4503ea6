import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { zeroOrInfinity, zeroOrMore } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import type { Grant, QuotaRequest } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import { Quota } from '../limits/Quota.ts';
import type { QuotaRefusal, QuotaStep } from '../limits/Quota.ts';
import type { CheckedQuotaRules } from '../limits/QuotaOptions.ts';
import { QuotaReservation } from '../limits/QuotaReservation.ts';
import type { QuotaRoute, QuotaTicket } from '../limits/QuotaRoute.ts';
import { QuotaGrant } from './QuotaGrant.ts';
import { ServeLoop } from './ServeLoop.ts';

interface Entry {
  readonly subscriber: Subscriber<Grant>;
  readonly request: QuotaRequest;
}

/**
 * Hands out what a {@link Quota} grants. One timer, for the next thing that the machine will have to do, and none while
 * nobody waits.
 */
export class QuotaDesk {
  readonly runtime: Runtime;
  readonly #quota: Quota;
  readonly #entries = new Map<QuotaTicket, Entry>();
  /** In line, and not yet told that they wait. */
  // Stryker disable next-line ArrayDeclaration: what is no ticket is told nothing
  readonly #untold: QuotaTicket[] = [];
  readonly #loop: ServeLoop;

  constructor(rules: CheckedQuotaRules, runtime: Runtime) {
    this.runtime = runtime;
    this.#loop = new ServeLoop(runtime, () => this.#step());
    this.#quota = new Quota(rules);
  }

  get waiting(): number {
    return this.#quota.waiting;
  }

  acquire(request: QuotaRequest, routeOf: (tenant: string | undefined) => QuotaRoute): Observable<Grant> {
    // Hand-written: the place in line must be taken in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<Grant>((subscriber) => {
      if (subscriber.closed) return;
      zeroOrMore('cost.requests', request.cost.requests);
      zeroOrMore('cost.tokens', request.cost.tokens);
      if (request.maxWaitMs !== undefined) zeroOrInfinity('maxWaitMs', request.maxWaitMs);
      const [nowMs, route] = [this.runtime.clock.now(), routeOf(request.tenant)];
      // As in `AdmissionDesk`: one after the other, however deep the one that asks is in the call of another.
      // Stryker disable next-line ConditionalExpression: with a place in line it is the same, at more cost
      const ticket = this.#loop.isRunning
        ? this.#quota.enqueue(nowMs, route, request)
        : this.#quota.take(nowMs, route, request);
      if (ticket instanceof QuotaReservation) {
        this.#loop.run(() => this.#hand(ticket, { subscriber, request }, 0));
        return;
      }
      if (ticket.kind === 'refused') {
        subscriber.error(refusedError(ticket));
        return;
      }
      this.#entries.set(ticket, { subscriber, request });
      this.#untold.push(ticket);
      subscriber.add(() => this.#leave(ticket));
      this.serve();
    });
  }

  /** Grants and refuses what can be by now. Call it after everything that may have changed what is possible. */
  serve(): void {
    this.#loop.run();
  }

  #step(): number | undefined {
    const step = this.#quota.next(this.runtime.clock.now());
    if (step.kind !== 'wait') {
      this.#handOut(step);
      return undefined;
    }
    const ticket = this.#untold.shift();
    if (ticket === undefined) return step.untilMs;
    this.#entries.get(ticket)?.request.onQueued?.(ticket.position, ticket.foreseenMs || undefined);
    return undefined;
  }

  #handOut(step: Exclude<QuotaStep, { kind: 'wait' }>): void {
    const { ticket } = step;
    // There as long as it is in line.
    const entry = this.#entries.get(ticket) as Entry;
    if (step.kind === 'expired') entry.subscriber.error(refusedError(step.refusal));
    else this.#hand(step.reservation, entry, this.runtime.clock.now() - ticket.enqueuedAtMs);
  }

  #hand(reservation: QuotaReservation, { subscriber, request }: Entry, waitedMs: number): void {
    subscriber.next(new QuotaGrant(reservation, request, waitedMs, this));
    subscriber.complete();
  }

  #leave(ticket: QuotaTicket): void {
    this.#entries.delete(ticket);
    // Not in line once it was granted: then it belongs to the receiver.
    // Stryker disable next-line ConditionalExpression: where nothing was left there is nothing to serve
    if (this.#quota.cancel(ticket)) this.serve();
  }
}

function refusedError({ code, limit, requested, retryAfterMs, unit }: QuotaRefusal): SluiceError {
  return new SluiceError(code, messageOf(code, limit, requested, unit), {
    while: code === 'cost_too_large' ? 'entry' : 'queue',
    limit,
    requested,
    retryAfterMs,
  });
}

function messageOf(
  code: QuotaRefusal['code'],
  limit: number,
  requested: number | undefined,
  unit: QuotaRefusal['unit'],
): string {
  switch (code) {
    case 'cost_too_large':
      return `a cost of ${requested ?? 0} ${unit} can never pass: the quota is ${limit} ${unit} a minute`;
    case 'queue_full':
      return `${limit} ${unit} are waiting for the quota already, and no more may`;
    case 'queue_timeout':
      return `the quota has no room within ${limit} ms`;
    case 'timeout_deadline':
      return `the quota has no room before the deadline in ${limit} ms`;
  }
}
