import type { Runtime } from '../../core/runtime.ts';
import type { QuotaCall, QuotaOp, QuotaReply } from './QuotaCall.ts';
import type { QuotaPlan } from './quotaRules.ts';
import { shareOf } from './quotaRules.ts';
import type { Script } from './Script.ts';
import { SharedQuota } from './SharedQuota.ts';
import type { StoreLink } from './StoreLink.ts';

/** Who decides for a quota. */
export interface QuotaWay {
  /** How long before its turn one asks, so that the answer is there by then. */
  readonly leadMs: number;
  decide(call: QuotaCall): QuotaReply | Promise<QuotaReply | undefined>;
}

/** The server, for all processes. */
export function serverWay(link: StoreLink, script: Script, name: string, plan: QuotaPlan): QuotaWay {
  // One hash tag: the keys of a quota are on one node of a cluster.
  const keys = ['state', 'line', 'entries', 'members', 'leases'].map((part) => `${name}:${part}`);
  const rules = JSON.stringify(plan.shared);
  return {
    leadMs: plan.shared.aheadUs / 2000,
    async decide(call) {
      const reply = await link.run(script, keys, [rules, JSON.stringify(call)]);
      return reply === undefined ? undefined : (numbers(reply) as unknown as QuotaReply);
    },
  };
}

/**
 * This process by itself, with its share of the quota, beginning with nothing. Where a share holds less than one request,
 * processes begin at different times: together they would send more at once than the quota holds.
 */
export function shareWay(plan: QuotaPlan, processes: number, runtime: Runtime): QuotaWay {
  const rules = shareOf(plan.shared, processes);
  const nowUs = (): number => Math.floor(runtime.clock.now() * 1000);
  const machine = new SharedQuota(rules, nowUs(), 1);
  let missingUs = 0;
  for (const { unit, perMinute, sizeUs } of rules.buckets) {
    if (unit === 'requests') missingUs = Math.max(missingUs, 60_000_000 / perMinute - sizeUs);
  }
  const apart: QuotaOp = ['returned', Math.ceil(missingUs * (1 + runtime.random()))];
  const begin = { member: '', process: '', known: 0, waits: 0, random: 0, ops: [apart] } as const;
  machine.call(nowUs(), begin);
  return { leadMs: 0, decide: (call) => machine.call(nowUs(), call) };
}

/** Clients may be told to hand out numbers as text. */
function numbers(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(numbers) : Number(reply);
}
