import type { AdmissionSnapshot, DeploymentSnapshot } from '../core/ports.ts';
import type { Admission } from '../limits/Admission.ts';
import type { AdmissionTarget } from '../limits/AdmissionTarget.ts';

/** `shown`: what is known better elsewhere of a deployment. */
export function admissionSnapshot(
  machine: Admission,
  nowMs: number,
  shown?: (target: AdmissionTarget) => Partial<DeploymentSnapshot>,
): AdmissionSnapshot {
  const models = [...machine.pools].map(([model, { waiting, targets }]) => {
    return [
      model,
      { waiting, deployments: targets.map((target) => ({ ...deploymentOf(target, nowMs), ...shown?.(target) })) },
    ] as const;
  });
  const priorities = machine.rules.levels.map(
    ({ name }, i) => [name, { inFlight: machine.levels.inFlight[i] ?? 0 }] as const,
  );
  return {
    inFlight: machine.inFlight,
    waiting: machine.waiting,
    models: Object.fromEntries(models),
    tenants: machine.tenants.snapshot(),
    priorities: Object.fromEntries(priorities),
  };
}

function deploymentOf(target: AdmissionTarget, nowMs: number): DeploymentSnapshot {
  const { name, client, model, inFlight, limit, breaker, cooldown } = target;
  return {
    name,
    client,
    model,
    inFlight,
    limit,
    cooldownMs: cooldown.certainMs(nowMs),
    unavailableMs: target.unavailableMs(nowMs),
    breaker: breaker.snapshot(),
    layers: target.snapshotLayers(nowMs),
  };
}
