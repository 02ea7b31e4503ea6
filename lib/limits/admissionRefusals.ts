import type { Cost } from '../core/ports.ts';
import type { AdmissionPool } from './AdmissionPool.ts';
import type { AdmissionTenant } from './AdmissionTenant.ts';
import type { WaitBound } from './waitBound.ts';

export interface AdmissionRefusal {
  readonly kind: 'refused';
  readonly code: 'circuit_open' | 'cost_too_large' | 'queue_full' | 'queue_timeout' | 'timeout_deadline';
  /** Finite, above 0; absent where waiting cannot help. */
  readonly retryAfterMs: number | undefined;
  /** The bound that was met: tokens or requests for `cost_too_large`, requests for `queue_full`, else milliseconds. */
  readonly limit: number | undefined;
  readonly requested: number | undefined;
  readonly unit: 'requests' | 'tokens' | 'ms';
}

/** Where waiting cannot help, at no deployment. */
export function tooLargeFor(cost: Cost, pool: AdmissionPool, tenant: AdmissionTenant): AdmissionRefusal | undefined {
  for (const unit of ['requests', 'tokens'] as const) {
    const most = Math.max(...pool.targets.map((target) => target.most(unit)));
    const limit = Math.min(most, tenant.layer?.[unit]?.perMinute ?? Infinity);
    if (cost[unit] <= limit) continue;
    return { kind: 'refused', code: 'cost_too_large', retryAfterMs: undefined, limit, requested: cost[unit], unit };
  }
  return undefined;
}

/** No deployment can be asked. */
export function unavailable(retryAfterMs: number): AdmissionRefusal {
  return { kind: 'refused', code: 'circuit_open', retryAfterMs, limit: undefined, requested: undefined, unit: 'ms' };
}

/** The wait has come to its bound, or cannot end within it. */
export function refusedBy({ code, limitMs }: WaitBound, retryAfterMs: number): AdmissionRefusal {
  return { kind: 'refused', code, retryAfterMs, limit: Math.max(0, limitMs), requested: undefined, unit: 'ms' };
}

export function queueFull(limit: number, retryAfterMs: number): AdmissionRefusal {
  return { kind: 'refused', code: 'queue_full', retryAfterMs, limit, requested: undefined, unit: 'requests' };
}
