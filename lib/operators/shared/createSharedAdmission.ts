import { oneOf } from '../../core/checks.ts';
import type { Runtime } from '../../core/runtime.ts';
import { Admission } from '../../limits/Admission.ts';
import type { AdmissionOptions } from '../../limits/AdmissionOptions.ts';
import type { LimitStore } from '../../limits/LimitStore.ts';
import { QUOTA_DEFAULTS } from '../../limits/QuotaOptions.ts';
import type { QuotaRules } from '../../limits/QuotaOptions.ts';
import { admissionSnapshot } from '../admissionSnapshot.ts';
import type { LocalAdmission } from '../createAdmission.ts';
import { localPart } from './localPart.ts';
import { SharedAdmissionDesk } from './SharedAdmissionDesk.ts';
import { SharedCeilings } from './SharedCeilings.ts';
import { SharedTargets } from './SharedTargets.ts';

/** An admission whose quota, breakers and ceilings are those of all processes that share the store. */
export interface SharedAdmission extends Omit<LocalAdmission, 'remembered'> {
  /** Gives back what the store has lent. */
  close(): void;
}

/**
 * The admission of one process among several: as `createAdmission`, but a rate is one for all of them, and so are breakers,
 * and ceilings that stand: of all calls, priorities, tenants and deployments. Each process keeps for itself: who is next
 * among its own calls, adaptive limits, `reservedInFlight`, and deployments that have run out of quota.
 *
 * @throws SluiceError `invalid_option`
 */
export function createSharedAdmission(options: AdmissionOptions, store: LimitStore, runtime: Runtime): SharedAdmission {
  new Admission(options, runtime.clock, runtime.random);
  const machine = new Admission(localPart(options), runtime.clock, runtime.random);
  const quotas = store.quotas('calls', rulesOf(options));
  const changed = (): void => desk.lent();
  const targets = new SharedTargets(machine, options, { store, quotas, clock: runtime.clock, changed });
  const ceilings = new SharedCeilings(machine, store, changed);
  const desk = new SharedAdmissionDesk(machine, targets, ceilings, store.answerMs, runtime);
  const boundWait = (next: AdmissionOptions): void => {
    desk.maxWaitMs = next.quota?.account?.maxWaitMs ?? QUOTA_DEFAULTS.maxWaitMs;
  };
  boundWait(options);

  return {
    acquire: (request) => desk.acquire(request),
    snapshot: () => admissionSnapshot(machine, runtime.clock.now(), (target) => targets.knownAt(target)?.shown() ?? {}),
    reload(next) {
      new Admission(next, runtime.clock, runtime.random);
      machine.reload(localPart(next));
      boundWait(next);
      quotas.reload(rulesOf(next));
      targets.reload(next);
      ceilings.reload();
      desk.reloaded();
    },
    exhausted(model, deployment, forMs) {
      const { targets: places } = machine.poolOf(model);
      const names = places.map(({ name }) => name);
      oneOf('deployment', deployment, names);
      places[names.indexOf(deployment)]?.exhausted(runtime.clock.now() + forMs);
      desk.serve();
    },
    close() {
      targets.close();
      ceilings.close();
    },
  };
}

/** What holds for all quotas in the store. */
function rulesOf({ quota }: AdmissionOptions): QuotaRules {
  const { settle, refundOn, arrivalMarginMs, maxWaiting, maxWaitMs, cooldown } = quota?.account ?? {};
  return { settle, refundOn, arrivalMarginMs, maxWaiting, maxWaitMs, cooldown };
}
