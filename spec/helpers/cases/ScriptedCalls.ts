import type { CaseTime, CountedRuntime } from './CaseTime.ts';
import type { Step, StepScript } from './callsCase.ts';

/** One request of a call, as the provider saw it. */
export interface UpstreamCall {
  readonly id: string;
  readonly model: string;
  readonly atMs: number;
  endedAtMs: number | undefined;
  aborted: boolean;
}

interface Plan {
  readonly step: Step;
  /** Number of the call within its step. */
  readonly index: number;
  taken: Map<string, number>;
}

/** A provider in virtual time, without sockets: it is asked through `fetch`, and answers by the step's script. */
export class ScriptedCalls {
  readonly seen: UpstreamCall[] = [];
  /** Called when a request comes in. */
  onRequest: ((call: UpstreamCall) => void) | undefined;
  /** Called where the script says that the caller is to abort. */
  onAbort: ((id: string) => void) | undefined;
  readonly #plans = new Map<string, Plan>();
  readonly #time: CaseTime;
  readonly #runtime: CountedRuntime;

  constructor(time: CaseTime) {
    this.#time = time;
    this.#runtime = time.runtime();
  }

  plan(id: string, step: Step, index: number): void {
    this.#plans.set(id, { step, index, taken: new Map() });
  }

  readonly fetch = (_url: unknown, init: RequestInit = {}): Promise<Response> => {
    const { user: id, model, stream } = JSON.parse(init.body as string) as Record<string, unknown>;
    const plan = this.#plans.get(String(id)) as Plan;
    const { step } = plan;
    const call: UpstreamCall = {
      id: String(id),
      model: String(model),
      atMs: this.#time.nowMs,
      endedAtMs: undefined,
      aborted: false,
    };
    this.seen.push(call);
    this.onRequest?.(call);
    const said = next(plan, call.model);
    if (said === 'abort') this.onAbort?.(call.id);
    const takesMs = said === 'abort' ? Infinity : (step.upstream_takes_ms ?? step.takes_ms ?? 0);
    return new Promise((resolve, reject) => {
      const answer = (): void => {
        call.endedAtMs = this.#time.nowMs;
        resolve(stream === true ? streamed() : whole(said, step.actual));
      };
      const timer = takesMs > 0 && takesMs !== Infinity ? this.#runtime.scheduler.schedule(answer, takesMs) : undefined;
      init.signal?.addEventListener(
        'abort',
        () => {
          if (call.endedAtMs !== undefined) return;
          call.aborted = true;
          call.endedAtMs = this.#time.nowMs;
          timer?.unsubscribe();
          reject(new DOMException('This operation was aborted', 'AbortError'));
        },
        { once: true },
      );
      if (takesMs === 0) answer();
    });
  };
}

function next({ step, index, taken }: Plan, model: string): string {
  const at = taken.get(model) ?? 0;
  taken.set(model, at + 1);
  return scriptAt(step.script, model, index, at, step.times ?? 1);
}

/**
 * A list as long as the calls are many is the first answer of each call, and a retry finds the provider well; any other
 * list is one answer for each attempt.
 */
function scriptAt(script: StepScript | undefined, model: string, index: number, at: number, calls: number): string {
  if (script === undefined) return '200';
  if (typeof script === 'string') {
    const some = /^(\d+) for (\d+) of them/.exec(script);
    if (some) return index < Number(some[2]) && at === 0 ? String(some[1]) : '200';
    return script.replace(/^always /, '');
  }
  if (isList(script)) {
    const perCall = calls > 1 && script.length === calls;
    return (perCall ? (at === 0 ? script[index] : '200') : script[Math.min(at, script.length - 1)]) ?? '200';
  }
  return scriptAt(script[model], model, index, at, calls);
}

function isList(script: StepScript): script is readonly string[] {
  return Array.isArray(script);
}

function whole(said: string, actual = 2): Response {
  const [status, ...rest] = said.split(' ');
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  for (let at = 0; at + 1 < rest.length; at += 2) headers[String(rest[at])] = String(rest[at + 1]);
  const usage = { prompt_tokens: actual - 1, completion_tokens: 1, total_tokens: actual };
  const choice = { index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' };
  const body = status === '200' ? { choices: [choice], usage } : { error: { message: `it was ${String(status)}` } };
  return new Response(JSON.stringify(body), { status: Number(status), headers });
}

function streamed(): Response {
  const chunk = (fields: object): string => `data: ${JSON.stringify({ id: 'c1', choices: [fields] })}\n\n`;
  const text = chunk({ index: 0, delta: { content: 'ok' } }) + chunk({ index: 0, delta: {}, finish_reason: 'stop' });
  return new Response(`${text}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } });
}
