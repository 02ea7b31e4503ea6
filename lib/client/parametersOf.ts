import type { CallParameters } from '../core/CallObserver.ts';
import type { CallPlan, Fields } from './CallPlan.ts';

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

/** Names and identifiers: none of them is written by a user. */
const WORDS = ['service_tier', 'previous_response_id', 'reasoning_effort'] as const;

const NONE: CallParameters = Object.freeze({});

/** What in a request says how it is to be answered, by the names of chat completions. Nothing of what it asks. */
export function parametersOf(api: CallPlan<unknown>['api'], request: Fields | undefined): CallParameters {
  if (request === undefined) return NONE;
  const parameters: Record<string, number | string | readonly string[]> = {};
  for (const name of NUMBERS) {
    const value = request[name];
    if (typeof value === 'number') parameters[name] = value;
  }
  for (const name of WORDS) {
    const value = request[name];
    if (typeof value === 'string') parameters[name] = value;
  }
  const { stop, modalities, response_format: chatFormat, reasoning, text } = request;
  if (typeof stop === 'string') parameters['stop'] = [stop];
  else if (Array.isArray(stop)) parameters['stop'] = stop.filter((part) => typeof part === 'string');
  const effort = fieldOf(reasoning, 'effort');
  if (effort !== undefined) parameters['reasoning_effort'] = effort;
  const format = fieldOf(api === 'responses' ? fieldsOf(text)?.['format'] : chatFormat, 'type');
  if (format !== undefined) parameters['response_format'] = format;
  if (Array.isArray(modalities) && modalities.includes('audio')) parameters['response_format'] = 'audio';
  return parameters;
}

function fieldOf(value: unknown, name: string): string | undefined {
  const field = fieldsOf(value)?.[name];
  return typeof field === 'string' ? field : undefined;
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
}
