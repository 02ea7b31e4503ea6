import { Observable } from 'rxjs';
import type { Attempt, AttemptSource } from '../../lib/core/attempt.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode, SluiceErrorFields } from '../../lib/core/errors.ts';
import { startTimer } from '../../lib/core/runtime.ts';
import type { Runtime } from '../../lib/core/runtime.ts';

/** How one attempt goes. Times count from dispatch. */
export interface Reply {
  /** Fails instead of answering; after `text`, if there is any. */
  readonly error?: ErrorCode;
  readonly fields?: SluiceErrorFields;
  readonly message?: string;
  /** Default: the name of the model. */
  readonly text?: string;
  readonly firstMs?: number;
  readonly endMs?: number;
  /** Never answers. */
  readonly hangs?: boolean;
}

export interface SeenAttempt {
  readonly atMs: number;
  readonly model: string;
  readonly attempt: Attempt;
  readonly conversation: string | undefined;
  left: boolean;
  ended: boolean;
}

export interface FakeProvider {
  readonly source: AttemptSource;
  readonly seen: readonly SeenAttempt[];
  /** Attempts that have neither ended nor been left. */
  readonly open: number;
  models(): readonly string[];
}

/** A provider in virtual time that answers each attempt as `replyTo` says; `index` counts from 0. */
export function fakeProvider(
  runtime: Runtime,
  replyTo: (model: string, index: number, attempt: Attempt) => Reply = () => ({}),
): FakeProvider {
  const seen: SeenAttempt[] = [];
  const source: AttemptSource = (attempt) =>
    new Observable((subscriber) => {
      const model = String(attempt.request['model']);
      const scope = currentScope();
      const entry: SeenAttempt = {
        atMs: runtime.clock.now(),
        model,
        attempt,
        conversation: scope?.conversation,
        left: false,
        ended: false,
      };
      const reply = replyTo(model, seen.length, attempt);
      seen.push(entry);
      scope?.dispatched(entry.atMs);
      const { text = reply.error === undefined ? model : '', firstMs = 10, endMs = 20 } = reply;
      const stops = [
        startTimer(runtime, reply.hangs ? Infinity : firstMs, () => {
          if (reply.error !== undefined && text === '') return fail();
          subscriber.next({ kind: 'head', status: 200, requestId: undefined, hints: undefined });
          if (attempt.stream) subscriber.next({ kind: 'data', value: chunk(model, text, null), event: undefined });
        }),
        startTimer(runtime, reply.hangs ? Infinity : endMs, () => {
          if (reply.error !== undefined) return fail();
          const value = attempt.stream ? chunk(model, undefined, 'stop') : whole(model, text);
          subscriber.next({ kind: 'data', value, event: undefined });
          if (attempt.stream) subscriber.next({ kind: 'done' });
          entry.ended = true;
          subscriber.complete();
        }),
      ];
      function fail(): void {
        entry.ended = true;
        subscriber.error(
          new SluiceError(reply.error as ErrorCode, reply.message ?? `it was ${reply.error}`, reply.fields),
        );
      }
      return () => {
        for (const stop of stops) stop();
        if (!entry.ended) entry.left = true;
        scope?.closed();
      };
    });
  return {
    source,
    seen,
    get open() {
      return seen.filter(({ left, ended }) => !left && !ended).length;
    },
    models: () => seen.map(({ model }) => model),
  };
}

function chunk(model: string, content: string | undefined, reason: string | null): unknown {
  const delta = content === undefined ? {} : { content };
  return {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model,
    choices: [{ index: 0, delta, finish_reason: reason }],
  };
}

function whole(model: string, content: string): unknown {
  const choice = { index: 0, message: { role: 'assistant', content, refusal: null }, finish_reason: 'stop' };
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  return { id: 'c', object: 'chat.completion', created: 1, model, choices: [choice], usage };
}
