import * as is from '../../policy/schema/leaves.ts';
import { setting, strict } from '../../policy/schema/leaves.ts';
import { RECIPE_DEFAULTS } from './Recipe.ts';
import type { BucketRate, Recipe, RecipeAdaptive, RecipeBreaker, RecipeRetry } from './Recipe.ts';
import { z } from 'zod';

const rate = strict({
  requestsPerMinute: is.above0(),
  burstRequests: setting(is.finite(1), 'Most requests at once after a rest; default: one second of the rate.'),
} satisfies Record<keyof BucketRate, unknown>);

const retry = strict({
  attempts: setting(is.whole(1), 'Attempts at one model.', RECIPE_DEFAULTS.attempts),
  baseMs: setting(is.finite(0), 'First wait.', RECIPE_DEFAULTS.baseMs),
  capMs: setting(is.finite(0), 'Longest wait.', RECIPE_DEFAULTS.capMs),
  jitter: setting(is.oneOf(['none', 'full']), 'How waits are drawn.', RECIPE_DEFAULTS.jitter),
  hints: setting(is.oneOf(['none', 'floor', 'instead']), 'What a hint is.', RECIPE_DEFAULTS.hints),
  maxHintMs: setting(is.finite(0), 'No hint counts for more.', RECIPE_DEFAULTS.maxHintMs),
} satisfies Record<keyof RecipeRetry, unknown>);

const breaker = strict({
  failures: setting(is.whole(1), 'Opens after so many failures in a row.'),
  errorRatio: setting(is.share(), 'Opens when this part of the attempts in the window failed.'),
  windowMs: setting(is.above0(), 'Length of the window.', RECIPE_DEFAULTS.windowMs),
  openMs: setting(is.above0(), 'How long it stays open.', RECIPE_DEFAULTS.openMs),
  halfOpenShare: setting(is.share(), 'Part of the traffic that may try.', RECIPE_DEFAULTS.halfOpenShare),
} satisfies Record<keyof RecipeBreaker, unknown>);

const adaptive = strict({
  initial: is.whole(1),
  min: is.whole(1),
  max: is.whole(1),
  decrease: is.fraction(),
  growEveryMs: is.finite(0),
} satisfies Record<keyof RecipeAdaptive, unknown>);

const slots = is.named(is.whole(1), 'names to whole numbers of at least 1');

/** The keys of a recipe. */
export const recipe: Record<keyof Recipe, z.ZodType> = {
  deadlineMs: setting(is.above0(), 'From the call to its first content.'),
  conversations: setting(is.flag(), 'Whether turns of a conversation wait for each other.', false),
  fallback: setting(is.listOf(is.text('the name of a model'), 'names of models'), 'Asked in turn.'),
  retry: setting(retry, 'Retries; default: none.'),
  breaker: setting(breaker, 'A breaker for each model.'),
  models: setting(
    is.named(
      strict({ retry: setting(retry, 'Its retries.'), breaker: setting(breaker, 'Its breaker.') }),
      'models to their retries and breakers',
    ),
    'Retries and breaker by model.',
  ),
  buckets: setting(
    strict({
      account: setting(rate, 'Of all requests.'),
      models: setting(is.named(rate, 'models to rates'), 'By model.'),
      tenants: setting(is.named(rate, 'tenants to rates'), 'By tenant.'),
    }),
    'Token buckets.',
  ),
  bucketWaitMs: setting(is.finite(0), 'Longest wait for a token.', RECIPE_DEFAULTS.bucketWaitMs),
  giveBackOn: setting(is.listOf(is.text('the code of an error'), 'codes of errors'), 'When tokens are given back.'),
  inFlight: setting(
    z.union([is.whole(1), adaptive], {
      error: 'a whole number of at least 1, or { initial, min, max, decrease, growEveryMs }',
    }),
    'Requests in flight.',
  ),
  tenantsInFlight: setting(slots, 'Requests in flight by tenant.'),
  prioritiesInFlight: setting(slots, 'Requests in flight by priority.'),
};
