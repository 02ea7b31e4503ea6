import type OpenAI from 'openai';
import { createSluice } from '../../../lib/client/createSluice.ts';
import type { Sluice } from '../../../lib/client/Sluice.ts';
import type { AnswerPart } from '../../../lib/operators/answerPart.ts';
import type { Observable } from 'rxjs';
import { requestOf } from './byHand.ts';
import type { ByHandOptions } from './byHand.ts';
import type { UpstreamInput } from './upstreamCase.ts';

/** One client under the policy of the case, by its calls and by its `fetch` at once. */
export function installedTwice({ input, client, runtime, signal }: ByHandOptions): Observable<AnswerPart> {
  const { fetch } = client as unknown as { readonly fetch: typeof globalThis.fetch };
  const inner: OpenAI = client.withOptions({ fetch: (url, init) => sluice.fetch(url, init) });
  const sluice: Sluice = createSluice(inner, policyOf(input), { runtime, fetch });
  return sluice.chat(requestOf(input) as never, { signal });
}

function policyOf({ policy }: UpstreamInput): object {
  const { max_attempts: attempts, base_ms: baseMs } = policy === undefined || policy === 'defaults' ? {} : policy;
  return { models: { default: { retry: { attempts, baseMs } } } };
}
