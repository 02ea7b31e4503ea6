import { isFields } from '../../wire/errorBody.ts';
import type { RestOf } from './RestOf.ts';

type Fields = Readonly<Record<string, unknown>>;

/** As {@link restOfChunk}, for an event of the Responses API: its deltas by their place, and all others as wholes. */
export function restOfEvent(event: unknown, restOf: RestOf): unknown {
  if (!isFields(event)) return undefined;
  const { type, delta, output_index: output, content_index: content, summary_index: summary } = event;
  const at = [type, output, content, summary].join(' ');
  if (typeof delta === 'string') {
    const text = restOf(at, delta, 'text');
    return text === '' ? undefined : { ...event, delta: text };
  }
  return restOf(at, said(event), 'whole') === '' ? undefined : event;
}

/** What an event that holds no delta says, without names that each answer has of its own. */
function said({ type, text, arguments: given, refusal, item }: Fields): string {
  const about = isFields(item) ? [item['type'], item['name'], item['call_id']] : [];
  return JSON.stringify([type, text, given, refusal, ...about]);
}

/** Ids of an answer, as its client knows them. */
export interface ResponseIds {
  response: unknown;
  readonly items: Map<unknown, unknown>;
  events: number;
}

/** Notes the ids that an event holds, where they are new. */
export function noteIds(event: unknown, ids: ResponseIds): void {
  if (!isFields(event)) return;
  const { response, item, item_id: itemId, output_index: output } = event;
  if (isFields(response)) ids.response ??= response['id'];
  const id = isFields(item) ? item['id'] : itemId;
  if (output !== undefined && id !== undefined && !ids.items.has(output)) ids.items.set(output, id);
  ids.events++;
}

/** `event` with the ids and the number that fit what was sent before. */
export function withIds(event: unknown, ids: ResponseIds): unknown {
  if (!isFields(event)) return event;
  const { response, item, item_id: itemId, output_index: output } = event;
  const known = ids.items.get(output);
  return {
    ...event,
    ...('sequence_number' in event && { sequence_number: ids.events }),
    ...(itemId !== undefined && known !== undefined && { item_id: known }),
    ...(isFields(item) && known !== undefined && { item: { ...item, id: known } }),
    ...(isFields(response) && { response: responseWithIds(response, ids) }),
  };
}

function responseWithIds(response: Fields, ids: ResponseIds): Fields {
  const { output } = response;
  const items = Array.isArray(output)
    ? output.map((item: unknown, i) => (isFields(item) && ids.items.has(i) ? { ...item, id: ids.items.get(i) } : item))
    : output;
  return { ...response, ...(ids.response !== undefined && { id: ids.response }), output: items };
}
