import { catchError, defer, tap, throwError } from 'rxjs';
import type { StrategyInput } from '../scenario/Scenario.ts';
import { bareAttempt } from './bareAttempt.ts';
import { recipeStrategy } from './recipe.ts';
import { retrying } from './retrying.ts';
import { sluiceStrategy } from './sluiceStrategy.ts';
import type { Strategy } from './Strategy.ts';

/** Longest hint that the SDK waits out. */
const SDK_MAX_HINT_MS = 60_000;
const SDK_BASE_MS = 500;
const SDK_CAP_MS = 8_000;
const SDK_JITTER = 0.25;

export function strategyOf(input: StrategyInput): Strategy {
  switch (input.kind) {
    case 'bare':
      return (world) => (call) => bareAttempt(world, call);
    case 'sdk':
      return sdkRetries(input.retries ?? 2);
    case 'fixed': {
      const { attempts = 5, delayMs = 1000 } = input;
      return (world) => (call) =>
        retrying(bareAttempt(world, call), world.runtime, { attempts, waitMs: () => delayMs });
    }
    case 'backoff':
      return backoffs(input);
    case 'recipe':
      return recipeStrategy(input);
    case 'sluice':
      return sluiceStrategy(input);
  }
}

export function nameOf(input: StrategyInput): string {
  switch (input.kind) {
    case 'sdk':
      return `sdk, ${input.retries ?? 2} retries`;
    case 'fixed':
      return `fixed, ${input.attempts ?? 5} attempts`;
    case 'backoff':
      return [
        'backoff',
        ...(input.jitter === 'full' ? ['jitter'] : []),
        ...(input.heedHints === true ? ['hints'] : []),
        ...(input.fallback === undefined ? [] : ['fallback']),
      ].join(', ');
    default:
      return input.kind;
  }
}

/** What the `openai` package does by itself, as of version 7: hints up to a minute, else doubling waits with some jitter. */
function sdkRetries(retries: number): Strategy {
  return (world) => (call) =>
    retrying(bareAttempt(world, call), world.runtime, {
      attempts: retries + 1,
      waitMs: (failures, hintMs) => {
        if (hintMs !== undefined && hintMs < SDK_MAX_HINT_MS) return hintMs;
        return Math.min(SDK_CAP_MS, SDK_BASE_MS * 2 ** (failures - 1)) * (1 - SDK_JITTER * world.runtime.random());
      },
    });
}

function backoffs(input: StrategyInput & { readonly kind: 'backoff' }): Strategy {
  const { attempts = 5, baseMs = 500, capMs = 8000, jitter = 'none', heedHints = false, fallback } = input;
  return (world) => (call) => {
    const ask = (model: string): ReturnType<typeof bareAttempt> =>
      retrying(bareAttempt(world, call, model), world.runtime, {
        attempts,
        waitMs: (failures, hintMs = 0) => {
          const mostMs = Math.min(capMs, baseMs * 2 ** (failures - 1));
          const ownMs = jitter === 'full' ? mostMs * world.runtime.random() : mostMs;
          return heedHints ? Math.max(hintMs, ownMs) : ownMs;
        },
      });
    if (fallback === undefined) return ask(call.model);
    return defer(() => {
      let begun = false;
      return ask(call.model).pipe(
        tap(() => (begun = true)),
        catchError((error: unknown) => (begun ? throwError(() => error) : ask(fallback))),
      );
    });
  };
}
