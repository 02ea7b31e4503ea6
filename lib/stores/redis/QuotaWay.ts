import type { Runtime } from '../../core/runtime.ts';
import type { BucketRule, QuotaCall, QuotaReply, SharedQuotaRules } from './QuotaCall.ts';
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
export function serverWay(link: StoreLink, script: Script, name: string, rules: () => SharedQuotaRules): QuotaWay {
  // One hash tag: the keys of a quota are on one node of a cluster.
  const keys = ['state', 'line', 'entries', 'members', 'leases'].map((part) => `${name}:${part}`);
  return {
    get leadMs() {
      return rules().aheadUs / 2000;
    },
    async decide(call) {
      const reply = await link.run(script, keys, [JSON.stringify(rules()), JSON.stringify(call)]);
      return reply === undefined ? undefined : (numbers(reply) as unknown as QuotaReply);
    },
  };
}

/**
 * This process by itself, with its share of the quota, beginning with nothing. Where a share of one of `buckets` holds less
 * than one request, processes begin at different times: together they would send more at once than the quota holds.
 */
export function shareWay(
  rules: () => SharedQuotaRules,
  buckets: readonly BucketRule[],
  processes: number,
  runtime: Runtime,
): QuotaWay {
  const nowUs = (): number => Math.floor(runtime.clock.now() * 1000);
  const share = (rule: BucketRule): BucketRule => ({ ...rule, perMinute: rule.perMinute / processes });
  const shared = (): SharedQuotaRules => ({ ...rules(), sliceUs: 0, aheadUs: 0 });
  const machine = new SharedQuota(shared(), nowUs(), 1);
  let missingUs = 0;
  for (const { key, perMinute, sizeUs } of buckets.map(share)) {
    if (key.startsWith('r:')) missingUs = Math.max(missingUs, 60_000_000 / perMinute - sizeUs);
  }
  const alone = [Math.ceil(missingUs * (1 + runtime.random()))];
  machine.call(nowUs(), {
    member: '',
    process: '',
    known: 0,
    waits: 0,
    random: 0,
    buckets: [],
    routes: [],
    alone,
    ops: [],
  });
  return {
    leadMs: 0,
    decide: (call) => machine.call(nowUs(), { ...call, buckets: call.buckets.map(share) }, shared()),
  };
}

/** Clients may be told to hand out numbers as text. */
function numbers(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(numbers) : Number(reply);
}
