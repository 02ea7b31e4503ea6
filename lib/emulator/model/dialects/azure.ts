import type { Dialect } from './Dialect.ts';
import { wholeSeconds } from './formats.ts';
import { OPENAI_WORDS, openaiDialect, openaiMessage, openaiRetryHeaders } from './openai.ts';

/** OpenAI's names of headers; resets are whole seconds and codes of rate limits are the status. */
export const azureDialect: Dialect = {
  name: 'azure',
  settle: 'reserved',
  headers(facts) {
    const out = openaiDialect.headers(facts);
    out['apim-request-id'] = facts.requestId;
    if (facts.requests)
      out['x-ratelimit-reset-requests'] = wholeSeconds(Math.min(facts.requests.msUntilFull, 86_400_000));
    if (facts.tokens) out['x-ratelimit-reset-tokens'] = wholeSeconds(Math.min(facts.tokens.msUntilFull, 86_400_000));
    return out;
  },
  error(facts) {
    const { status, code, type } = OPENAI_WORDS[facts.kind];
    const waits = facts.kind === 'requests' || facts.kind === 'tokens' || facts.kind === 'concurrency';
    const body = waits
      ? {
          error: {
            code: '429',
            message: `Requests to the ChatCompletions_Create Operation have exceeded the ${facts.kind === 'tokens' ? 'token' : 'call'} rate limit of your current pricing tier. Please retry after ${wholeSeconds(facts.retryAfterMs ?? 1000)} seconds.`,
          },
        }
      : { error: { code: code ?? type, message: openaiMessage(facts) } };
    const headers = openaiRetryHeaders(facts.retryAfterMs);
    const millis = headers['retry-after-ms'];
    return { status, headers: millis === undefined ? headers : { ...headers, 'x-ms-retry-after-ms': millis }, body };
  },
};
