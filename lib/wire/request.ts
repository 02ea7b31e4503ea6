import { invalidRequest } from '../core/errors.ts';

/**
 * Checks a chat request in so far as no provider could answer it otherwise. What else is wrong is for the provider to say.
 *
 * @param stream - Whether the call streams: `stream` in the request must not say the opposite.
 * @throws SluiceError `invalid_request` that names the field, what is accepted and what came.
 */
export function validateChatRequest(request: unknown, stream: boolean): void {
  const fields = validateCommon(request, stream);
  const { messages, n } = fields;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalidRequest('messages', 'an array that is not empty', messages);
  }
  for (let at = 0; at < messages.length; at++) {
    const message: unknown = messages[at];
    if (typeof message !== 'object' || message === null) throw invalidRequest(`messages[${at}]`, 'an object', message);
  }
  if (n !== undefined && n !== null && !(Number.isSafeInteger(n) && Number(n) >= 1)) {
    throw invalidRequest('n', 'a whole number of at least 1', n);
  }
}

/**
 * {@link validateChatRequest} for the Responses API: `input` is text or a list of items. It may be absent where a stored
 * `prompt` or a `conversation` takes its place.
 */
export function validateResponseRequest(request: unknown, stream: boolean): void {
  const fields = validateCommon(request, stream, isFilled((request as Fields | null | undefined)?.['prompt']));
  const { input, prompt, conversation, previous_response_id: previous } = fields;
  if (input === undefined || input === null) {
    if (isFilled(prompt) || isFilled(conversation) || isFilled(previous)) return;
    throw invalidRequest('input', 'text or an array that is not empty', input);
  }
  const accepted = typeof input === 'string' ? input !== '' : Array.isArray(input) && input.length > 0;
  if (!accepted) throw invalidRequest('input', 'text or an array that is not empty', input);
}

type Fields = Record<string, unknown>;

/** A stored prompt of the Responses API may name the model itself. */
function validateCommon(request: unknown, stream: boolean, modelless = false): Fields {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) {
    throw invalidRequest('request', 'an object', request);
  }
  const fields = request as Fields;
  const { model, stream: asked } = fields;
  if (!(modelless && model === undefined) && (typeof model !== 'string' || model.trim() === '')) {
    throw invalidRequest('model', 'a string that is not empty', model);
  }
  if (asked !== undefined && asked !== null && asked !== stream) {
    throw invalidRequest('stream', `absent or ${String(stream)}`, asked);
  }
  return fields;
}

function isFilled(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || (typeof value === 'object' && value !== null);
}
