type Fields = Readonly<Record<string, unknown>>;

/**
 * What of the Responses API's events has to be remembered: which tool call an item is, as later events name the item or
 * its place and not the call; and whether a text that comes whole has come in pieces already.
 */
export class ResponseItems {
  #byItem: Map<string, string> | undefined;
  #byPlace: Map<unknown, string> | undefined;

  /** Text came since the last part ended; since the last item ended. */
  #inPart = false;
  #inItem = false;

  sawText(): void {
    this.#inPart = true;
    this.#inItem = true;
  }

  /** A part ended, and repeats its text. @returns Whether the text is new, as its deltas did not come. */
  partEnded(): boolean {
    const isNew = !this.#inPart;
    this.#inPart = false;
    this.#inItem = true;
    return isNew;
  }

  /** An item ended, and repeats its text. @returns Whether the text is new, as neither deltas nor parts came. */
  itemEnded(): boolean {
    const isNew = !this.#inItem;
    this.#inPart = false;
    this.#inItem = false;
    return isNew;
  }

  /** Notes a call when its item appears. @returns The call's id. */
  note(item: Fields, place: unknown): string {
    const itemId = textOf(item['id']);
    const callId = textOf(item['call_id']) || itemId;
    if (itemId !== '') (this.#byItem ??= new Map()).set(itemId, callId);
    if (typeof place === 'number') (this.#byPlace ??= new Map()).set(place, callId);
    return callId;
  }

  /** Id of the call that an event belongs to; where its item never appeared, the item's id. */
  idOf(event: Fields): string {
    const itemId = textOf(event['item_id']);
    return this.#byItem?.get(itemId) ?? this.#byPlace?.get(event['output_index']) ?? itemId;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
