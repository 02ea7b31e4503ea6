import type { Demand } from './attempt.ts';
import type { AttemptSink } from './AttemptSink.ts';
import type { Home } from './CallObserver.ts';
import type { ContentListener } from './content.ts';
import type { AttemptRecord, ErrorCode } from './errors.ts';
import type { EventListener, SluiceEvent, SluiceFact } from './events.ts';
import type { RetryBudgetPort } from './ports.ts';

/** Shared by all frames of one call. */
export interface CallState {
  readonly id: string;
  /** Attempts sent so far. */
  dispatched: number;
  /** Those of them that failed, oldest first. */
  readonly failed: AttemptRecord[];
  /** Kept for whoever observes the call; a map beside it would cost every call more. */
  observed?: unknown;
}

/** What fallbacks tell those above them, nested ones as one. */
export interface Route {
  /** Models that have been asked. */
  readonly asked: string[];
  /** Whether another model would be asked after such a failure. */
  leads(code: ErrorCode): boolean;
}

/** A listener that hears some facts only: what nobody hears is not put together. */
export interface Ear {
  /** What it throws is ignored. */
  hear(event: SluiceEvent): void;
  /** Whether it hears facts of this type, now. */
  hears(type: SluiceFact['type']): boolean;
}

export interface CallScopeChanges {
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly conversation?: string | undefined;
  readonly priority?: string | undefined;
  /** Monotonic milliseconds. The earlier of this and the frame's own deadline holds. */
  readonly deadlineAtMs?: number | undefined;
  /** How long that was from where the deadline was set, in milliseconds. */
  readonly deadlineMs?: number | undefined;
  readonly budget?: RetryBudgetPort | undefined;
  readonly route?: Route | undefined;
  /** Added to the listeners that the frame already has. */
  readonly onEvent?: EventListener | undefined;
  /** Added to them too. */
  readonly ear?: Ear | undefined;
  /** Added to the sinks that the frame already has. */
  readonly sink?: AttemptSink | undefined;
  /** The consumer's pace: sources await it before each read of a body, unless they were given one of their own. */
  readonly demand?: Demand | undefined;
  /** Runs the attempt inside something, such as a trace context; wraps what the frame already has. */
  readonly around?: (<R>(work: () => R) => R) | undefined;
  /** Where the call was started from, such as a trace context. What others set off, such as a grant, goes on in there. */
  readonly home?: Home | undefined;
  /** Hears what attempts ask and answer. Without it, nobody copies any of it. */
  readonly onContent?: ContentListener | undefined;
}
