import OpenAI from 'openai';
import type { Observable } from 'rxjs';
import { isSluiceError } from '../../../lib/core/errors.ts';
import type { SluiceError } from '../../../lib/core/errors.ts';
import { CaseTime } from './CaseTime.ts';
import type { CountedRuntime } from './CaseTime.ts';
import type { CallsInput, Step } from './callsCase.ts';
import type { CallsDriver, MakeDriver } from './CallsDriver.ts';
import { ScriptedCalls } from './ScriptedCalls.ts';

/** One call, and how it ended. */
export interface CallFacts {
  readonly id: string;
  readonly step: Step;
  readonly signal: AbortSignal;
  readonly startedAtMs: number;
  settledAtMs: number | undefined;
  result: string | undefined;
  error: SluiceError | undefined;
}

/** How long after its request a call is aborted that a script says is. */
const ABORT_AFTER_MS = 5;

export interface Started extends CallFacts {
  readonly controller: AbortController;
  onSettled: (() => void)[];
}

/** Everything that the calls of a case share: their time, their provider, and what stands between. */
export class CallsWorld {
  readonly time: CaseTime = new CaseTime();
  readonly runtime: CountedRuntime = this.time.runtime();
  readonly upstream: ScriptedCalls = new ScriptedCalls(this.time);
  readonly calls: Started[] = [];
  readonly driver: CallsDriver;
  /** Calls that are to be aborted when they are granted a slot. */
  readonly abortOnGrant: Set<string> = new Set();
  sharedSignal: AbortSignal | undefined;

  /** @throws SluiceError as the driver does. */
  constructor(input: CallsInput, make: MakeDriver) {
    this.upstream.onAbort = (id) => {
      const { controller } = this.call(id);
      this.time.runtime().scheduler.schedule(() => controller.abort(), ABORT_AFTER_MS);
    };
    const fetch = this.upstream.fetch as typeof globalThis.fetch;
    const client = new OpenAI({ apiKey: 'sk-case', baseURL: 'http://case.invalid/v1', fetch });
    this.driver = make(input, client, this.runtime);
  }

  /** Starts one call in this tick. */
  start(step: Step, index = 0): Started {
    const id = step.id ?? String(this.calls.length + 1);
    const controller = new AbortController();
    const call: Started = {
      id,
      step,
      controller,
      signal: this.sharedSignal ?? controller.signal,
      startedAtMs: this.time.nowMs,
      settledAtMs: undefined,
      result: undefined,
      error: undefined,
      onSettled: [],
    };
    this.calls.push(call);
    this.upstream.plan(id, step, index);
    this.#armAborts(call);
    const settle = (result: string): void => {
      call.settledAtMs = this.time.nowMs;
      call.result = result;
      call.onSettled.forEach((tell) => tell());
    };
    this.pipe(step, id, call.signal).subscribe({
      error: (error: unknown) => {
        if (!isSluiceError(error)) throw error;
        call.error = error;
        settle(resultOf(error));
      },
      complete: () => settle('ok'),
    });
    return call;
  }

  /** One call, not yet subscribed to. */
  pipe(step: Step, id: string, signal?: AbortSignal): Observable<unknown> {
    const content = 'x'.repeat(promptBytes(step));
    const request = { model: step.model ?? 'm1', user: id, messages: [{ role: 'user' as const, content }] };
    return this.driver.call(step, request, {
      signal,
      onEvent: ({ type }) => type === 'granted' && this.abortOnGrant.has(id) && this.call(id).controller.abort(),
    });
  }

  async settled(calls: readonly CallFacts[]): Promise<void> {
    await this.time.run(() => calls.every(({ settledAtMs }) => settledAtMs !== undefined));
  }

  call(id: string): Started {
    const found = this.calls.find((call) => call.id === id);
    if (found === undefined) throw new Error(`the case has no call ${id}`);
    return found;
  }

  #armAborts({ step, controller }: Started): void {
    const { signal, abort_at_ms: atMs } = step;
    if (signal === 'already_aborted') controller.abort();
    const timeout = /^AbortSignal\.timeout\((\d+)\)$/.exec(signal ?? '')?.[1];
    const afterMs = timeout === undefined ? atMs : Number(timeout);
    if (afterMs === undefined) return;
    const reason = timeout === undefined ? undefined : new DOMException('timed out', 'TimeoutError');
    this.time.runtime().scheduler.schedule(() => controller.abort(reason), afterMs);
  }
}

/** About four bytes a token, less what a message costs besides. */
function promptBytes({ prompt_tokens: tokens = 0 }: Step): number {
  return Math.max(1, (tokens - 7) * 4);
}

function resultOf({ code, source, status }: SluiceError): string {
  if (code === 'aborted' || code === 'circuit_open') return code;
  if (code === 'cost_too_large') return 'rejected request_too_large';
  return source === 'local' ? 'rejected' : String(status ?? code);
}
