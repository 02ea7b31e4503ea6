import type { Dialect } from './Dialect.ts';
import { goDuration, wholeSeconds } from './formats.ts';
import { openaiDialect } from './openai.ts';

const MINUTES_PER_DAY = 1_440;
const DAY_MS = 86_400_000;

/** OpenAI's names of headers, but those of requests count a day; the wait comes with a 429 only. */
export const groqDialect: Dialect = {
  name: 'groq',
  settle: 'reserved',
  headers(facts) {
    const out = openaiDialect.headers(facts);
    if (facts.requests) {
      const perDay = facts.requests.perMinute * MINUTES_PER_DAY;
      out['x-ratelimit-limit-requests'] = String(perDay);
      out['x-ratelimit-remaining-requests'] = String(Math.max(0, perDay - facts.served));
      out['x-ratelimit-reset-requests'] = goDuration(Math.min(DAY_MS, (facts.served * DAY_MS) / perDay));
    }
    return out;
  },
  error(facts) {
    const reply = openaiDialect.error(facts);
    // The flex tier's word for having no room.
    if (facts.kind === 'overloaded') return { ...reply, status: 498, body: capacityExceeded };
    const waits = reply.status === 429 && facts.retryAfterMs !== undefined && Number.isFinite(facts.retryAfterMs);
    return { ...reply, headers: waits ? { 'retry-after': wholeSeconds(facts.retryAfterMs ?? 0) } : {} };
  },
};

const capacityExceeded = {
  error: {
    message: 'Flex tier capacity exceeded. Please try again later.',
    type: 'requests',
    code: 'capacity_exceeded',
  },
};
