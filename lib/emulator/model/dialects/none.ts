import type { Dialect } from './Dialect.ts';
import { OPENAI_WORDS, openaiMessage } from './openai.ts';

/** Says nothing of limits and waits: no headers, and bodies with a message only. */
export const noDialect: Dialect = {
  name: 'none',
  settle: 'reserved',
  headers: () => ({}),
  error(facts) {
    const silent = { ...facts, retryAfterMs: undefined };
    return {
      status: OPENAI_WORDS[facts.kind].status,
      headers: {},
      body: { error: { message: openaiMessage(silent) } },
    };
  },
};
