import { positive, wholeNumber } from '../core/checks.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import type { MessageOf } from './httpFailure.ts';
import type { Replays } from './Replays.ts';
import { ReplayStore } from './ReplayStore.ts';

export interface ReplayableOptions {
  /** How long a stream is kept that nobody reads; one that still runs is ended then. Above 0. Default: 60,000. */
  readonly keepMs?: number | undefined;
  /** Memory for the events of all streams, about, in bytes. Above 0. Default: 67,108,864. */
  readonly maxBytes?: number | undefined;
  /** Streams kept at once. A whole number above 0. Default: 10,000. */
  readonly maxStreams?: number | undefined;
  /** What clients are told of a failure, `undefined` for the default: the message of a SluiceError, else `internal error`. */
  readonly messageOf?: MessageOf | undefined;
  /** Names a stream. Must not be guessed, and not repeat: letters, digits, `-` and `_`, 64 at most. Default: a random UUID. */
  readonly newName?: (() => string) | undefined;
  /** Time and waiting. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const REPLAYABLE_DEFAULTS: { readonly keepMs: number; readonly maxBytes: number; readonly maxStreams: number } =
  {
    keepMs: 60_000,
    maxBytes: 64 * 1024 * 1024,
    maxStreams: 10_000,
  };

/**
 * Keeps answers for clients whose connection breaks: one that comes back, with its `Last-Event-ID`, gets what it missed
 * and then goes on live. The provider is asked once, however many connections read the answer.
 *
 * ```text
 * provider:         a--b--c--d--e--|
 * first connection: a--b--x
 * second, after b:            (cd)--e--|
 * third, after e:                         204
 * ```
 *
 * A client that leaves does not end the call: it goes on for `keepMs`, and is aborted if nobody has come back by then.
 * Answers are kept as long after they were read. Past `maxBytes`, streams that ended and that nobody reads go first, the
 * oldest before the others; then the stream that grows loses its first events. A client that would need what is gone is
 * answered 410, and never with a new call. Kept in this process: behind several, let connections stick.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { pipeToResponse, replayable } from 'sluice/http';
 *
 * const openai = new OpenAI();
 * const answers = replayable({ keepMs: 30_000 });
 * createServer((request, response) => {
 *   const messages = [{ role: 'user' as const, content: 'Tell a story' }];
 *   answers
 *     .open({ lastEventId: request.headers['last-event-id'] }, () => chat(openai, { model: 'gpt-5.5', messages }))
 *     .pipe(pipeToResponse(response))
 *     .subscribe();
 * });
 * ```
 */
export function replayable(options: ReplayableOptions = {}): Replays {
  return new ReplayStore({
    keepMs: positive('keepMs', options.keepMs ?? REPLAYABLE_DEFAULTS.keepMs),
    maxBytes: positive('maxBytes', options.maxBytes ?? REPLAYABLE_DEFAULTS.maxBytes),
    maxStreams: wholeNumber('maxStreams', options.maxStreams ?? REPLAYABLE_DEFAULTS.maxStreams),
    messageOf: options.messageOf,
    newName: options.newName ?? ((): string => crypto.randomUUID()),
    runtime: options.runtime ?? systemRuntime,
  });
}
