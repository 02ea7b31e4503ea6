import type OpenAI from 'openai';
import type { PlannedCall } from '../plan/ChaosPlan.ts';

interface SdkOptions {
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What somebody writes who has an SDK client: a promise of a stream, or of a whole answer. */
export function askSdk(
  client: OpenAI,
  api: PlannedCall['api'],
  request: object,
  options: SdkOptions,
): PromiseLike<AsyncIterable<unknown>> {
  const asked = { ...request, stream: api !== 'complete' } as never;
  return (
    api === 'respond' ? client.responses.create(asked, options) : client.chat.completions.create(asked, options)
  ) as never;
}
