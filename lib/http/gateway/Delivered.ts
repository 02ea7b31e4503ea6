import { isFields } from '../../wire/errorBody.ts';
import { restOfChunk } from './chatPieces.ts';
import { noteIds, restOfEvent, withIds } from './responsePieces.ts';
import type { ResponseIds } from './responsePieces.ts';
import type { RestOf } from './RestOf.ts';

/** What a client has got of an answer so far: every text of it, by its place. */
export class Delivered {
  readonly api: 'chat' | 'responses';
  readonly texts: Map<string, string> = new Map();
  readonly #ids: ResponseIds = { response: undefined, items: new Map(), events: 0 };

  constructor(api: 'chat' | 'responses') {
    this.api = api;
  }

  note(value: unknown): void {
    restOf(this.api, value, (key, text) => {
      if (text !== '') this.texts.set(key, (this.texts.get(key) ?? '') + text);
      return text;
    });
    if (this.api === 'responses') noteIds(value, this.#ids);
    else if (isFields(value)) this.#ids.response ??= value['id'];
  }

  /** `value`, of an answer that was started over, as a part of the one that the client knows. */
  joined(value: unknown): unknown {
    if (this.api === 'responses') return withIds(value, this.#ids);
    const { response: id } = this.#ids;
    return isFields(value) && id !== undefined ? { ...value, id } : value;
  }
}

export function restOf(api: 'chat' | 'responses', value: unknown, ask: RestOf): unknown {
  return api === 'chat' ? restOfChunk(value, ask) : restOfEvent(value, ask);
}
