import type OpenAI from 'openai';
import type { Observable } from 'rxjs';
import { attemptSettings } from './AttemptOptions.ts';
import type { AttemptOptions } from './AttemptOptions.ts';
import { attemptBy } from './attemptStream.ts';
import type { AttemptCall } from './chunkReader.ts';
import { checkClient, clientSource } from './openaiTransport.ts';
import { serverOf } from './serverOf.ts';

/**
 * An attempt through an OpenAI client.
 * @throws SluiceError `invalid_option` if `client` is no OpenAI client, or an option is out of its range.
 */
export function askClient<T>(
  client: OpenAI,
  { api, request, stream }: Pick<AttemptCall, 'api' | 'request' | 'stream'>,
  options: AttemptOptions,
): Observable<T> {
  checkClient(client);
  const settings = attemptSettings(options, options.server ?? serverOf(client));
  // A copy: what the caller does to the request later does not count.
  const call = { api, request: { ...request }, stream, provider: client };
  return attemptBy(clientSource(client, settings), call, settings);
}
