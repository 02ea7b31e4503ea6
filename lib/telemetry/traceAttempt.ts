import { context } from '@opentelemetry/api';
import type { Context, Tracer, TracerProvider } from '@opentelemetry/api';
import { Observable } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import type { CallState } from '../core/CallScopeChanges.ts';
import { nonEmpty } from '../core/checks.ts';
import { currentScope, runInScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceEvent } from '../core/events.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { AttemptSpan } from './AttemptSpan.ts';
import type { AttemptEnd } from './AttemptSpan.ts';
import { callSpanOf } from './callSpans.ts';
import { HomeSubscriber } from './HomeSubscriber.ts';
import { homeIn } from './homeIn.ts';
import { providerOf } from './providerOf.ts';
import type { ProviderOption } from './providerOf.ts';
import { SpanClock } from './SpanClock.ts';
import { tracerSource } from './tracerSource.ts';

export interface TraceAttemptOptions {
  /** Default: what the source asks, or else the call's own. */
  readonly model?: string | undefined;
  /** For attempts outside every {@link traceCall}. Default: the one that is registered with OpenTelemetry. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Who answers, for attempts outside every {@link traceCall}. Default: what the host name says, or else `openai`. */
  readonly provider?: ProviderOption | undefined;
  /** Dates the attempt. Default: `systemRuntime`. */
  readonly runtime?: Runtime | undefined;
}

const GLOBAL = tracerSource(undefined);

/**
 * Makes each subscription to the source a span: an attempt, where it stands inside retries.
 *
 * ```text
 * subscriptions: --#   (backoff)   --a--b--|
 * spans:         [-]               [-------]
 * ```
 *
 * Below a {@link traceCall}, the sources of this library have a span for each attempt without it. It is for other
 * sources, such as a vendor's SDK that is wrapped by hand, and for attempts that no `traceCall` is around: those become
 * children of the span that is active as the first of them is subscribed to. A queue between the two may let it start in
 * the context of another call; only a `traceCall` knows better. It belongs next to the source. An attempt that its
 * source speaks of has one span, however many are to make it.
 *
 * The source is subscribed to inside the span, so that the spans of HTTP clients are its children and `traceparent` goes
 * out. The one downstream hears everything in the context of the call. The span ends once: with the source, or as the
 * one downstream unsubscribes.
 *
 * - **Shared:** nothing. Emits what the source emits.
 *
 * @throws SluiceError `invalid_option`.
 *
 * @example
 * ```ts
 * import { defer } from 'rxjs';
 * import { retryWithJitter } from 'sluice';
 * import { traceAttempt, traceCall } from 'sluice/telemetry';
 *
 * const answer$ = defer(() => fetch('https://llm.example.com/v1/answer', { method: 'POST', body: '{}' }));
 * answer$.pipe(traceAttempt({ model: 'own-model' }), retryWithJitter(), traceCall()).subscribe();
 * ```
 */
export function traceAttempt<T>(options: TraceAttemptOptions = {}): MonoTypeOperatorFunction<T> {
  const { runtime = systemRuntime, provider, tracerProvider } = options;
  if (options.model !== undefined) nonEmpty('model', options.model);
  const tracerNow = tracerProvider === undefined ? GLOBAL : tracerSource(tracerProvider);

  return (source) =>
    // Hand-written: the frame, the context and the end of the attempt go with one subscription.
    new Observable<T>((subscriber) => {
      const { clock } = runtime;
      const below = currentScope();
      const call = callSpanOf(below);
      const tracer = call ? undefined : tracerNow();
      if (call === undefined && tracer === undefined) return source.subscribe(subscriber);

      const outer = below ?? CallScope.start(runtime);
      // A plain re-subscription, such as that of RxJS's own `retry`, comes in the frame of the attempt before it.
      const numbered = outer.call.dispatched < outer.attempt ? outer : outer.forNextAttempt();
      const { attempt } = numbered;
      const model = options.model ?? numbered.model;
      const atMs = clock.now();
      const start = { attempt, model, server: undefined, provider: providerOf(provider, undefined, model), atMs };
      const parent = contextOf(outer);
      const home = call?.home ?? homeIn(parent);
      const span = call?.attempt(start) ?? new AttemptSpan(tracer as Tracer, clockAt(runtime, atMs), start, parent);

      const inside = homeIn(span.context);
      const scope = numbered.with({
        model: options.model,
        around: (work) => inside(work, undefined),
        home: inside,
        onEvent: call ? undefined : (event) => follow(span, event, provider),
      });
      const inner = new HomeSubscriber<T>(subscriber, below, home, (error, failed) => {
        // A source that does not speak to the scope has not counted itself.
        const tried = !failed || !isSluiceError(error) || error.source === 'upstream';
        if (tried && scope.call.dispatched < attempt) scope.call.dispatched = attempt;
        span.end({ ...(failed ? failedWith(error) : SUCCESS), atMs: clock.now() });
      });
      subscriber.add(() => span.end({ ...DROPPED, atMs: clock.now() }));
      runInScope(scope, () => inside(() => source.subscribe(inner), undefined));
      return undefined;
    });
}

function clockAt({ clock }: Runtime, atMs: number): SpanClock {
  return new SpanClock({ atMs, wallAtMs: clock.wallNow() });
}

const contexts = new WeakMap<CallState, Context>();

/** That of the first attempt: what a later one follows on, such as a timer, may have been set off anywhere. */
function contextOf({ call }: CallScope): Context {
  let first = contexts.get(call);
  if (first === undefined) contexts.set(call, (first = context.active()));
  return first;
}

/** What the source itself says of its attempt, where no call hears it. */
function follow(span: AttemptSpan, event: SluiceEvent, provider: ProviderOption | undefined): void {
  if (event.attempt !== span.attempt) return;
  if (event.type === 'attempt.started') {
    const { model, server } = event;
    span.sent({ model, server, provider: providerOf(provider, server, model) });
  } else if (event.type === 'committed') span.firstChunk(event.atMs);
  else if (event.type === 'attempt.ended') span.end(event);
}

type End = Omit<AttemptEnd, 'atMs'>;

const SUCCESS: End = { outcome: 'success', code: undefined, message: undefined };
const DROPPED: End = { outcome: 'dropped', code: undefined, message: undefined };

/** What others throw may hold anything: only a status is taken from it. */
function failedWith(error: unknown): End {
  if (isSluiceError(error)) {
    const { code, message, status, requestId } = error;
    return { outcome: 'failure', code, message, status, requestId };
  }
  const { status } = Object(error) as { readonly status?: unknown };
  const known = typeof status === 'number' ? status : undefined;
  return { outcome: 'failure', code: undefined, message: undefined, status: known };
}
