import type { MonoTypeOperatorFunction } from 'rxjs';
import { nonEmpty, zeroOrInfinity } from '../core/checks.ts';
import type { EventListener } from '../core/events.ts';
import type { Grant, QuotaPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { costOption } from './costOption.ts';
import type { CostOption } from './costOption.ts';
import { holding } from './holding.ts';

export type { CostOption } from './costOption.ts';

export interface ThrottleByBucketOptions {
  /**
   * What one attempt takes. A number is its tokens, named by you; an estimate, such as `estimateCost(request)`, is a
   * guess: a guess above one minute's rate is clamped, a named cost is refused. A function is asked for each
   * subscription. Default: one request and no tokens.
   */
  readonly cost?: CostOption | (() => CostOption) | undefined;
  /** Who pays, where the quota has layers for tenants. Default: the call's own tenant. */
  readonly tenant?: string | undefined;
  /** How urgent it is, where the quota tells. Default: the call's own priority. */
  readonly priority?: string | undefined;
  /** Longest wait. 0 or more, or `Infinity`. Default: the quota's own bound. */
  readonly maxWaitMs?: number | undefined;
  /** Hears `queued`, `granted`, `settled`, `cooldown` and `refused`. */
  readonly onEvent?: EventListener | undefined;
  /** Gives the time for events, and for calls that have no scope. Default: `systemRuntime`. */
  readonly runtime?: Runtime | undefined;
}

/**
 * Subscribes to the source once `quota` has granted its cost.
 *
 * ```text
 * quota:   a burst of 2, then one every 5 ms
 * sources: (a|)  (b|)  (c|)     subscribed to at 0
 * result:  (a|)
 *          (b|)
 *          -----(c|)
 * ```
 *
 * It guards the subscription, not the values: a retry further down passes through it again and takes its cost again. It
 * belongs next to the source, below everything else that may wait: what waits after the grant uses up quota that it then
 * does not need in time.
 *
 * The quota belongs to the caller; all subscriptions of all pipelines that are given it share it. What the source says
 * of limits, waits and usage reaches the quota by itself.
 *
 * - **End of the source:** what is given back depends on how it ended; see the quota's `settle` and `refundOn`.
 * - **Unsubscribe:** while waiting, leaves the line and takes nothing; before the request is sent, gives all back;
 *   afterwards what was taken stays taken.
 *
 * Emits as errors, before the source was subscribed to: `cost_too_large`, `queue_full`, `queue_timeout`,
 * `timeout_deadline` (the call's deadline, or the wait until then), `limiter_unavailable` where the quota is shared
 * between processes; and what a `cost` function throws.
 *
 * @param quota - What to draw on: see {@link createQuota}.
 * @throws SluiceError `invalid_option` for a wrong option.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, createQuota, estimateCost, retryWithJitter, text, throttleByBucket } from 'sluice';
 *
 * const quota = createQuota({ requestsPerMinute: 3000, burstRequests: 50, tokensPerMinute: 1_000_000 });
 * const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }] };
 *
 * chat(new OpenAI(), request)
 *   .pipe(throttleByBucket(quota, { cost: estimateCost(request) }), retryWithJitter(), text())
 *   .subscribe((piece) => process.stdout.write(piece));
 * ```
 */
export function throttleByBucket<T>(
  quota: QuotaPort,
  options: ThrottleByBucketOptions = {},
): MonoTypeOperatorFunction<T> {
  const { cost = 0, tenant, priority, maxWaitMs, onEvent, runtime = systemRuntime } = options;
  const checked = costOption(cost);
  if (maxWaitMs !== undefined) zeroOrInfinity('maxWaitMs', maxWaitMs);
  if (tenant !== undefined) nonEmpty('tenant', tenant);
  if (priority !== undefined) nonEmpty('priority', priority);

  return holding<T, Grant>({
    runtime,
    where: 'quota',
    onEvent,
    acquire(scope, onQueued) {
      return quota.acquire({
        cost: typeof checked === 'function' ? checked() : checked,
        callId: scope.callId,
        model: scope.model,
        tenant: tenant ?? scope.tenant,
        priority: priority ?? scope.priority,
        conversation: scope.conversation,
        maxWaitMs,
        deadlineAtMs: scope.deadlineAtMs,
        onQueued,
        onSettled: (settlement) => scope.report(runtime.clock.now(), { type: 'settled', ...settlement }),
        onCooldown: (waitMs, reason) => scope.report(runtime.clock.now(), { type: 'cooldown', waitMs, reason }),
      });
    },
    waitedMs: (grant) => grant.waitedMs,
    dispatched: (grant, sentFollows) => grant.dispatched(sentFollows),
    sent: (grant) => grant.sent?.(),
    responded: (grant, status) => grant.responded?.(status),
    hints: (grant, hints) => grant.observe(hints),
    usage: (grant, usage) => grant.settle(usage),
    release: (grant, outcome) => grant.release(outcome),
  });
}
