import type { Attempt } from '../core/attempt.ts';
import { holdsError, isFields, unwrapBody } from '../wire/errorBody.ts';

interface WholeChoice {
  readonly message?: Readonly<Record<string, unknown>> | null;
}

/**
 * A whole answer to a streamed request, as one chunk: some providers ignore `stream`. An error object is left as it is.
 * `undefined` for anything else.
 */
export function asChunk(api: Attempt['api'], value: unknown): unknown {
  const answer = unwrapBody(value);
  if (!isFields(answer)) return undefined;
  if (holdsError(answer)) return answer;
  const { choices } = answer;
  if (api !== 'chat' || !Array.isArray(choices) || choices.length === 0) return undefined;
  return { ...answer, object: 'chat.completion.chunk', choices: choices.map(chunkChoice) };
}

function chunkChoice(choice: WholeChoice): Record<string, unknown> {
  const { message, ...rest } = choice ?? {};
  const { tool_calls: toolCalls, ...said } = message ?? {};
  const numbered = Array.isArray(toolCalls) ? { tool_calls: toolCalls.map(numberedCall) } : {};
  return { ...rest, delta: { ...said, ...numbered } };
}

/** A chunk tells the parts of several calls apart by their index; a whole message has it in the order. */
function numberedCall(call: unknown, index: number): unknown {
  return typeof call === 'object' && call !== null ? { index, ...call } : call;
}
