import type { SluiceError } from '../../core/errors.ts';
import { isFields } from '../../wire/errorBody.ts';
import { errorBody, statusOf, waitHeaders } from '../wire/errorBody.ts';
import type { OwnAnswer } from './ResendingClient.ts';

/** About the bytes on the way from the provider, which are not those that the caller reads. */
const OF_THE_WIRE = ['content-encoding', 'content-length', 'transfer-encoding', 'connection', 'keep-alive'];

/**
 * A failed call as an answer that the SDK does not retry. Where `answer` is what the provider said, its headers and body
 * are kept.
 */
export function errorResponse(error: SluiceError, answer: OwnAnswer | undefined): Response {
  const headers = passedOn(answer?.headers);
  headers.set('content-type', 'application/json');
  headers.delete('retry-after');
  headers.delete('retry-after-ms');
  for (const [name, value] of Object.entries(waitHeaders(error))) headers.set(name, value);
  const { requestId } = error;
  if (requestId !== undefined && !headers.has('x-request-id')) setIfValid(headers, 'x-request-id', requestId);
  const body = isErrorBody(answer?.body) ? answer?.body : JSON.stringify(errorBody(error));
  return new Response(body ?? null, { status: statusOf(error), headers });
}

/** A copy of a provider's headers for the caller. */
export function passedOn(headers: Headers | undefined): Headers {
  const copy = new Headers(headers);
  for (const name of OF_THE_WIRE) copy.delete(name);
  return copy;
}

export function setIfValid(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    // Not every text may stand in a header.
  }
}

function isErrorBody(body: string | undefined): boolean {
  if (body === undefined) return false;
  try {
    const value: unknown = JSON.parse(body);
    return isFields(value) && isFields(value['error']);
  } catch {
    return false;
  }
}
