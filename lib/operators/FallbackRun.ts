import { catchError, throwError } from 'rxjs';
import type { Observable, Subscriber } from 'rxjs';
import { runInScope } from '../core/currentScope.ts';
import type { CallScope } from '../core/CallScope.ts';
import type { Route } from '../core/CallScopeChanges.ts';
import { isSluiceError } from '../core/errors.ts';
import type { AttemptRecord, SluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import type { Restart } from '../core/restart.ts';
import { FallbackChain } from './FallbackChain.ts';
import type { FallbackMap } from './FallbackChain.ts';
import type { FallbackSettings } from './FallbackModelOptions.ts';
import { marked } from './marked.ts';
import { MidStream } from './MidStream.ts';
import type { GoOn } from './MidStream.ts';
import { scoped, subscribeScoped } from './scoped.ts';
import type { ScopedHooks } from './scoped.ts';
import { CALL_IS_OVER, Turn } from './Turn.ts';

/** One subscription of `fallbackModel`, over all the models it asks. */
export class FallbackRun<T> implements ScopedHooks<T | Restart>, Route {
  readonly asked: string[];
  readonly #settings: FallbackSettings<T>;
  readonly #map: FallbackMap;
  readonly #ask: (model: string) => Observable<T>;
  readonly #scope: CallScope;
  readonly #downward: CallScope | undefined;
  readonly #outer: Route | undefined;
  #turn: Turn;
  // Stryker disable next-line BooleanLiteral: each turn sets it
  #emitted = false;
  #broken: MidStream | undefined;
  #links: FallbackChain | undefined;
  /** What each model that failed answered, refusals of our own included, behind what failed before this run. */
  readonly #attempts: AttemptRecord[];
  #answered = 0;
  #first: SluiceError | undefined;
  /** When the first of the models that failed can be asked again, in so far as they said. */
  #againAtMs = Infinity;

  constructor(
    settings: FallbackSettings<T>,
    map: FallbackMap,
    ask: (model: string) => Observable<T>,
    scope: CallScope,
    downward: CallScope | undefined,
  ) {
    const outer = scope.route;
    // Stryker disable next-line ArrayDeclaration: no model is called so
    this.asked = outer?.asked ?? [];
    this.#settings = settings;
    this.#map = map;
    this.#ask = ask;
    this.#outer = outer;
    this.#scope = scope.with({ route: this });
    this.#downward = downward;
    this.#turn = new Turn(this.#scope.forNextAttempt(), settings.runtime);
    this.#attempts = [...scope.call.failed];
    this.#markAsked(scope.model);
  }

  /** Subscribes to `source`, the answer of the model that is asked first, and to what comes after it should it fail. */
  start(source: Observable<T>, subscriber: Subscriber<T | Restart>): void {
    subscribeScoped<T | Restart>(source, subscriber, this.#turn.scope, this.#downward, this);
  }

  leads(code: SluiceError['code']): boolean {
    return this.#chain.leads(code) || this.#outer?.leads(code) === true;
  }

  first(): void {
    this.#emitted = true;
  }

  /** What comes after a failure. Throws what the consumer is to be told where nothing does. */
  instead(thrown: unknown): Observable<T | Restart> {
    const turn = this.#turn;
    const failure = turn.failure(thrown);
    if (CALL_IS_OVER.has(failure.code)) throw failure;
    const told = this.#midStream.fail(failure, this.#emitted);
    this.#remember(failure, turn);
    this.#first ??= told;

    // The prefix was sent to a model that this run has chosen.
    if (this.#midStream.prefixRefused) return this.#askInstead(turn.scope.model as string, told);
    const { model = turn.scope.model } = failure;
    this.#markAsked(model);
    if (this.#midStream.next(true).kind === 'fail') throw this.#outcome(told);
    const next = this.#chain.next(failure.code, (passedOver) => {
      if (this.#settings.fits(passedOver)) return;
      this.#report(this.#scope.with({ model: passedOver }), {
        type: 'refused',
        code: 'context_too_long',
        retryAfterMs: undefined,
      });
    });
    if (next === undefined) throw this.#outcome(told);
    return this.#askInstead(next, told, () =>
      this.#report(turn.scope, { type: 'fallback', from: model, to: next, code: failure.code }),
    );
  }

  #askInstead(model: string, told: SluiceError, onAsk?: () => void): Observable<T | Restart> {
    const { runtime, maxAttempts } = this.#settings;
    const goesOn = this.#settings.continueWith(model);
    const goOn = this.#midStream.next(goesOn !== undefined);
    const tooLate = runtime.clock.now() >= this.#scope.deadlineAtMs;
    if (goOn.kind === 'fail' || tooLate || this.#scope.call.dispatched >= maxAttempts) throw this.#outcome(told);
    onAsk?.();
    this.#markAsked(model);
    const scope = this.#scope.with({ model });
    const source = runInScope(scope, () => {
      try {
        return goOn.kind === 'continue' && goesOn ? goesOn(goOn.partial) : this.#ask(model);
      } catch (thrown) {
        if (isSluiceError(thrown)) return throwError(() => thrown);
        throw thrown;
      }
    });
    return this.#next(source, scope, goOn);
  }

  /** `source` as the answer of the model in `scope`. */
  #next(source: Observable<T>, scope: CallScope, goOn: GoOn): Observable<T | Restart> {
    const turn = new Turn(scope.forNextAttempt(), this.#settings.runtime);
    this.#turn = turn;
    this.#emitted = false;
    if (goOn.kind !== 'restart') return scoped<T | Restart>(source, turn.scope, this.#downward, this);
    const values$ = scoped(source, turn.scope, this.#downward, { first: () => this.first() });
    // Outside the marker, which is of this turn.
    return this.#restarted(values$, turn.scope).pipe(catchError((thrown: unknown) => this.instead(thrown)));
  }

  get #midStream(): MidStream {
    return (this.#broken ??= new MidStream(this.#settings.midStream, this.#settings.restarts));
  }

  get #chain(): FallbackChain {
    const settings = this.#settings;
    const { onlyOn, except } = settings;
    const mayAsk = (model: string): boolean => !this.asked.includes(model) && settings.fits(model);
    return (this.#links ??= new FallbackChain(this.#map, { onlyOn, except, mayAsk }));
  }

  #markAsked(model: string | undefined): void {
    // Stryker disable next-line ConditionalExpression: no model has no name
    if (model !== undefined) this.asked.push(model);
  }

  #restarted(values$: Observable<T>, scope: CallScope): Observable<T | Restart> {
    const { code } = this.#midStream.broke as SluiceError;
    return marked(values$, code, scope.model, () => this.#report(scope, { type: 'restart', code }));
  }

  #remember(failure: SluiceError, turn: Turn): void {
    this.#answered++;
    const answered = failure.attempts.slice(turn.failedBefore);
    this.#attempts.push(...(answered.length > 0 ? answered : [turn.record(failure)]));
    if (failure.retryAfterMs === undefined) return;
    this.#againAtMs = Math.min(this.#againAtMs, this.#settings.runtime.clock.now() + failure.retryAfterMs);
  }

  /** The first failure, or the one that broke off what the consumer holds; with what every model answered. */
  #outcome(told: SluiceError): SluiceError {
    const outcome = this.#midStream.broke ?? this.#first ?? told;
    if (this.#answered === 1) return told;
    const waitMs = Math.max(0, this.#againAtMs - this.#settings.runtime.clock.now());
    const retryAfterMs = waitMs === Infinity ? undefined : waitMs;
    return outcome.with({ attempts: [...this.#attempts], retryAfterMs });
  }

  #report(scope: CallScope, fact: SluiceFact): void {
    const { onEvent, runtime } = this.#settings;
    (onEvent ? scope.with({ onEvent }) : scope).report(runtime.clock.now(), fact);
  }
}
