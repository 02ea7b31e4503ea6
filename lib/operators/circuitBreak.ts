import type { MonoTypeOperatorFunction } from 'rxjs';
import type { EventListener } from '../core/events.ts';
import type { BreakerPass, BreakerPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { holding } from './holding.ts';

export interface CircuitBreakOptions {
  /** Hears `refused` and `breaker.changed`. */
  readonly onEvent?: EventListener | undefined;
  /** Dates events, and names the call where there is no scope. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

/**
 * Refuses each subscription at once while `breaker` is open, and tells it how each of the others ended.
 *
 * ```text
 * source:  --a--b--|        closed: passed on as it is
 * source:                   open: not subscribed to
 * result:  #                circuit_open, with retryAfterMs
 * ```
 *
 * Counted is every subscription, so put it inside retry: a retry is one more attempt, and once the breaker is open the
 * rest of the retries stop. Put it outside throttle and concurrency limit: when it opens, those that it let through and
 * that still wait there, not sent yet, end with `circuit_open` and hold nothing.
 *
 * Failures: `overloaded`, `server_error`, `connection`, `timeout`, `stream_idle`, `stream_truncated`,
 * `upstream_body_invalid`; `rate_limited` if the breaker was told so. Successes: completion. Everything else (other
 * upstream errors, refusals from above, unsubscribe) is neutral: it gives a probe's place back and is evidence for
 * nothing. The first value shows that a probe is not stuck; the verdict comes with the end.
 *
 * What is shared: `breaker`, between all operators that are given it.
 *
 * Emits as an error, besides those of the source: `circuit_open`. Unsubscribe: unsubscribes from the source; neutral.
 *
 * @example
 * ```ts
 * import { chat, circuitBreak, createBreaker, retryWithJitter, text } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const openai = new OpenAI({ maxRetries: 0 });
 * const breaker = createBreaker({ name: 'gpt-5.5' });
 * chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(circuitBreak(breaker), retryWithJitter(), text())
 *   .subscribe((part) => process.stdout.write(part));
 * ```
 */
export function circuitBreak<T>(breaker: BreakerPort, options: CircuitBreakOptions = {}): MonoTypeOperatorFunction<T> {
  const { onEvent, runtime = systemRuntime } = options;
  return holding<T, BreakerPass>({
    runtime,
    onEvent,
    acquire: (scope) =>
      breaker.acquire({
        callId: scope.callId,
        model: scope.model,
        tenant: scope.tenant,
        priority: scope.priority,
        conversation: scope.conversation,
        deadlineAtMs: scope.deadlineAtMs,
        onFact: (fact) => scope.report(runtime.clock.now(), fact),
      }),
    onLost: (pass, lose) => pass.onRevoke(lose),
    dispatched: (pass) => pass.dispatched(),
    firstContent: (pass) => pass.firstContent?.(),
    release: (pass, outcome) => pass.release(outcome),
  });
}
