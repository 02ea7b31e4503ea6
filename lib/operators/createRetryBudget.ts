import type { RetryBudgetPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { RetryBudget } from '../limits/RetryBudget.ts';
import type { RetryBudgetOptions } from '../limits/RetryBudget.ts';

/**
 * A retry budget of this process. Make one for each upstream model and give it to every `retryWithJitter` in front of
 * that model: whoever has it shares it.
 *
 * @param options - See {@link RetryBudgetOptions}.
 * @param runtime - Only its clock is read. Default: real time.
 * @throws SluiceError `invalid_option` if an option is out of range.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, createRetryBudget, retryWithJitter } from 'sluice';
 *
 * const openai = new OpenAI();
 * const budget = createRetryBudget({ ratio: 0.1 });
 * const ask = (content: string) =>
 *   chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content }] }).pipe(retryWithJitter({ budget }));
 * ask('Hello').subscribe();
 * ```
 */
export function createRetryBudget(options: RetryBudgetOptions = {}, runtime: Runtime = systemRuntime): RetryBudgetPort {
  return new RetryBudget(options, runtime.clock);
}
