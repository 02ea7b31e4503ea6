import { modelPolicy, tenantPolicy } from '../../../lib/policy/modelPolicy.ts';
import type { AttemptTrace } from '../run/Fact.ts';
import type { Invariant } from './Invariant.ts';

/** Counted at the transport, at each attempt that is sent: a lower ceiling takes nothing back. */
export const inFlightStaysWithinLimits: Invariant = {
  name: 'inFlightStaysWithinLimits',
  promise: 'when an attempt is sent, no more are open than all together, its tenant, priority and deployment may have',
  watch(stage, fail) {
    const open = new Set<AttemptTrace>();
    const shared = stage.plan.world === 'redis';
    return {
      see(fact) {
        if (fact.kind === 'closed') open.delete(fact.attempt);
        if (fact.kind !== 'sent') return;
        const { attempt } = fact;
        open.add(attempt);
        const { policy } = stage;
        const { tenant, priority = policy.priorities.order[0] as string } = attempt.call.planned;
        const count = (same: (other: AttemptTrace) => boolean): number =>
          [...open].filter((other) => other.process === attempt.process && same(other)).length;
        const within = (what: string, limit: number, same: (other: AttemptTrace) => boolean): void => {
          if (limit === Infinity) return;
          const inFlight = count(same);
          if (inFlight > limit) fail(`${inFlight} of ${what} are in flight, of ${limit}`);
        };
        within('all', policy.maxInFlight, () => true);
        if (tenant !== undefined) {
          const { maxInFlight } = tenantPolicy(policy, tenant);
          within(`tenant ${tenant}`, maxInFlight, ({ call }) => call.planned.tenant === tenant);
        }
        within(`priority ${priority}`, policy.priorities.levels[priority]?.maxInFlight ?? Infinity, ({ call }) => {
          return (call.planned.priority ?? policy.priorities.order[0]) === priority;
        });
        const { model, client } = attempt;
        const place = modelPolicy(policy, model).deployments.find((deployment) => deployment.client === client);
        const limit = place?.concurrency.limit ?? (place?.concurrency as { readonly max?: number } | undefined)?.max;
        // A limit that adapts is one of each process.
        if (shared && place?.concurrency.limit === undefined) return;
        within(`deployment ${model} at ${client}`, limit ?? Infinity, (other) => {
          return other.model === model && other.client === client;
        });
      },
    };
  },
};
