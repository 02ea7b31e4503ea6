import type { MonoTypeOperatorFunction } from 'rxjs';
import { zeroOrInfinity } from '../core/checks.ts';
import type { EventListener } from '../core/events.ts';
import type { ConcurrencyPort, Permit } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { holding } from './holding.ts';

export interface LimitConcurrencyOptions {
  /** Longest wait for a slot. 0 or more, or `Infinity`; 0 refuses rather than waits. Default: that of `limit`. */
  readonly maxWaitMs?: number | undefined;
  /** Who asks, for limits that tell tenants apart. Default: the call's. */
  readonly tenant?: string | undefined;
  /** How urgent it is, for limits that tell priorities apart. Default: the call's. */
  readonly priority?: string | undefined;
  /** Hears `queued`, `granted`, `refused` and `limit.changed`. */
  readonly onEvent?: EventListener | undefined;
  /** Dates events, times the release, and names the call where there is no scope. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

/**
 * Subscribes to the source once `limit` has a slot free, and keeps the slot for as long as anything of it runs.
 *
 * ```text
 * limit 1
 * first:   (s)--a--|
 * second:  -(s)                  subscribed to at 1, held back
 * result:  --------b--|          its source is subscribed to as the first ends
 * ```
 *
 * The place in line is taken in the tick of the subscription. A source that tells the scope when its request leaves and
 * when its body reader has settled, as those of this library do, keeps the slot until then, but no longer than a second
 * after its end: an aborted request may still occupy the provider. Any other source keeps it until its end.
 *
 * An adaptive limit learns from rejections (`rate_limited`, `overloaded`), successes and the time from dispatch to the
 * first value. An unsubscribe and every other error teach it nothing.
 *
 * What is shared: `limit`, between all operators that are given it.
 *
 * Emits as errors, besides those of the source, each with `retryAfterMs`:
 * - `queue_full`: as many wait as may;
 * - `queue_timeout`: no slot came free within `maxWaitMs`;
 * - `timeout_deadline`: the call's deadline came first.
 *
 * Unsubscribe: one that waits leaves the line; one that runs unsubscribes from the source.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import { chat, createConcurrencyLimit, limitConcurrency, text } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const openai = new OpenAI({ maxRetries: 0 });
 * const limit = createConcurrencyLimit({ initial: 16, min: 4, max: 64 });
 * chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(limitConcurrency(limit), text())
 *   .subscribe((part) => process.stdout.write(part));
 * ```
 */
export function limitConcurrency<T>(
  limit: ConcurrencyPort,
  options: LimitConcurrencyOptions = {},
): MonoTypeOperatorFunction<T> {
  const { tenant, priority, onEvent, runtime = systemRuntime } = options;
  const maxWaitMs = options.maxWaitMs === undefined ? undefined : zeroOrInfinity('maxWaitMs', options.maxWaitMs);
  return holding<T, Permit>({
    runtime,
    where: 'concurrency',
    onEvent,
    untilClosed: true,
    acquire: (scope, onQueued) =>
      limit.acquire({
        callId: scope.callId,
        model: scope.model,
        tenant: tenant ?? scope.tenant,
        priority: priority ?? scope.priority,
        conversation: scope.conversation,
        deadlineAtMs: scope.deadlineAtMs,
        maxWaitMs,
        onQueued,
        onFact: (fact) => scope.report(runtime.clock.now(), fact),
      }),
    waitedMs: (permit) => permit.waitedMs,
    release: (permit, outcome, firstContentMs) => permit.release(outcome, firstContentMs),
  });
}
