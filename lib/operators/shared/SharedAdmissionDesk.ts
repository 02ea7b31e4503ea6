import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { isSluiceError, SluiceError } from '../../core/errors.ts';
import type { SluiceFact } from '../../core/events.ts';
import { DROPPED_UNSENT } from '../../core/outcome.ts';
import type { Admitted, AdmissionRequest } from '../../core/ports.ts';
import type { Clock, Runtime } from '../../core/runtime.ts';
import type { Admission } from '../../limits/Admission.ts';
import type { AdmissionGrant, TargetChange } from '../../limits/AdmissionGrant.ts';
import type { AdmissionTicket } from '../../limits/AdmissionPool.ts';
import type { AdmissionStep } from '../../limits/AdmissionStep.ts';
import { QUOTA_DEFAULTS } from '../../limits/QuotaOptions.ts';
import { refusedError } from '../admissionErrors.ts';
import { LocalAdmitted } from '../LocalAdmitted.ts';
import { ServeLoop } from '../ServeLoop.ts';
import { SharedAdmitted } from './SharedAdmitted.ts';
import type { SharedCeilings } from './SharedCeilings.ts';
import { SharedPlaces } from './SharedPlaces.ts';
import type { SharedTarget } from './SharedTarget.ts';
import type { SharedTargets } from './SharedTargets.ts';

interface Entry {
  readonly subscriber: Subscriber<Admitted>;
  readonly request: AdmissionRequest;
  readonly askedAtMs: number;
}

/** Who waits for less has only waited for the store to answer. */
const TELL_MS = 20;
/** How long a deployment whose breaker has refused is left to others, at most, where there are others. */
const LONGEST_REST_MS = 1000;

/**
 * Hands out what an {@link Admission} grants where quota, breakers and ceilings are shared with other processes. Who is next
 * here is decided here; when there is something for this process, in the store. One timer for this process's own, and none
 * while nobody waits.
 */
export class SharedAdmissionDesk {
  readonly runtime: Runtime;
  readonly machine: Admission;
  readonly clock: Pick<Clock, 'now'>;
  /** Longest wait of one that brings no bound of its own. */
  maxWaitMs: number = QUOTA_DEFAULTS.maxWaitMs;
  readonly #targets: SharedTargets;
  readonly #ceilings: SharedCeilings;
  /** Longest time until the store has answered. */
  readonly #answerMs: number;
  readonly #entries = new Map<AdmissionTicket, Entry>();
  readonly #places: SharedPlaces;
  readonly #loop: ServeLoop;
  readonly #untold: AdmissionTicket[] = [];

  constructor(
    machine: Admission,
    targets: SharedTargets,
    ceilings: SharedCeilings,
    answerMs: number,
    runtime: Runtime,
  ) {
    this.machine = machine;
    this.runtime = runtime;
    this.clock = runtime.clock;
    this.#targets = targets;
    this.#ceilings = ceilings;
    this.#answerMs = answerMs;
    this.#places = new SharedPlaces(this);
    this.#loop = new ServeLoop(runtime, () => this.#step());
  }

