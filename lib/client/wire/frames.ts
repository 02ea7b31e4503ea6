import type { WireData } from '../../core/attempt.ts';
import type { SluiceError } from '../../core/errors.ts';
import { errorBody } from './errorBody.ts';

type Api = 'chat' | 'responses';

/** The end of a chat; the Responses API has none of its own. */
export const DONE_FRAME = 'data: [DONE]\n\n';

/** One event of an answer as providers write it. */
export function valueFrame(api: Api, value: unknown): string {
  return frame(eventOf(api, value), JSON.stringify(value));
}

/** The same, with the JSON as it came where it is known. */
export function dataFrame(api: Api, data: WireData): string {
  const { text } = data;
  const written = text === undefined || text.includes('\n') ? JSON.stringify(data.value) : text;
  // Not asked for the value where it is not needed: it may have to be parsed.
  return frame(api === 'chat' ? undefined : eventOf(api, data.value), written);
}

/** In a stream, providers tell of a failure by an event. */
export function errorFrame(api: Api, error: SluiceError): string {
  return frame(api === 'responses' ? 'error' : undefined, JSON.stringify(errorBody(error)));
}

function eventOf(api: Api, value: unknown): string | undefined {
  const type = api === 'responses' ? (value as { readonly type?: unknown }).type : undefined;
  return typeof type === 'string' ? type : undefined;
}

function frame(event: string | undefined, data: string): string {
  return event === undefined ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`;
}
