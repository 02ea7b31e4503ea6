import { catchError, defer, identity, switchMap, tap, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { isSluiceError } from '../../core/errors.ts';
import type { BreakerPort } from '../../core/ports.ts';
import type { Runtime } from '../../core/runtime.ts';
import { circuitBreak } from '../../operators/circuitBreak.ts';
import { createBreaker } from '../../operators/createBreaker.ts';
import { createConcurrencyLimit } from '../../operators/createConcurrencyLimit.ts';
import type { AdjustableConcurrency } from '../../operators/createConcurrencyLimit.ts';
import { createLanes } from '../../operators/createLanes.ts';
import { inConversation } from '../../operators/inConversation.ts';
import { limitConcurrency } from '../../operators/limitConcurrency.ts';
import { withDeadline } from '../../operators/withDeadline.ts';
import type { SimulatedCall } from '../load/CallDrawer.ts';
import { RECIPE_DEFAULTS } from '../scenario/Recipe.ts';
import type { BucketRate, Recipe, RecipeBreaker, RecipeRetry } from '../scenario/Recipe.ts';
import { bareAttempt } from './bareAttempt.ts';
import { PlainBucket } from './PlainBucket.ts';
import { retrying } from './retrying.ts';
import type { Strategy, World } from './Strategy.ts';

/** What a report from production describes, made of its own pieces: none of what Sluice does beside them. */
export function recipeStrategy(recipe: Recipe): Strategy {
  return (world) => {
    const kitchen = new Kitchen(recipe, world);
    return (call) => kitchen.call(call);
  };
}

/** What the calls of one process share. */
class Kitchen {
  readonly #recipe: Recipe;
  readonly #world: World;
  readonly #buckets = new Map<string, PlainBucket>();
  readonly #breakers = new Map<string, BreakerPort>();
  readonly #slots = new Map<string, AdjustableConcurrency>();
  readonly #lanes: ReturnType<typeof createLanes>;

  constructor(recipe: Recipe, world: World) {
    this.#recipe = recipe;
    this.#world = world;
    this.#lanes = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, world.runtime);
  }

  call(call: SimulatedCall): Observable<unknown> {
    const { runtime } = this.#world;
    const { deadlineMs = Infinity, conversations = false } = this.#recipe;
    const { conversation } = call;
    // As the deadline counts it: from before the wait for a turn.
    const untilMs = runtime.clock.now() + deadlineMs;
    return defer(() => this.#fallingBack(call, untilMs)).pipe(
      conversations && conversation !== undefined ? inConversation(this.#lanes, conversation, { runtime }) : identity,
      withDeadline(deadlineMs, { runtime }),
    );
  }

  #fallingBack(call: SimulatedCall, untilMs: number): Observable<unknown> {
    let begun = false;
    const ask = (model: string): Observable<unknown> =>
      this.#model(call, model, untilMs).pipe(tap(() => (begun = true)));
    return (this.#recipe.fallback ?? [])
      .filter((model) => model !== call.model)
      .reduce(
        (answer$, model) =>
          answer$.pipe(catchError((error: unknown) => (begun ? throwError(() => error) : ask(model)))),
        ask(call.model),
      );
  }

  /** All attempts at one model. */
  #model(call: SimulatedCall, model: string, untilMs: number): Observable<unknown> {
    const { runtime } = this.#world;
    const { retry = { attempts: 1 }, breaker } = { ...this.#recipe, ...this.#recipe.models?.[model] };
    const attempt$ = this.#throughBuckets(
      call,
      model,
      bareAttempt(this.#world, call, model).pipe(...this.#slotsOf(call, model)),
    ).pipe(breaker === undefined ? identity : circuitBreak(this.#breakerOf(model, breaker), { runtime }));
    const waitMs = waits(retry, runtime);
    return retrying(attempt$, runtime, {
      attempts: retry.attempts ?? RECIPE_DEFAULTS.attempts,
      waitMs: (failures, hintMs) => {
        const ms = waitMs(failures, hintMs);
        return runtime.clock.now() + ms < untilMs ? ms : undefined;
      },
    });
  }

  #throughBuckets(call: SimulatedCall, model: string, attempt$: Observable<unknown>): Observable<unknown> {
    const { buckets = {}, bucketWaitMs = RECIPE_DEFAULTS.bucketWaitMs, giveBackOn = [] } = this.#recipe;
    const passed = [
      this.#bucket(`model ${model}`, buckets.models?.[model]),
      this.#bucket(`tenant ${call.tenant ?? ''}`, buckets.tenants?.[call.tenant ?? '']),
      this.#bucket('account', buckets.account),
    ].filter((bucket) => bucket !== undefined);
    const given$ = attempt$.pipe(
      catchError((error: unknown) => {
        if (isSluiceError(error) && giveBackOn.includes(error.code)) for (const bucket of passed) bucket.giveBack();
        return throwError(() => error);
      }),
    );
    return passed.reduceRight((next$, bucket) => bucket.take(bucketWaitMs).pipe(switchMap(() => next$)), given$);
  }

  #bucket(name: string, rate: BucketRate | undefined): PlainBucket | undefined {
    if (rate === undefined) return undefined;
    return kept(this.#buckets, name, () => new PlainBucket(rate, this.#world.runtime));
  }

  #breakerOf(model: string, { failures, errorRatio, windowMs, openMs, halfOpenShare }: RecipeBreaker): BreakerPort {
    return kept(this.#breakers, model, () =>
      createBreaker(
        {
          consecutiveFailures: failures ?? Infinity,
          errorRatio: errorRatio ?? Infinity,
          windowMs: windowMs ?? RECIPE_DEFAULTS.windowMs,
          openMs: openMs ?? RECIPE_DEFAULTS.openMs,
          halfOpenShare: halfOpenShare ?? RECIPE_DEFAULTS.halfOpenShare,
          openFactor: 1,
          rampMs: 0,
          countRateLimited: true,
        },
        this.#world.runtime,
      ),
    );
  }

  /** From the inside out: of the model or of all, of the priority, of the tenant. */
  #slotsOf({ tenant = 'default', priority = '' }: SimulatedCall, model: string): Through {
    const { inFlight, tenantsInFlight = {}, prioritiesInFlight = {} } = this.#recipe;
    const pool = tenant in tenantsInFlight ? tenant : 'default';
    const [ofPriority, ofTenant] = [prioritiesInFlight[priority], tenantsInFlight[pool]];
    return [
      this.#slot(typeof inFlight === 'number' ? 'all' : `model ${model}`, inFlight),
      this.#slot(`priority ${priority}`, ofPriority),
      this.#slot(`tenant ${pool}`, ofTenant),
    ];
  }

  #slot(name: string, options: Recipe['inFlight']): MonoTypeOperatorFunction<unknown> {
    const { runtime } = this.#world;
    if (options === undefined) return identity;
    const limit = kept(this.#slots, name, () =>
      createConcurrencyLimit(
        { ...(typeof options === 'number' ? { limit: options } : options), maxWaiting: Infinity },
        runtime,
      ),
    );
    return limitConcurrency(limit, { runtime });
  }
}

type Through = [
  MonoTypeOperatorFunction<unknown>,
  MonoTypeOperatorFunction<unknown>,
  MonoTypeOperatorFunction<unknown>,
];

function waits(
  {
    baseMs = RECIPE_DEFAULTS.baseMs,
    capMs = RECIPE_DEFAULTS.capMs,
    jitter = RECIPE_DEFAULTS.jitter,
    hints = RECIPE_DEFAULTS.hints,
    maxHintMs = RECIPE_DEFAULTS.maxHintMs,
  }: RecipeRetry,
  { random }: Runtime,
): (failures: number, hintMs: number | undefined) => number {
  return (failures, hintMs) => {
    const mostMs = Math.min(capMs, baseMs * 2 ** (failures - 1));
    const ownMs = jitter === 'full' ? mostMs * random() : mostMs;
    if (hints === 'none' || hintMs === undefined) return ownMs;
    const boundedMs = Math.min(maxHintMs, hintMs);
    return hints === 'instead' ? boundedMs : Math.max(boundedMs, ownMs);
  };
}

function kept<T>(map: Map<string, T>, name: string, make: () => T): T {
  let value = map.get(name);
  if (value === undefined) map.set(name, (value = make()));
  return value;
}
