import type { Observable } from 'rxjs';
import type { CallScope } from '../core/CallScope.ts';
import { invalidOption } from '../core/errors.ts';
import type { EventListener, SluiceFact } from '../core/events.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Admitted, AdmissionPort, Cost } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import type { AdmitOptions } from './AdmitOptions.ts';
import type { Hold, OnQueued } from './Hold.ts';

/** What an attempt is granted by an admission, which also chooses where it goes. A class, as a client makes one for each call. */
export class AdmissionHold implements Hold<Admitted> {
  readonly runtime: Runtime;
  readonly where = 'quota';
  readonly onEvent: EventListener | undefined;
  readonly untilClosed = true;
  readonly #admission: AdmissionPort;
  readonly #options: Omit<AdmitOptions, 'cost'>;
  readonly #cost: Cost | (() => Cost);

  /** Options and cost have been checked. */
  constructor(admission: AdmissionPort, options: Omit<AdmitOptions, 'cost'>, cost: Cost | (() => Cost)) {
    this.runtime = options.runtime ?? systemRuntime;
    this.onEvent = options.onEvent;
    this.#admission = admission;
    this.#options = options;
    this.#cost = cost;
  }

  acquire(scope: CallScope, onQueued: OnQueued): Observable<Admitted> {
    const { model = scope.model, tenant = scope.tenant, priority = scope.priority, maxWaitMs } = this.#options;
    const cost = this.#cost;
    if (model === undefined) throw invalidOption('model', 'named by the options or the call', model);
    const report = (fact: SluiceFact): void => scope.report(this.runtime.clock.now(), fact);
    return this.#admission.acquire({
      cost: typeof cost === 'function' ? cost() : cost,
      callId: scope.callId,
      model,
      tenant,
      priority,
      conversation: scope.conversation,
      maxWaitMs,
      deadlineAtMs: scope.deadlineAtMs,
      onQueued,
      onFact: report,
      onSettled: (settlement) => report({ type: 'settled', ...settlement }),
      onCooldown: (waitMs, reason) => report({ type: 'cooldown', waitMs, reason }),
    });
  }

  waitedMs(admitted: Admitted): number {
    return admitted.waitedMs;
  }

  onLost(admitted: Admitted, lose: (error: unknown) => void): void {
    admitted.onRevoke(lose);
  }

  dispatched(admitted: Admitted, sentFollows: boolean): void {
    admitted.dispatched(sentFollows);
  }

  sent(admitted: Admitted): void {
    admitted.sent?.();
  }

  responded(admitted: Admitted, status: number): void {
    admitted.responded(status);
  }

  hints(admitted: Admitted, hints: RateLimitHints): void {
    admitted.observe(hints);
  }

  usage(admitted: Admitted, usage: Usage): void {
    admitted.settle(usage);
  }

  firstContent(admitted: Admitted): void {
    admitted.firstContent();
  }

  ended(admitted: Admitted, outcome: Outcome, firstContentMs: number | undefined): void {
    admitted.end(outcome, firstContentMs);
  }

  release(admitted: Admitted, outcome: Outcome, firstContentMs: number | undefined): void {
    admitted.release(outcome, firstContentMs);
  }
}
