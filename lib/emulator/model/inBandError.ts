import { anthropicBody } from './dialects/anthropic.ts';
import type { ProviderErrorKind } from './dialects/Dialect.ts';
import { OPENAI_WORDS, openaiBody, openaiMessage } from './dialects/openai.ts';
import type { InBandShape } from './faults.ts';
import type { ProviderApi } from './request.ts';

export interface AnyInBandError {
  readonly value: unknown;
  /** SSE name of the event, if it has one. */
  readonly event: string | undefined;
}

/** An error as an event of a stream that had begun with a 200. */
export function inBandError(
  shape: InBandShape,
  kind: ProviderErrorKind,
  { api, model }: { readonly api: ProviderApi; readonly model: string },
): AnyInBandError {
  const facts = { kind, model, retryAfterMs: undefined, limit: undefined, used: undefined, requested: undefined };
  const { status, type, code } = OPENAI_WORDS[kind];
  const message = openaiMessage(facts);
  const named = api === 'responses' ? 'error' : undefined;
  switch (shape) {
    case 'openai':
      return { value: openaiBody(facts), event: named };
    case 'top_level':
      return { value: { object: 'error', message, type, param: null, code: status }, event: undefined };
    case 'numeric':
      return { value: { error: { message, type, param: null, code: status } }, event: undefined };
    case 'untyped':
      return { value: { error: { message } }, event: undefined };
    case 'anthropic':
      return { value: anthropicBody(facts), event: 'error' };
    case 'flat':
      return { value: { type: 'error', code: code ?? type, message, param: null, sequence_number: 0 }, event: named };
    case 'nested': {
      const error = { type, code: code ?? type, message, param: null };
      return { value: { type: 'error', error, sequence_number: 0 }, event: named };
    }
    case 'openrouter': {
      const choices = [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: 'error' }];
      const value = { id: 'gen-1', object: 'chat.completion.chunk', model, choices, error: { code: status, message } };
      return { value, event: undefined };
    }
  }
}
