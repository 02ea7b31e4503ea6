import { validateChatRequest, validateResponseRequest } from '../wire/request.ts';
import type { AttemptCall } from './chunkReader.ts';

export interface RequestBody {
  readonly body: Readonly<Record<string, unknown>>;
  /** Usage was asked for by us alone: a chunk that only reports it is not what the caller expects. */
  readonly hideUsage: boolean;
}

/**
 * The body to send.
 * @throws SluiceError `invalid_request` where no provider could answer it.
 */
export function requestBody({ api, request, stream }: AttemptCall, includeUsage: boolean): RequestBody {
  if (api === 'chat') validateChatRequest(request, stream);
  else validateResponseRequest(request, stream);
  const body = { ...request, stream };
  if (api !== 'chat' || !stream || !includeUsage) return { body, hideUsage: false };
  const asked = request['stream_options'] as { readonly include_usage?: unknown } | null | undefined;
  if (typeof asked?.include_usage === 'boolean') return { body, hideUsage: false };
  return { body: { ...body, stream_options: { ...asked, include_usage: true } }, hideUsage: true };
}
