import type { EventListener } from '../core/events.ts';
import type { Runtime } from '../core/runtime.ts';
import type { CostOption } from './costOption.ts';

export interface AdmitOptions {
  /** Default: the call's own model. */
  readonly model?: string | undefined;
  /** What one attempt takes, as for `throttleByBucket`. Default: one request and no tokens. */
  readonly cost?: CostOption | (() => CostOption) | undefined;
  /** Who pays. Default: the call's own tenant. */
  readonly tenant?: string | undefined;
  /** How urgent it is. Default: the call's own priority, or else the most urgent. */
  readonly priority?: string | undefined;
  /** Longest wait. 0 or more, or `Infinity`. Default: the admission's own bound. */
  readonly maxWaitMs?: number | undefined;
  /** Hears `queued`, `granted`, `settled`, `cooldown`, `breaker.changed`, `limit.changed` and `refused`. */
  readonly onEvent?: EventListener | undefined;
  /** Dates events, times the release, and names the call where there is no scope. Default: `systemRuntime`. */
  readonly runtime?: Runtime | undefined;
}
