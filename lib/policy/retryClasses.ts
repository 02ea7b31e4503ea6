import type { ModelInput, RetryClass } from './PolicyInput.ts';

/**
 * Retries and breakers by what a model is worth, the settings of a gateway that made them per model: cheap and often
 * limited; the main model; an expensive one, whose failed retries cost most; the one that stands when all others fail.
 *
 * @example
 * ```ts
 * import { parsePolicy, retryClasses } from 'sluice';
 *
 * const policy = parsePolicy({ models: { 'gpt-5.5': { class: 'expensive' }, mini: retryClasses.cheap } });
 * console.log(policy.models['gpt-5.5']?.retry.capMs); // => 12000
 * ```
 */
export const retryClasses: Readonly<Record<RetryClass, Pick<ModelInput, 'retry' | 'breaker'>>> = {
  cheap: { retry: { attempts: 6, capMs: 4000 }, breaker: { consecutiveFailures: 5 } },
  main: { retry: { attempts: 5, capMs: 8000 }, breaker: { consecutiveFailures: 8 } },
  expensive: { retry: { attempts: 4, capMs: 12_000 }, breaker: { consecutiveFailures: 4 } },
  lastResort: { retry: { attempts: 6, capMs: 6000 }, breaker: { consecutiveFailures: 10 } },
};

export const RETRY_CLASS_NAMES: readonly RetryClass[] = Object.keys(retryClasses) as RetryClass[];
