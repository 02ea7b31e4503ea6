import type { Demand, ServerAddress } from '../core/attempt.ts';
import { positiveOrInfinity, wholeNumber, zeroOrInfinity } from '../core/checks.ts';
import type { UpstreamErrorCode } from '../core/errors.ts';
import { invalidOption } from '../core/errors.ts';
import type { EventListener } from '../core/events.ts';
import type { RateLimitHints } from '../core/hints.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { STAGE_TIMER_DEFAULTS } from '../core/stageTimeouts.ts';
import type { StageTimeouts } from '../core/stageTimeouts.ts';
import { SSE_DEFAULTS } from '../wire/SseDecoder.ts';

export { STAGE_TIMER_DEFAULTS } from '../core/stageTimeouts.ts';
export type { StageTimeouts } from '../core/stageTimeouts.ts';

/** What a failure looked like. It stays in this process: `body` and `header` may hold private data. */
export interface FailureFacts {
  /** The class that the library would give it. */
  readonly code: UpstreamErrorCode;
  readonly status: number | undefined;
  readonly providerCode: string | undefined;
  readonly providerType: string | undefined;
  /** Short and redacted. */
  readonly message: string;
  /** A header of the failed answer, by name in any case. */
  header(name: string): string | undefined;
  /** Body of the failed answer as text, at most 64 KiB of it; `undefined` where no answer came or it was a stream. */
  readonly body: string | undefined;
}

export interface FailureVerdict {
  readonly code?: UpstreamErrorCode | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly retryable?: boolean | undefined;
}

/** Asked first about each failure of an attempt. `undefined`: the library decides. One that throws is not heard. */
export type ClassifyFailure = (facts: FailureFacts) => UpstreamErrorCode | FailureVerdict | undefined;

/** Options of every source. */
export interface AttemptOptions {
  readonly timeouts?: StageTimeouts | undefined;
  /** Added to the request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly classify?: ClassifyFailure | undefined;
  /** Observes what the provider said about limits and waiting. One that throws is ignored. */
  readonly onHints?: ((hints: RateLimitHints) => void) | undefined;
  readonly onEvent?: EventListener | undefined;
  /** Paces the reading of the body. `ready()` must not reject; if it does, reading goes on. */
  readonly demand?: Demand | undefined;
  /** Asks for token usage at the end of a chat stream, where the provider lets itself be asked. Default: true. */
  readonly includeUsage?: boolean | undefined;
  /** Largest event of a stream, in bytes. A larger one is `upstream_body_invalid`. */
  readonly maxEventBytes?: number | undefined;
  /** Most chunks without content that are held back; more are let through, and a failure after them is mid-stream. */
  readonly maxHeldChunks?: number | undefined;
  /** Most that held chunks may measure together, in characters on the wire. */
  readonly maxHeldBytes?: number | undefined;
  /** Where the request goes, for events. Default: what the client's base URL says. */
  readonly server?: ServerAddress | undefined;
  readonly runtime?: Runtime | undefined;
}

/** Defaults of the other {@link AttemptOptions}. */
export const SOURCE_DEFAULTS: {
  readonly includeUsage: boolean;
  readonly maxEventBytes: number;
  readonly maxHeldChunks: number;
  readonly maxHeldBytes: number;
} = Object.freeze({
  includeUsage: true,
  maxEventBytes: SSE_DEFAULTS.maxEventBytes,
  maxHeldChunks: 1_000,
  maxHeldBytes: 4 * 1024 * 1024,
});

/** {@link AttemptOptions} after checks, with every default but those that depend on the deadline. */
export interface AttemptSettings {
  readonly timeouts: {
    readonly headersMs: number;
    readonly firstContentMs: number | undefined;
    readonly idleMs: number;
    readonly tailMs: number;
    readonly responseMs: number | undefined;
  };
  readonly headers: Readonly<Record<string, string>>;
  readonly classify: ClassifyFailure | undefined;
  readonly onHints: ((hints: RateLimitHints) => void) | undefined;
  readonly onEvent: EventListener | undefined;
  readonly demand: Demand | undefined;
  readonly includeUsage: boolean;
  readonly maxEventBytes: number;
  readonly maxHeldChunks: number;
  readonly maxHeldBytes: number;
  readonly server: ServerAddress | undefined;
  readonly runtime: Runtime;
}

const CALLBACKS = ['classify', 'onHints', 'onEvent'] as const;
const BOUNDS = ['maxEventBytes', 'maxHeldChunks', 'maxHeldBytes'] as const;
const STAGES = ['headersMs', 'firstContentMs', 'idleMs', 'responseMs'] as const;
const NO_HEADERS: AttemptSettings['headers'] = Object.freeze({});
const USUAL_TIMEOUTS: AttemptSettings['timeouts'] = checkedTimeouts({});

/** @throws SluiceError `invalid_option` for an option out of its range. */
export function attemptSettings(
  options: AttemptOptions,
  server: ServerAddress | undefined = options.server,
): AttemptSettings {
  for (const name of CALLBACKS) {
    const given: unknown = options[name];
    if (given !== undefined && typeof given !== 'function') throw invalidOption(name, 'a function', given);
  }
  // What is not given is nothing to check: most calls give none.
  for (const name of BOUNDS) {
    if (options[name] !== undefined) wholeNumber(name, options[name] ?? SOURCE_DEFAULTS[name]);
  }
  return {
    timeouts: options.timeouts === undefined ? USUAL_TIMEOUTS : checkedTimeouts(options.timeouts),
    headers: options.headers ?? NO_HEADERS,
    classify: options.classify,
    onHints: options.onHints,
    onEvent: options.onEvent,
    demand: options.demand,
    includeUsage: options.includeUsage ?? SOURCE_DEFAULTS.includeUsage,
    maxEventBytes: options.maxEventBytes ?? SOURCE_DEFAULTS.maxEventBytes,
    maxHeldChunks: options.maxHeldChunks ?? SOURCE_DEFAULTS.maxHeldChunks,
    maxHeldBytes: options.maxHeldBytes ?? SOURCE_DEFAULTS.maxHeldBytes,
    server,
    runtime: options.runtime ?? systemRuntime,
  };
}

function checkedTimeouts(timeouts: StageTimeouts): AttemptSettings['timeouts'] {
  const limits = {
    headersMs: timeouts.headersMs ?? STAGE_TIMER_DEFAULTS.headersMs,
    firstContentMs: timeouts.firstContentMs,
    idleMs: timeouts.idleMs ?? STAGE_TIMER_DEFAULTS.idleMs,
    tailMs: timeouts.tailMs ?? STAGE_TIMER_DEFAULTS.tailMs,
    responseMs: timeouts.responseMs,
  };
  for (const name of STAGES) {
    const limitMs = limits[name];
    if (limitMs !== undefined) positiveOrInfinity(`timeouts.${name}`, limitMs);
  }
  zeroOrInfinity('timeouts.tailMs', limits.tailMs);
  return limits;
}
