// Finds the error in what a provider sent, whichever shape it has.

/** What an error body says, before anything is concluded from it. Raw: `message` may quote a prompt. */
export interface ErrorFacts {
  /** Codes, types and reasons in the order of their precision, as written. */
  readonly tokens: readonly string[];
  readonly code: string | undefined;
  readonly type: string | undefined;
  readonly message: string;
  /** An HTTP status that the body itself names. */
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  /** Objects in which providers put waits and quotas: the error, what is around it, and its details. */
  readonly places: readonly Fields[];
}

export type Fields = Readonly<Record<string, unknown>>;

/** Longest text that is searched: a message may be a whole page. */
const LONGEST_TEXT = 20_000;
const MOST_DETAILS = 20;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The body as an object: text that holds JSON is parsed, an array gives its first object with an error. */
export function unwrapBody(body: unknown): unknown {
  let value = body;
  if (typeof value === 'string' && value.length <= LONGEST_TEXT && /^\s*[[{]/.test(value)) {
    try {
      value = JSON.parse(value) as unknown;
    } catch {
      // It is text.
    }
  }
  if (!Array.isArray(value)) return value;
  const items = value.slice(0, MOST_DETAILS).filter(isFields);
  return items.find((item) => holdsError(item)) ?? items[0] ?? body;
}

/** Whether an object inside a 200 is an error rather than an answer. */
export function holdsError(value: Fields): boolean {
  const { error, type, object } = value;
  if (typeof error === 'string') return error !== '';
  if (typeof error === 'object' && error !== null) return Object.keys(error).length > 0 || !('choices' in value);
  if (error === true || type === 'error' || type === 'response.failed' || object === 'error') return true;
  if ('choices' in value || 'response' in value || 'delta' in value || 'output' in value) return false;
  return describesError(value);
}

function describesError(value: Fields): boolean {
  const { detail, errors, message } = value;
  if (detail !== undefined && detail !== null) return true;
  if (Array.isArray(errors) && errors.length > 0) return true;
  return (
    typeof message === 'string' && ['code', 'status', 'statusCode', 'error_code'].some((key) => isCode(value[key]))
  );
}

/** Reads an error out of `body`: an object, JSON text or plain text. `undefined` where there is nothing to read. */
export function readErrorBody(body: unknown): ErrorFacts | undefined {
  const value = unwrapBody(body);
  if (typeof value === 'string') return value.trim() === '' ? undefined : facts([], value.slice(0, LONGEST_TEXT));
  if (!isFields(value)) return undefined;
  const places = placesOf(value);
  const message = places.map(messageOf).find((text) => text !== '') ?? '';
  return facts(places, message.slice(0, LONGEST_TEXT));
}

function placesOf(outer: Fields): Fields[] {
  const places: Fields[] = [];
  const add = (value: unknown): void => {
    const fields = unwrapBody(value);
    if (isFields(fields) && !places.includes(fields) && places.length < MOST_DETAILS) places.push(fields);
  };
  const response = isFields(outer['response']) ? outer['response'] : undefined;
  const choice = Array.isArray(outer['choices']) ? (outer['choices'][0] as Fields | null | undefined) : undefined;
  const inner = [outer['error'], response?.['error'], choice?.['error'], outer['errors'], outer['detail']];
  for (const candidate of inner) {
    add(candidate);
    // Some gateways wrap the provider's error once more.
    if (isFields(candidate)) add(candidate['error']);
  }
  for (const place of [...places]) {
    add(place['innererror']);
    add(place['metadata']);
    const raw = isFields(place['metadata']) ? unwrapBody(place['metadata']['raw']) : undefined;
    if (isFields(raw)) add(raw['error']);
    add(raw);
    if (Array.isArray(place['details'])) place['details'].slice(0, MOST_DETAILS).forEach(add);
    else add(place['details']);
  }
  add(outer);
  return places;
}

function facts(places: readonly Fields[], message: string): ErrorFacts {
  const tokens: string[] = [];
  let status: number | undefined;
  let requestId: string | undefined;
  for (const place of places) {
    for (const key of ['code', 'type', 'status', 'reason', 'error_code', 'errorCode', '__type', 'error_type']) {
      const value = place[key];
      if (typeof value === 'string' && value !== '' && value.length <= 100 && value !== 'error') tokens.push(value);
    }
    for (const key of ['code', 'status', 'statusCode', 'status_code', 'http_status']) {
      const named = Number(isCode(place[key]) ? place[key] : NaN);
      if (status === undefined && Number.isInteger(named) && named >= 400 && named <= 599) status = named;
    }
    const id = place['request_id'] ?? place['requestId'];
    if (requestId === undefined && typeof id === 'string') requestId = id;
  }
  const named = (key: string): string | undefined => {
    for (const place of places) if (isCode(place[key]) && place[key] !== 'error') return String(place[key]);
    return undefined;
  };
  return { tokens, code: named('code'), type: named('type') ?? named('status'), message, status, requestId, places };
}

function messageOf(place: Fields): string {
  for (const key of ['message', 'error', 'detail', 'msg', 'Message', 'error_message', 'errorMessage', 'title']) {
    const text = place[key];
    if (typeof text === 'string' && text !== '') return text;
  }
  return '';
}

function isCode(value: unknown): value is string | number {
  return typeof value === 'number' || (typeof value === 'string' && value !== '');
}
