import { catchError, Observable, Subscription } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { AttemptSink } from '../core/AttemptSink.ts';
import type { CallScope } from '../core/CallScope.ts';
import { isSluiceError, SluiceError } from '../core/errors.ts';
import type { LocalErrorCode } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import { startTimer } from '../core/runtime.ts';
import type { RetryBudgetPort } from '../core/ports.ts';
import type { Restart } from '../core/restart.ts';
import { backoff, notBefore } from '../limits/backoff.ts';
import { MAX_HINT_MS } from '../wire/hints.ts';
import { marked } from './marked.ts';
import { FROM_THE_START, MidStream } from './MidStream.ts';
import type { RetrySettings } from './RetryWithJitterOptions.ts';
import { scoped, subscribeScoped } from './scoped.ts';
import type { ScopedHooks } from './scoped.ts';
import { Turn } from './Turn.ts';

/** One subscription of `retryWithJitter`, over all its attempts. */
export class RetryRun<T> implements ScopedHooks<T | Restart>, AttemptSink {
  readonly #settings: RetrySettings<T>;
  readonly #source: Observable<T>;
  readonly #scope: CallScope;
  readonly #downward: CallScope | undefined;
  readonly #budget: RetryBudgetPort | undefined;
  #midStream: MidStream | undefined;
  #next: Observable<T>;
  #goOn = FROM_THE_START;
  #turn: Turn | undefined;
  #attempts = 0;
  // Stryker disable next-line BooleanLiteral: each attempt sets it
  #emitted = false;
  #waitMs: number | undefined;
  #earned = false;

  constructor(settings: RetrySettings<T>, source: Observable<T>, scope: CallScope, downward: CallScope | undefined) {
    this.#settings = settings;
    this.#source = source;
    this.#scope = scope;
    this.#downward = downward;
    this.#budget = settings.budget ?? scope.budget;
    this.#next = source;
  }

