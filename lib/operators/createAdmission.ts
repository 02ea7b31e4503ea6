import { oneOf } from '../core/checks.ts';
import type { SluiceFact } from '../core/events.ts';
import type { AdmissionPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { Admission } from '../limits/Admission.ts';
import type { AdmissionOptions } from '../limits/AdmissionOptions.ts';
import type { AdmissionTarget } from '../limits/AdmissionTarget.ts';
import { AdmissionDesk } from './AdmissionDesk.ts';
import { admissionSnapshot } from './admissionSnapshot.ts';

export interface CreateAdmissionOptions extends AdmissionOptions {
  /** Hears `breaker.changed` and `limit.changed`, after the change. What it throws is ignored. */
  readonly onFact?: ((fact: SluiceFact) => void) | undefined;
}

/** The admission of this process. */
export interface LocalAdmission extends AdmissionPort {
  /** Tenants that something is remembered of. */
  readonly remembered: number;
  /**
   * Takes other options, and goes on from where everything is. Those who wait keep their places; the new limits hold for
   * them at once, and who has room by them goes in the same tick. What is in flight is given back as if it had been granted
   * under the new ones.
   *
   * Kept: levels of buckets as far as they fit, and their debts; cooldowns; breakers; adaptive limits, brought between their
   * new bounds; what was learned of a rate, where the rates that are configured for that deployment are the same. A deployment is
   * the same one if its client and its name there are. Who waits under a priority that is gone gets the same place in the
   * new order, or the last.
   *
   * @throws SluiceError `invalid_option`; then nothing has changed.
   */
  reload(options: AdmissionOptions): void;
  /**
   * Leaves a deployment alone for so long, in milliseconds: its account has run out. A `quota_exhausted` failure does that
   * by itself.
   * @throws SluiceError `invalid_option` if the model has no deployment of that name
   */
  exhausted(model: string, deployment: string, forMs: number): void;
}

/**
 * Who may be sent when, in one step: breaker, cooldown, every layer of the quota (account, model, deployment, tenant) and
 * the slots of deployment, tenant, priority and of all together are granted at once, in the tick in which the attempt is
 * sent, or not at all. Give it to {@link admit} or {@link admitTo}.
 *
 * Takes the parts of a policy that concern it, so a whole policy fits. Fair by tokens between tenants, by their `weight`;
 * priorities with ageing; `reservedInFlight` is lent while it is not wanted. Of several deployments the least loaded is
 * taken, as the attempt is sent. One timer while somebody waits, none otherwise.
 *
 * `acquire` emits as errors: `circuit_open` where no deployment of the model can be asked, also for those who wait;
 * `cost_too_large` for an explicit cost above one minute's rate; `queue_full`; `queue_timeout` and `timeout_deadline`, on
 * entry if the wait is known not to fit; all but `cost_too_large` with `retryAfterMs`. `invalid_option` for a priority that
 * is not in the order, an empty name, and a cost that is not finite and 0 or more.
 *
 * @param options - See {@link AdmissionOptions} for units and defaults.
 * @throws SluiceError `invalid_option` for a wrong option.
 *
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { admit, createAdmission } from 'sluice';
 *
 * const admission = createAdmission({
 *   maxInFlight: 200,
 *   quota: { account: { requestsPerMinute: 600, burstRequests: 8 } },
 *   models: { 'gpt-5.5': { breaker: { openMs: 15_000 }, concurrency: { initial: 16, max: 64 } } },
 *   tenants: { default: { maxInFlight: 12 }, acme: { reservedInFlight: 20 } },
 * });
 * of('answer')
 *   .pipe(admit(admission, { model: 'gpt-5.5', tenant: 'acme' }))
 *   .subscribe(console.log);
 * ```
 */
export function createAdmission(
  options: CreateAdmissionOptions = {},
  runtime: Runtime = systemRuntime,
): LocalAdmission {
  const machine = new Admission(options, runtime.clock, runtime.random);
  const desk = new AdmissionDesk(machine, runtime, options.onFact);
  return {
    acquire: (request) => desk.acquire(request),
    get remembered() {
      return machine.tenants.size;
    },
    snapshot: () => admissionSnapshot(machine, runtime.clock.now()),
    reload(next) {
      machine.reload(next);
      desk.serve();
    },
    exhausted(model, deployment, forMs) {
      const { targets } = machine.poolOf(model);
      const names = targets.map(({ name }) => name);
      oneOf('deployment', deployment, names);
      (targets[names.indexOf(deployment)] as AdmissionTarget).exhausted(runtime.clock.now() + forMs);
      desk.serve();
    },
  };
}
