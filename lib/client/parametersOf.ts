import type { Fields } from './CallPlan.ts';

const NUMBERS = [
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'seed',
  'n',
] as const;

/** The numbers in a request that say how it is answered. */
export function parametersOf(request: Fields | undefined): Readonly<Record<string, number>> {
  const parameters: Record<string, number> = {};
  for (const name of NUMBERS) {
    const value = request?.[name];
    if (typeof value === 'number') parameters[name] = value;
  }
  return parameters;
}
