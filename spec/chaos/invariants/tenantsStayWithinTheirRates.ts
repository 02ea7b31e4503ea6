import { ProviderBucket } from '../../../lib/emulator/model/ProviderBucket.ts';
import { tenantPolicy } from '../../../lib/policy/modelPolicy.ts';
import type { TenantPolicy } from '../../../lib/index.ts';
import type { AttemptTrace } from '../run/Fact.ts';
import type { Invariant } from './Invariant.ts';

/** A bucket for each, at the transport. It shares no code with the ones that are watched. */
export const tenantsStayWithinTheirRates: Invariant = {
  name: 'tenantsStayWithinTheirRates',
  promise: 'no tenant sends more requests than its rate allows',
  watch(stage, fail) {
    const buckets = new Map<string, ProviderBucket>();
    const taken = new Map<AttemptTrace, ProviderBucket>();
    const rateOf = ({ requestsPerMinute = 0, burstRequests = 1 }: TenantPolicy) => ({
      perMinute: requestsPerMinute,
      burst: burstRequests,
      noiseShare: 0,
    });
    // The level is in the store, and may be lost there.
    if (stage.plan.world === 'redis') return {};
    return {
      see(fact) {
        if (fact.kind === 'reloaded') {
          for (const [tenant, bucket] of buckets) {
            const rules = tenantPolicy(stage.policy, tenant);
            if (rules.requestsPerMinute === undefined) buckets.delete(tenant);
            else bucket.change(rateOf(rules), stage.nowMs());
          }
        }
        // Nothing has come back, so it may never have arrived: then it is given back.
        if (fact.kind === 'told' && fact.event.type === 'attempt.ended') {
          const attempt = fact.call?.attempts[fact.event.attempt - 1];
          const { code, status } = fact.event;
          const bucket = attempt && taken.get(attempt);
          if (bucket && code === 'connection' && status === undefined) bucket.giveBack(1, stage.nowMs());
        }
        if (fact.kind !== 'sent') return;
        const { attempt } = fact;
        const { tenant } = attempt.call.planned;
        if (tenant === undefined) return;
        const rules = tenantPolicy(stage.policy, tenant);
        if (rules.requestsPerMinute === undefined) return;
        const nowMs = stage.nowMs();
        let bucket = buckets.get(tenant);
        if (bucket === undefined) buckets.set(tenant, (bucket = new ProviderBucket(rateOf(rules), nowMs)));
        taken.set(attempt, bucket);
        if (!bucket.has(1, nowMs)) {
          fail(
            `${tenant} sends with ${bucket.level(nowMs).toFixed(3)} requests left of ${rules.requestsPerMinute} a minute`,
          );
        }
        bucket.take(1, nowMs);
      },
    };
  },
};
