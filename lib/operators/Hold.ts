import type { Observable } from 'rxjs';
import type { CallScope } from '../core/CallScope.ts';
import type { EventListener } from '../core/events.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Source } from './scoped.ts';

export type OnQueued = (position: number, waitMs: number | undefined) => void;

/** How an operator takes hold of something for as long as one subscription to its source runs. */
export interface Hold<H> {
  readonly runtime: Runtime;
  /** Names the gate in events; without it, it reports none. */
  readonly where?: 'lane' | 'quota' | 'concurrency' | undefined;
  readonly onEvent?: EventListener | undefined;
  /** What everything above belongs to, where this says so. */
  readonly conversation?: string | undefined;
  /** By the rules of the ports: one value, or a refusal. */
  acquire(scope: CallScope, onQueued: OnQueued): Observable<H>;
  /** What `H` says of its wait, for events. */
  waitedMs?(held: H): number;
  /** Called once, when the attempt is sent. */
  dispatched?(held: H, sentFollows: boolean): void;
  /** What the source says of the attempt, as in a sink. */
  sent?(held: H): void;
  responded?(held: H, status: number): void;
  hints?(held: H, hints: RateLimitHints): void;
  usage?(held: H, usage: Usage): void;
  /** Called once, at the first value. */
  firstContent?(held: H): void;
  /** Gets a function that ends the subscription with an error: the hold was lost. */
  onLost?(held: H, lose: (error: unknown) => void): void;
  /** The source as it is to be subscribed to. */
  guard?<T>(held: H, source: Source<T>): Source<T>;
  /** Called once, when the attempt has ended, before `release`, which may have to wait until nothing of it runs. */
  ended?(held: H, outcome: Outcome, firstContentMs: number | undefined): void;
  /** Called exactly once for each `H`. `firstContentMs` counts from dispatch to the first value. */
  release(held: H, outcome: Outcome, firstContentMs: number | undefined): void;
  /** Keep the hold until nothing of the attempt runs any more, but no longer than a second. */
  readonly untilClosed?: boolean | undefined;
  /** Release before the end of the source is passed on, so that a retry finds it released. Default: true. */
  readonly releaseFirst?: boolean | undefined;
}
