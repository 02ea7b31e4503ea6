import { oneOf } from '../core/checks.ts';
import { invalidOption, isLocalCode } from '../core/errors.ts';
import type { EventListener, SluiceEvent } from '../core/events.ts';
import { logLine } from './logLine.ts';
import type { LogFields } from './logLine.ts';
import { outcomeName } from './outcomeName.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** What pino, `console` and most others have. Gets the fields and the message, in the order of `messageFirst`. */
export type EventLogger = { readonly [L in LogLevel]: (first: never, second: never) => void };

export interface LogEventsOptions {
  /** `true` for `logger.info(message, fields)`, `false` for `logger.info(fields, message)`. Default: `true` for `console`. */
  readonly messageFirst?: boolean | undefined;
  /** Events below are not put together at all. Default: `'debug'`, so that the logger decides. */
  readonly minLevel?: LogLevel | undefined;
  /** Other levels for some types of events; `'off'` leaves them out. Default: see {@link logEvents}. */
  readonly levels?: { readonly [T in SluiceEvent['type']]?: LogLevel | 'off' } | undefined;
  /** Goes into every line, such as the name of the service. Default: nothing. */
  readonly fields?: LogFields | undefined;
}

/**
 * Makes lines for a logger out of events: for `events$`, or as an `onEvent`. Nothing is logged without it.
 *
 * | level   | what                                                                                                 |
 * | ------- | ---------------------------------------------------------------------------------------------------- |
 * | `error` | a call that failed at a provider                                                                     |
 * | `warn`  | a call that we refused; a breaker that opens; a fallback; an answer that starts over; a lost store   |
 * | `info`  | a failed attempt, its retry, a refusal on the way, a pause of a quota, other changes of a breaker    |
 * | `debug` | everything else: queues, successes, cancels, limits                                                  |
 *
 * No line holds a prompt, an answer, a key or a header. A logger that throws is ignored.
 *
 * @throws SluiceError `invalid_option` for a wrong option, or a logger without the four methods.
 *
 * @example With `console`
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { logEvents } from 'sluice/telemetry';
 *
 * const sluice = createSluice(new OpenAI(), { preset: 'interactive' });
 * sluice.events$.subscribe(logEvents(console, { minLevel: 'info' }));
 * ```
 */
export function logEvents(logger: EventLogger, options: LogEventsOptions = {}): EventListener {
  const { messageFirst = isConsole(logger), minLevel = 'debug', levels = {}, fields = {} } = options;
  for (const level of LEVELS) {
    if (typeof logger?.[level] !== 'function')
      throw invalidOption('logger', `an object with a method ${level}`, logger);
  }
  oneOf('minLevel', minLevel, LEVELS);
  for (const [type, level] of Object.entries(levels)) {
    if (level !== undefined) oneOf(`levels.${type}`, level, [...LEVELS, 'off']);
  }
  const least = LEVELS.indexOf(minLevel);

  return (event) => {
    const level = levels[event.type] ?? levelOf(event);
    if (level === 'off' || LEVELS.indexOf(level) < least) return;
    const line = logLine(event);
    const all = { ...fields, ...line.fields };
    try {
      if (messageFirst) logger[level](line.message as never, all as never);
      else logger[level](all as never, line.message as never);
    } catch {
      // A logger must not end a call, nor the events of all others.
    }
  };
}

function levelOf(event: SluiceEvent): LogLevel {
  switch (event.type) {
    case 'call.ended': {
      const { outcome, code } = event;
      if (outcomeName(outcome, code) !== 'failure') return 'debug';
      return code !== undefined && isLocalCode(code) ? 'warn' : 'error';
    }
    case 'attempt.ended':
      return event.outcome === 'failure' ? 'info' : 'debug';
    case 'breaker.changed':
      return event.to === 'open' ? 'warn' : 'info';
    case 'store.changed':
      return event.to === 'lost' ? 'warn' : 'info';
    case 'fallback':
    case 'restart':
      return 'warn';
    case 'retry.scheduled':
    case 'refused':
    case 'cooldown':
      return 'info';
    default:
      return 'debug';
  }
}

function isConsole(logger: unknown): boolean {
  // eslint-disable-next-line no-restricted-globals -- compared with, not written to
  return logger === console;
}
