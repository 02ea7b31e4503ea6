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
  const asked = request['stream_options'] as { readonly include_usage?: unknown } | null | undefined;
  const hideUsage = api === 'chat' && stream && includeUsage && typeof asked?.include_usage !== 'boolean';
  const body = hideUsage
    ? { ...request, stream, stream_options: { ...asked, include_usage: true } }
    : { ...request, stream };
  return { body, hideUsage };
}
