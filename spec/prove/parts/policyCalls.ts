import type { Observable } from 'rxjs';
import { CallScope, isSluiceError, startTimer } from '../../../lib/index.ts';
import type { CallOptions, Runtime, Sluice } from '../../../lib/index.ts';
import { scoped } from '../../../lib/operators/scoped.ts';

/** One call, and when what became of it. Milliseconds of the runtime's clock; `NaN` for what did not happen. */
export interface CallRecord {
  readonly askedMs: number;
  /** When its last attempt was sent. */
  sentMs: number;
  contentMs: number;
  endedMs: number;
  attempts: number;
  /** The model that answered. */
  model: string | undefined;
  /** `undefined` for a call that was answered. */
  code: string | undefined;
}

/** What calls of one kind share. */
export interface Caller {
  readonly sluice: Sluice;
  readonly runtime: Runtime;
  readonly records: CallRecord[];
}

/** Asks once, and waits for the end. Never rejects. */
export function ask(
  caller: Caller,
  model: string,
  options: CallOptions = {},
  request: { readonly max_tokens?: number; readonly user?: string } = {},
): Promise<CallRecord> {
  const messages = [{ role: 'user' as const, content: String(caller.records.length) }];
  return follow(caller, caller.sluice.chat({ model, messages, ...request }, { ...options, restarts: false }));
}

/** The same of any call. */
export function follow({ runtime, records }: Caller, call$: Observable<unknown>): Promise<CallRecord> {
  const { clock } = runtime;
  const record: CallRecord = {
    askedMs: clock.now(),
    sentMs: NaN,
    contentMs: NaN,
    endedMs: NaN,
    attempts: 0,
    model: undefined,
    code: undefined,
  };
  records.push(record);
  const scope = CallScope.start(runtime, {
    onEvent({ type, atMs }) {
      if (type !== 'attempt.started') return;
      record.attempts++;
      record.sentMs = atMs;
    },
  });
  return new Promise((resolve) => {
    const ended = (code: string | undefined): void => {
      record.endedMs = clock.now();
      record.code = code;
      resolve(record);
    };
    scoped(call$, scope, undefined).subscribe({
      next(value) {
        if (Number.isNaN(record.contentMs)) record.contentMs = clock.now();
        record.model ??= (value as { readonly model?: string }).model;
      },
      error: (error: unknown) => ended(isSluiceError(error) ? error.code : String(error)),
      complete: () => ended(undefined),
    });
  });
}

export function sleep(runtime: Runtime, ms: number): Promise<void> {
  return new Promise((resolve) => startTimer(runtime, ms, () => resolve()));
}

/** Calls of `make` at a steady pace; resolves when all of them have ended. */
export async function steadily<T>(
  runtime: Runtime,
  everyMs: number,
  forMs: number,
  make: (at: number) => Promise<T>,
): Promise<T[]> {
  const { clock } = runtime;
  const startMs = clock.now();
  const calls: Promise<T>[] = [];
  for (let at = 0; at * everyMs < forMs; at++) {
    await sleep(runtime, startMs + at * everyMs - clock.now());
    calls.push(make(at));
  }
  return Promise.all(calls);
}
