import { isFields } from '../../wire/errorBody.ts';
import type { RestOf } from './RestOf.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * What of a chat chunk is new: `restOf` is asked for each text in it, by choice and field. `undefined` where nothing is.
 */
export function restOfChunk(chunk: unknown, restOf: RestOf): unknown {
  if (!isFields(chunk)) return undefined;
  const { choices } = chunk;
  if (!Array.isArray(choices) || choices.length === 0) return chunk;
  const rest = choices.map((choice) => (isFields(choice) ? restOfChoice(choice, restOf) : undefined));
  const left = rest.filter((choice) => choice !== undefined);
  return left.length === 0 ? undefined : { ...chunk, choices: left };
}

function restOfChoice(choice: Fields, restOf: RestOf): Fields | undefined {
  const at = String(indexOf(choice));
  const { delta, finish_reason: reason } = choice;
  const rest = isFields(delta) ? restOfDelta(delta, at, restOf) : {};
  const ends = typeof reason === 'string' && restOf(`${at} end`, reason, 'whole') !== '';
  if (Object.keys(rest).length === 0 && !ends) return undefined;
  return { ...choice, delta: rest, finish_reason: ends ? reason : null };
}

function restOfDelta(delta: Fields, at: string, restOf: RestOf): Fields {
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(delta)) {
    if (name === 'role' || value === null || value === '') continue;
    if (name === 'tool_calls' && Array.isArray(value)) {
      const calls = value.filter(isFields).flatMap((call) => restOfCall(call, `${at} tool`, restOf));
      if (calls.length > 0) rest[name] = calls;
    } else if (typeof value === 'string') {
      const text = restOf(`${at} ${name}`, value, 'text');
      if (text !== '') rest[name] = text;
    } else if (restOf(`${at} ${name}`, JSON.stringify(value), 'whole') !== '') rest[name] = value;
  }
  return rest;
}

function restOfCall(call: Fields, under: string, restOf: RestOf): readonly Fields[] {
  const at = `${under} ${indexOf(call)}`;
  const { id, function: said } = call;
  const { name, arguments: given } = isFields(said) ? said : {};
  const newId = typeof id === 'string' && restOf(`${at} id`, id, 'whole') !== '';
  const newName = typeof name === 'string' && restOf(`${at} name`, name, 'whole') !== '';
  const text = typeof given === 'string' ? restOf(`${at} arguments`, given, 'text') : '';
  if (!newId && !newName && text === '') return [];
  const { id: _, type, ...others } = call;
  const rest = { ...(newName && { name }), arguments: text };
  return [{ ...others, ...(newId && { id, type }), function: rest }];
}

function indexOf({ index }: Fields): number {
  return typeof index === 'number' ? index : 0;
}
