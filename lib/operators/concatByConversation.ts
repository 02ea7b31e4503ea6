import { defer, EMPTY, finalize, map, merge, mergeMap, queueScheduler, subscribeOn, throwError } from 'rxjs';
import type { Observable, OperatorFunction } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { currentPace } from '../core/pace.ts';
import { wholeNumber, zeroOrInfinity } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { createLanes } from './createLanes.ts';
import { scoped } from './scoped.ts';

export interface ConcatByConversationOptions {
  /** Turns that may run at once, all conversations together. A whole number above 0, or `Infinity`. Default: `Infinity`. */
  readonly concurrency?: number | undefined;
  /** Requests that may be held back, all conversations together; one more is `queue_full`. Default: `Infinity`. */
  readonly maxWaiting?: number | undefined;
  /** Names the calls. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const CONCAT_BY_CONVERSATION_DEFAULTS: { readonly concurrency: number; readonly maxWaiting: number } = {
  concurrency: Infinity,
  maxWaiting: Infinity,
};

/**
 * Asks for each request, one after the other within a conversation and at the same time across conversations.
 *
 * ```text
 * requests: abc-------|    a and b are of one conversation, c is of another
 * ask:      ---x|          for each
 * result:   ---a-c-b--|    b is asked when a has ended; c waits for neither
 * ```
 *
 * A request takes its place in the tick in which it comes. A turn lasts until what `ask` returned has ended, retries
 * and fallbacks included. A conversation is remembered only while a turn of it runs or waits. Completes when the
 * requests have completed and all turns have ended.
 *
 * As in `mergeMap`, **an error of one `ask` ends the result**, with every other turn. To keep going, catch inside `ask`,
 * and tag the values there, since the results of all conversations come interleaved (second example).
 *
 * What is shared: nothing. Each subscription has lanes of its own; share lanes between pipelines with
 * {@link inConversation}.
 *
 * Emits as errors, besides those of the requests and of `ask`:
 * - `queue_full`: `maxWaiting` requests are held back already;
 * - `invalid_request`: `conversationOf` returned something else than a string that is not empty;
 * - whatever `conversationOf` or `ask` throws.
 *
 * Unsubscribe: ends every running turn, forgets every request that waits.
 *
 * @param conversationOf - Names the conversation of a request. Called once for each, when it comes.
 * @param ask - Called when it is the request's turn. Each is a call of its own unless a scope stands below.
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import { from } from 'rxjs';
 * import { chat, concatByConversation, text } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const openai = new OpenAI({ maxRetries: 0 });
 * const questions = [
 *   { conversation: 'c-1', content: 'Name a river.' },
 *   { conversation: 'c-1', content: 'And another.' },
 *   { conversation: 'c-2', content: 'Name a lake.' },
 * ];
 * from(questions)
 *   .pipe(
 *     concatByConversation(
 *       ({ conversation }) => conversation,
 *       ({ content }) => chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content }] }).pipe(text()),
 *     ),
 *   )
 *   .subscribe((part) => process.stdout.write(part));
 * ```
 *
 * @example A failed turn that does not end the others
 * ```ts
 * import { catchError, map, of, Subject } from 'rxjs';
 * import { chat, concatByConversation, text } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const openai = new OpenAI({ maxRetries: 0 });
 * const requests = new Subject<{ conversation: string; content: string }>();
 * requests
 *   .pipe(
 *     concatByConversation(
 *       ({ conversation }) => conversation,
 *       ({ conversation, content }) =>
 *         chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content }] }).pipe(
 *           text(),
 *           map((part) => ({ conversation, part })),
 *           catchError((error: unknown) => of({ conversation, error })),
 *         ),
 *       { concurrency: 8 },
 *     ),
 *   )
 *   .subscribe((result) => console.log(result));
 * ```
 */
export function concatByConversation<R, T>(
  conversationOf: (request: R) => string,
  ask: (request: R) => Observable<T>,
  options: ConcatByConversationOptions = {},
): OperatorFunction<R, T> {
  const { runtime = systemRuntime } = options;
  const concurrency = options.concurrency ?? CONCAT_BY_CONVERSATION_DEFAULTS.concurrency;
  if (concurrency !== Infinity) wholeNumber('concurrency', concurrency);
  const maxWaiting = zeroOrInfinity('maxWaiting', options.maxWaiting ?? CONCAT_BY_CONVERSATION_DEFAULTS.maxWaiting);

  return (requests) =>
    defer(() => {
      const outer = currentScope();
      const demand = currentPace();
      const lanes = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
      let heldBack = 0;

      const tooMany = defer(() => (heldBack > maxWaiting ? throwError(() => queueFull(maxWaiting)) : EMPTY));
      return requests.pipe(
        mergeMap((request) => {
          const conversation = conversationOf(request);
          heldBack++;
          const turn = lanes.acquire({ conversation }).pipe(map((place) => ({ request, conversation, place })));
          // Stryker disable next-line ConditionalExpression: nothing is more than Infinity
          return maxWaiting === Infinity ? turn : merge(turn, tooMany);
        }),
        mergeMap(({ request, conversation, place }) => {
          heldBack--;
          const inner = (outer ?? CallScope.start(runtime, { demand })).with({ conversation });
          return scoped(
            defer(() => ask(request)),
            inner,
            outer,
          ).pipe(
            finalize(() => place.release()),
            // `mergeMap` starts what it holds back from within the end of the one before: thousands of synchronous turns
            // would overflow the stack. This scheduler starts them from a loop, in the same tick.
            subscribeOn(queueScheduler),
          );
        }, concurrency),
      );
    });
}

function queueFull(limit: number): SluiceError {
  const message = `${limit} requests are held back already, and no more may be`;
  return new SluiceError('queue_full', message, { while: 'lane', limit });
}