  /** Subscribes to the next attempt, and to all that may follow it. */
  attempt(subscriber: Subscriber<T | Restart>): void {
    const frame = this.#scope.forNextAttempt();
    this.#attempts++;
    // Stryker disable next-line ConditionalExpression: without a budget nothing is earned by it
    const scope = this.#budget ? frame.withSink(this) : frame;
    this.#turn = new Turn(scope, this.#settings.runtime);
    this.#emitted = false;
    if (this.#goOn.kind !== 'restart') {
      subscribeScoped<T | Restart>(this.#next, subscriber, scope, this.#downward, this);
      return;
    }
    const attempt$ = scoped(this.#next, scope, this.#downward, { first: () => (this.#emitted = true) });
    // Outside the marker, which is of this attempt.
    this.#restarted(attempt$)
      .pipe(catchError((thrown: unknown) => this.instead(thrown)))
      .subscribe(subscriber);
  }

  dispatched(): void {
    this.#earn();
  }

  first(): void {
    this.#emitted = true;
    this.#earn();
  }

  completed(): void {
    this.#earn();
  }

  /** The wait and the next attempt; throws what the consumer is to be told where there is none. */
  instead(thrown: unknown): Observable<T | Restart> {
    const waitMs = this.#afterFailure(thrown);
    // Hand-written: what is subscribed to after the wait gets the consumer itself, so that attempts do not pile up.
    return new Observable<T | Restart>((subscriber) => {
      const wait: Subscription = new Subscription(
        startTimer(this.#settings.runtime, waitMs, () => {
          // Stryker disable next-line CallExpression: it only gives memory back
          wait.unsubscribe();
          this.attempt(subscriber);
        }),
      );
      subscriber.add(wait);
    });
  }

  /** How long to wait for the next attempt. */
  #afterFailure(thrown: unknown): number {
    const settings = this.#settings;
    const { runtime, continueWith } = settings;
    const failure = (this.#turn as Turn).failure(thrown);
    if (failure.source === 'upstream') this.#earn();
    const midStream = (this.#midStream ??= new MidStream(settings.midStream, settings.restarts));
    const told = midStream.fail(failure, this.#emitted);
    const refused = midStream.prefixRefused;
    if (!refused && !this.#isWorthIt(failure, thrown)) throw told;
    const goOn = midStream.next(continueWith !== undefined);
    if (goOn.kind === 'fail' || this.#attemptsUsedUp) throw told;

    // What a refused prefix is about goes away with the prefix, not with time.
    const hintMs = refused ? 0 : (failure.retryAfterMs ?? 0);
    // A hint of the longest length was cut to it: slept out, it would still be shortened.
    if (hintMs > settings.maxHintMs || hintMs === MAX_HINT_MS) throw told;
    const ownMs = refused ? 0 : backoff(this.#attempts, settings.backoff, runtime.random, this.#waitMs);
    const waitMs = notBefore(ownMs, hintMs, settings.backoff, runtime.random);
    if (runtime.clock.now() + waitMs + settings.leastMs() >= this.#scope.deadlineAtMs) {
      throw hintMs > ownMs ? told : noTimeLeft(told, waitMs);
    }
    if (this.#budget?.withdraw(settings.tokens) === false) throw budgetExhausted(told);

    this.#waitMs = ownMs;
    this.#goOn = goOn;
    this.#next = goOn.kind === 'continue' && continueWith ? continueWith(goOn.partial) : this.#source;
    const waitSource = hintMs > ownMs ? 'hint' : 'backoff';
    this.#report({ type: 'retry.scheduled', waitMs, code: failure.code, waitSource });
    return waitMs;
  }

  get #attemptsUsedUp(): boolean {
    const { attempts, maxAttempts } = this.#settings;
    return this.#attempts >= attempts || this.#scope.call.dispatched >= maxAttempts;
  }

  #isWorthIt(failure: SluiceError, thrown: unknown): boolean {
    if (failure.source === 'local' && (isSluiceError(thrown) || failure.code === 'aborted')) return false;
    const { shouldRetry } = this.#settings;
    if (shouldRetry) return shouldRetry(failure);
    return failure.retryable && !(isSilence(failure) && this.#scope.route?.leads(failure.code));
  }

  #restarted(attempt$: Observable<T>): Observable<T | Restart> {
    const broke = this.#midStream?.broke as SluiceError;
    const model = this.#settings.model ?? broke.model;
    return marked(attempt$, broke.code, model, () => this.#report({ type: 'restart', code: broke.code }));
  }

  #earn(): void {
    if (this.#earned) return;
    this.#earned = true;
    this.#budget?.deposit(this.#settings.tokens);
  }

  #report(fact: SluiceFact): void {
    const { onEvent, runtime } = this.#settings;
    const { scope } = this.#turn as Turn;
    (onEvent ? scope.with({ onEvent }) : scope).report(runtime.clock.now(), fact);
  }
}

/** The provider did not answer in time, as opposed to answering that it was not in time. */
function isSilence({ code, while: stage }: SluiceError): boolean {
  return code === 'timeout' && stage !== undefined && stage !== 'streaming';
}

function noTimeLeft(told: SluiceError, waitMs: number): SluiceError {
  const message = `the deadline leaves no time to wait ${Math.round(waitMs)} ms and try again after ${told.code}`;
  return instead('timeout_deadline', message, told, told.retryAfterMs ?? waitMs);
}

function budgetExhausted(told: SluiceError): SluiceError {
  return instead(
    'retry_budget_exhausted',
    `the retry budget allows no retry after ${told.code}`,
    told,
    told.retryAfterMs,
  );
}

/** A refusal of our own in place of a failure, which it names. */
function instead(
  code: LocalErrorCode,
  message: string,
  told: SluiceError,
  retryAfterMs: number | undefined,
): SluiceError {
  const { model, attempts, partial } = told;
  const cause = { name: told.name, code: told.code, message: told.message };
  return new SluiceError(code, message, { model, attempts, partial, cause, retryAfterMs, while: 'backoff' });
}
