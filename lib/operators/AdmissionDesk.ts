import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { SluiceFact } from '../core/events.ts';
import { DROPPED_UNSENT } from '../core/outcome.ts';
import type { Admitted, AdmissionRequest } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Admission } from '../limits/Admission.ts';
import type { AdmissionStep } from '../limits/AdmissionStep.ts';
import { AdmissionGrant } from '../limits/AdmissionGrant.ts';
import type { TargetChange } from '../limits/AdmissionGrant.ts';
import type { AdmissionTicket } from '../limits/AdmissionPool.ts';
import { openError, refusedError } from './admissionErrors.ts';
import { LocalAdmitted } from './LocalAdmitted.ts';
import { ServeLoop } from './ServeLoop.ts';

interface Entry {
  readonly subscriber: Subscriber<Admitted>;
  readonly request: AdmissionRequest;
}

/**
 * Hands out what an {@link Admission} grants. One timer, for the next thing that the machine will have to do, and none
 * while nobody waits.
 */
export class AdmissionDesk {
  readonly runtime: Runtime;
  readonly machine: Admission;
  readonly #onFact: ((fact: SluiceFact) => void) | undefined;
  /** In line, and not yet told that they wait. */
  // Stryker disable next-line ArrayDeclaration: what is no ticket is told nothing
  #untold: AdmissionTicket[] = [];
  readonly #loop: ServeLoop;

  constructor(machine: Admission, runtime: Runtime, onFact: ((fact: SluiceFact) => void) | undefined) {
    this.machine = machine;
    this.runtime = runtime;
    this.#loop = new ServeLoop(runtime, this.#step);
    this.#onFact = onFact;
  }

  acquire(request: AdmissionRequest): Observable<Admitted> {
    // Hand-written: the place in line must be taken in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<Admitted>((subscriber) => {
      if (subscriber.closed) return;
      const { waiting } = this.machine;
      // What is handed out comes one after the other, however deep the one that asks is in the call of another.
      const ticket = this.#loop.isRunning ? this.machine.ask(request) : this.machine.admit(request);
      if (ticket instanceof AdmissionGrant) {
        this.#loop.run(() => this.#hand(this.#admitted(ticket, request, 0), subscriber));
        return;
      }
      if (ticket.kind === 'refused') {
        subscriber.error(refusedError(ticket, request.model, 'entry'));
        return;
      }
      ticket.owner = { subscriber, request } satisfies Entry;
      subscriber.add(() => this.#leave(ticket));
      // Whoever is behind others of its kind changes nothing. Where it took the place of another, that one is to be told.
      if (this.machine.waiting > waiting && !this.#counts(ticket)) {
        request.onQueued?.(ticket.position, ticket.foreseenMs || undefined);
        return;
      }
      this.#untold.push(ticket);
      this.serve();
    });
  }

  /** Grants and refuses what can be by now. Call it after everything that may have changed what is possible. */
  serve(): void {
    this.#loop.run();
  }

  /** Tells of what has changed, and takes back what must not be sent. */
  tell(changes: readonly TargetChange[], request?: AdmissionRequest): void {
    for (const { target, breaker } of changes) {
      for (const { from, to, reason } of breaker) {
        this.report({ type: 'breaker.changed', breaker: target.name, from, to, reason }, request);
      }
    }
    for (const { target, revoked } of changes) {
      const retryAfterMs = Math.max(1, target.breaker.openMs);
      for (const grant of revoked) heldBy(grant).revoke(openError(target.name, retryAfterMs));
    }
  }

  report(fact: SluiceFact, request?: AdmissionRequest): void {
    for (const listener of [this.#onFact, request?.onFact]) {
      try {
        // Stryker disable next-line OptionalChaining: it would be caught
        listener?.(fact);
      } catch {
        // A listener's fault is its own.
      }
    }
  }

  /** Whether the next thing to do may have to do with one who has just come. */
  #counts(ticket: AdmissionTicket): boolean {
    const { pool } = ticket;
    return this.#loop.isDue || pool.queueOf(ticket).leads(ticket) || pool.firstToExpire() === ticket;
  }

  readonly #step = (): number | undefined => {
    const step = this.machine.next();
    if (step.kind !== 'wait') {
      this.#handOut(step);
      return undefined;
    }
    const untold = this.#untold;
    if (untold.length === 0) return step.untilMs;
    this.#untold = [];
    for (const ticket of untold) {
      entryOf(ticket)?.request.onQueued?.(ticket.position, ticket.foreseenMs || undefined);
    }
    return undefined;
  };

  #handOut(step: Exclude<AdmissionStep, { kind: 'wait' }>): void {
    if (step.kind === 'changed') {
      this.tell(step.changes);
      return;
    }
    const { ticket } = step;
    const entry = entryOf(ticket);
    ticket.owner = undefined;
    if (step.kind === 'refused') {
      this.tell(step.changes, entry?.request);
      // It had to make room for another, and has left before it could be told.
      entry?.subscriber.error(refusedError(step.refusal, entry.request.model, 'queue'));
      return;
    }
    // Who leaves is taken out of the queue, and granted nothing any more.
    const { request, subscriber } = entry as Entry;
    const admitted = this.#admitted(step.grant, request, this.runtime.clock.now() - ticket.enqueuedAtMs);
    this.tell(step.changes, request);
    // A listener may have unsubscribed it.
    if (subscriber.closed) {
      admitted.release(DROPPED_UNSENT);
      return;
    }
    this.#hand(admitted, subscriber);
  }

  #admitted(grant: AdmissionGrant, request: AdmissionRequest, waitedMs: number): LocalAdmitted {
    const admitted = new LocalAdmitted(grant, request, waitedMs, this);
    grant.owner = admitted;
    return admitted;
  }

  #hand(admitted: Admitted, subscriber: Subscriber<Admitted>): void {
    subscriber.next(admitted);
    subscriber.complete();
  }

  #leave(ticket: AdmissionTicket): void {
    // Not there once it was granted: then it belongs to the receiver.
    // Stryker disable next-line ConditionalExpression: who is in no line leaves none
    if (entryOf(ticket) === undefined) return;
    ticket.owner = undefined;
    this.machine.cancel(ticket);
    this.serve();
  }
}

function entryOf(ticket: AdmissionTicket): Entry | undefined {
  return ticket.owner as Entry | undefined;
}

function heldBy(grant: AdmissionGrant): LocalAdmitted {
  return grant.owner as LocalAdmitted;
}
