import { Observable } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import type { CallObserver, CallStart, Home, ObservedCall } from '../core/CallObserver.ts';
import { nonEmpty } from '../core/checks.ts';
import { currentScope, runInScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { HomeSubscriber } from './HomeSubscriber.ts';
import { openTelemetry } from './openTelemetry.ts';

export interface TraceCallOptions {
  /** What hears of the call. Default: one `openTelemetry()` for the process. */
  readonly telemetry?: CallObserver | undefined;
  /** The model that is asked first. Default: what the first attempt asks, which samplers do not see. */
  readonly model?: string | undefined;
  readonly api?: 'chat' | 'responses' | undefined;
  /** Whether the answer is streamed. Default: true. */
  readonly stream?: boolean | undefined;
  readonly tenant?: string | undefined;
  readonly conversation?: string | undefined;
  readonly priority?: string | undefined;
  /** Added to the span of the call. No prompts and no secrets. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Dates the call. It must be that of the operators above. Default: `systemRuntime`. */
  readonly runtime?: Runtime | undefined;
}

/** Defaults of {@link TraceCallOptions}. */
export const TRACE_CALL_DEFAULTS: { readonly stream: boolean } = Object.freeze({ stream: true });

type Ended = Extract<SluiceFact, { readonly type: 'call.ended' }>;
type Outcome = Pick<Ended, 'outcome' | 'code' | 'message'>;

const DROPPED: Outcome = { outcome: 'dropped', code: undefined, message: undefined };
const SUCCESS: Outcome = { outcome: 'success', code: undefined, message: undefined };
const PLAINLY: Home = (work, argument) => work(argument);

let shared: CallObserver | undefined;

/**
 * Makes everything above it one call: one span, with the waits, attempts, retries and fallbacks of the sources and
 * operators of this library in it.
 *
 * ```text
 * above:  attempt 1 #   (backoff)   attempt 2 --a--b--|
 * span:   [-------------------------------------------]
 * result: ------------------------------------a--b----|
 * ```
 *
 * It belongs at the end of a pipe, outside lanes and deadline. The span begins as it is subscribed to, as a child of the
 * span that is active there, and ends once: with the source, or as the one downstream unsubscribes. A call that its
 * caller ended is not an error.
 *
 * - **Context:** what is above goes on in the context of the subscription, also where another call made room for it; the
 *   HTTP request of an attempt runs inside the span of that attempt. The one downstream hears everything in its own context.
 * - **Within another call:** what is traced already, such as a call of `createSluice` with `telemetry`, stays one call.
 * - **Shared:** nothing but `telemetry`. Emits what the source emits; an observer that throws is ignored.
 *
 * @throws SluiceError `invalid_option`.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, createQuota, retryWithJitter, text, throttleByBucket } from 'sluice';
 * import { traceCall } from 'sluice/telemetry';
 *
 * const quota = createQuota({ requestsPerMinute: 600 });
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(throttleByBucket(quota), retryWithJitter(), traceCall({ model: 'gpt-5.5' }), text())
 *   .subscribe((piece) => process.stdout.write(piece));
 * ```
 */
export function traceCall<T>(options: TraceCallOptions = {}): MonoTypeOperatorFunction<T> {
  const { runtime = systemRuntime, model, tenant, conversation, priority } = options;
  const telemetry = options.telemetry ?? (shared ??= openTelemetry());
  for (const name of ['model', 'tenant', 'conversation', 'priority'] as const) {
    const value = options[name];
    if (value !== undefined) nonEmpty(name, value);
  }

  return (source) =>
    // Hand-written: the frame, the context and the end of the call go with one subscription.
    new Observable<T>((subscriber) => {
      const { clock } = runtime;
      const below = currentScope();
      const startedAtMs = clock.now();
      const changes = { model, tenant, conversation, priority, onEvent: telemetry.onEvent };
      const started = below === undefined ? CallScope.start(runtime, changes) : below.with(changes);
      const observed = runInScope(started, () =>
        observedBy(telemetry, startOf(options, started, runtime, startedAtMs)),
      );
      const scope = observed === undefined ? started : started.with(observed);

      let outcome = DROPPED;
      const inner = new HomeSubscriber<T>(subscriber, below, observed?.home ?? PLAINLY, (error, failed) => {
        outcome = failed ? failedWith(error) : SUCCESS;
      });
      // Added after `inner`: by then everything above has been unsubscribed from, and this comes last.
      subscriber.add(() => {
        const atMs = clock.now();
        const attempts = scope.call.dispatched;
        scope.report(atMs, { type: 'call.ended', ...outcome, attempts, durationMs: atMs - startedAtMs });
      });
      runInScope(scope, () => source.subscribe(inner));
    });
}

function startOf(options: TraceCallOptions, scope: CallScope, runtime: Runtime, atMs: number): CallStart {
  return {
    callId: scope.callId,
    api: options.api,
    model: scope.model,
    stream: options.stream ?? TRACE_CALL_DEFAULTS.stream,
    server: undefined,
    tenant: scope.tenant,
    conversation: scope.conversation,
    priority: scope.priority,
    parameters: {},
    attributes: options.attributes ?? {},
    captureContent: false,
    atMs,
    wallAtMs: runtime.clock.wallNow(),
  };
}

function observedBy({ onCall }: CallObserver, start: CallStart): ObservedCall | undefined {
  try {
    return onCall?.(start) as ObservedCall | undefined;
  } catch {
    // An observer's fault is its own.
    return undefined;
  }
}

/** What others throw may hold anything, and is not repeated. */
function failedWith(error: unknown): Outcome {
  const known = isSluiceError(error) ? error : undefined;
  return { outcome: 'failure', code: known?.code, message: known?.message };
}
