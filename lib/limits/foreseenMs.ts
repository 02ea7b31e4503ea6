import type { AdmissionPool } from './AdmissionPool.ts';
import { clampTo } from './AdmissionTenant.ts';
import type { AdmissionTenant } from './AdmissionTenant.ts';
import type { LayerCost } from './QuotaLayer.ts';

/** No shorter than this is the wait of a newcomer, unless others leave or give something back. */
export function foreseenMs(
  nowMs: number,
  pool: AdmissionPool,
  { name, layer }: AdmissionTenant,
  level: number,
  cost: LayerCost,
): number {
  const ahead = pool.queueOf({ level }).ahead(name, cost);
  const ownMs = layer?.waitBehindMs(nowMs, ahead, clampTo(layer, cost), true) ?? 0;
  return Math.max(ownMs, pool.foreseenMs(nowMs, ahead, cost));
}