  acquire(request: AdmissionRequest): Observable<Admitted> {
    // Hand-written: the place in line must be taken in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<Admitted>((subscriber) => {
      if (!subscriber.closed) this.#enter(subscriber, request, this.clock.now());
    });
  }

  serve(): void {
    this.#loop.run();
  }

  /** What the store lends has changed. */
  lent(): void {
    this.#ceilings.lent();
    for (const [ticket, { subscriber, request }] of [...this.#entries]) {
      const reason = this.#ceilings.refusing(ticket.level, ticket.tenant) ?? this.#targets.refusing(ticket.pool);
      if (reason !== undefined && this.#forget(ticket)) subscriber.error(unavailable(reason, request.model, 'queue'));
    }
    this.serve();
  }

  /** Other options hold. */
  reloaded(): void {
    this.#places.rearrange();
    this.serve();
  }

  targetsOf({ pool }: AdmissionTicket): readonly SharedTarget[] {
    return this.#targets.of(pool);
  }

  refuse(ticket: AdmissionTicket, error: SluiceError): void {
    const entry = this.#entries.get(ticket);
    this.#forget(ticket);
    // It may have left within the asking.
    entry?.subscriber.error(error);
  }

  /** The breakers of the machine never open. */
  tell(_changes: readonly TargetChange[]): void {}

  report(fact: SluiceFact, request?: AdmissionRequest): void {
    try {
      // Stryker disable next-line OptionalChaining: it would be caught
      request?.onFact?.(fact);
    } catch {
      // A listener's fault is its own.
    }
  }

  /** `told`: it has heard that it waits, at another deployment. */
  #enter(subscriber: Subscriber<Admitted>, request: AdmissionRequest, askedAtMs: number, told = false): void {
    const { model } = request;
    const ownMs = request.maxWaitMs ?? this.maxWaitMs;
    // The store has to be asked, however short the wait may be.
    const ticket = this.machine.ask({ ...request, maxWaitMs: Math.max(ownMs, this.#answerMs) });
    if (ticket.kind === 'refused') {
      subscriber.error(refusedError(ticket, model, 'entry'));
      return;
    }
    this.#targets.know(ticket.pool, model);
    this.#ceilings.enter(ticket.from);
    this.#entries.set(ticket, { subscriber, request, askedAtMs });
    this.#places.join({
      ticket,
      request,
      untilMs: askedAtMs + ownMs,
      places: new Map(),
      refused: new Map(),
      restUntilMs: -Infinity,
      told,
    });
    this.#untold.push(ticket);
    subscriber.add(() => this.#leave(ticket));
    this.serve();
    const reason = this.#ceilings.refusing(ticket.level, ticket.tenant) ?? this.#targets.refusing(ticket.pool);
    if (reason !== undefined && this.#forget(ticket)) subscriber.error(unavailable(reason, model, 'entry'));
  }

  #step(): number | undefined {
    const step = this.machine.next();
    if (step.kind !== 'wait') {
      this.#handOut(step);
      return undefined;
    }
    this.#places.giveBack();
    if (this.#ceilings.update(this.#targets.update())) return undefined;
    const againAtMs = this.#places.arrange();
    const tellAtMs = this.#tellQueued();
    return this.#places.came ? undefined : Math.min(step.untilMs, againAtMs, tellAtMs);
  }

  /**
   * Tells those who wait for room here that they do; those that have a place in the store hear of it from there. Returns when
   * there is more to tell.
   */
  #tellQueued(): number {
    const nowMs = this.clock.now();
    for (let ticket = this.#untold[0]; ticket; ticket = this.#untold[0]) {
      const waiter = this.#places.waiterOf(ticket);
      if (waiter && ticket.enqueuedAtMs + TELL_MS > nowMs) return ticket.enqueuedAtMs + TELL_MS;
      this.#untold.shift();
      if (waiter === undefined || waiter.told || waiter.places.size > 0) continue;
      waiter.told = true;
      waiter.request.onQueued?.(ticket.position, undefined);
    }
    return Infinity;
  }

  #handOut(step: Exclude<AdmissionStep, { kind: 'wait' }>): void {
    // Stryker disable next-line ConditionalExpression,StringLiteral: it never is, see `tell`
    if (step.kind === 'changed') return;
    const { ticket } = step;
    const entry = this.#entries.get(ticket);
    this.#entries.delete(ticket);
    if (step.kind === 'refused') {
      this.#ceilings.touch(ticket.tenant);
      this.#places.leave(ticket);
      // It had to make room for another, and has left before it could be told.
      entry?.subscriber.error(refusedError(step.refusal, entry.request.model, 'queue'));
      return;
    }
    // Who leaves is taken out of the queue, and granted nothing any more.
    this.#grant(step.grant, ticket, entry as Entry);
  }

  #grant(grant: AdmissionGrant, ticket: AdmissionTicket, entry: Entry): void {
    const { subscriber, request, askedAtMs } = entry;
    const target = this.#targets.at(grant.target);
    const told = this.#places.waiterOf(ticket)?.told;
    const credit = this.#places.take(ticket, target);
    this.#ceilings.touch(ticket.tenant);
    if (credit) credit.onCooldown = request.onCooldown;
    let handedOver = false;
    const heard: AdmissionRequest = {
      ...request,
      onCooldown: credit ? undefined : request.onCooldown,
      // What the breaker refuses, or nobody waits for any more, was granted to nobody.
      onSettled: (settlement) => {
        if (handedOver) request.onSettled?.(settlement);
      },
    };
    const local = new LocalAdmitted(grant, heard, this.clock.now() - askedAtMs, this);
    const admitted = new SharedAdmitted(local, credit?.grant, () => {
      this.#ceilings.touch(ticket.tenant);
      this.serve();
    });
    let asked = false;
    const { callId, model, tenant, priority, conversation, onFact } = request;
    const asking = target.breaker.acquire({ callId, model, tenant, priority, conversation, onFact }).subscribe({
      next: (pass) => {
        asked = true;
        admitted.passes(pass);
        // A listener may have unsubscribed it.
        if (subscriber.closed) {
          admitted.release(DROPPED_UNSENT);
          return;
        }
        handedOver = true;
        subscriber.next(admitted);
        subscriber.complete();
      },
      error: (error: unknown) => {
        asked = true;
        admitted.release(DROPPED_UNSENT);
        if (!subscriber.closed) this.#shut(target, ticket, { ...entry, told }, error);
      },
    });
    subscriber.add(() => {
      asking.unsubscribe();
      if (!asked) admitted.release(DROPPED_UNSENT);
    });
  }

  /** The breaker of a deployment has refused: another one is asked, if there is one. */
  #shut(
    target: SharedTarget,
    ticket: AdmissionTicket,
    { subscriber, request, askedAtMs, told }: Entry & { readonly told: boolean | undefined },
    thrown: unknown,
  ): void {
    const error = isSluiceError(thrown) ? thrown : unavailable('ERROR', request.model, 'queue');
    const nowMs = this.clock.now();
    const others = this.targetsOf(ticket).some((other) => other !== target && other.target.unavailableMs(nowMs) === 0);
    if (!others || error.code !== 'circuit_open') {
      subscriber.error(error.with({ model: request.model }));
      return;
    }
    target.rest(Math.min(LONGEST_REST_MS, error.retryAfterMs ?? LONGEST_REST_MS));
    this.#enter(subscriber, request, askedAtMs, told);
  }

  #leave(ticket: AdmissionTicket): void {
    // Not there once it was granted: then it belongs to the receiver.
    if (this.#forget(ticket)) this.serve();
  }

  #forget(ticket: AdmissionTicket): boolean {
    if (!this.#entries.delete(ticket)) return false;
    this.#places.leave(ticket);
    this.machine.cancel(ticket);
    this.#ceilings.touch(ticket.tenant);
    return true;
  }
}

function unavailable(reason: string, model: string, stage: 'entry' | 'queue'): SluiceError {
  return new SluiceError('limiter_unavailable', `the shared store is lost: ${reason}`, { model, while: stage });
}
