import { expect } from 'chai';
import fc from 'fast-check';
import { inspect } from 'node:util';
import type { LimitReading } from '../../lib/core/hints.ts';
import { isSluiceError } from '../../lib/core/errors.ts';
import type { SluiceError } from '../../lib/core/errors.ts';
import { ChatReader } from '../../lib/wire/ChatReader.ts';
import { classifyInStream, classifyResponse, classifyThrown } from '../../lib/wire/classify.ts';
import { headerReader } from '../../lib/wire/headers.ts';
import { readHints } from '../../lib/wire/hints.ts';
import { ResponsesReader } from '../../lib/wire/ResponsesReader.ts';
import { CONTEXT, cut, decode, utf8 } from '../helpers/readSse.ts';

const SECRET = 'zQ9-SECRET-xK42';

const headerName = fc.constantFrom(
  'retry-after',
  'retry-after-ms',
  'x-ms-retry-after-ms',
  'x-should-retry',
  'date',
  'content-type',
  'ratelimit',
  'x-groq-region',
  ...['limit', 'remaining', 'reset'].flatMap((field) => [
    `x-ratelimit-${field}-requests`,
    `x-ratelimit-${field}-tokens`,
    `x-ratelimit-${field}`,
    `anthropic-ratelimit-tokens-${field}`,
    `ratelimitbysize-${field}`,
  ]),
);
const headerValue = fc.oneof(
  fc.string(),
  fc.double().map(String),
  fc.bigInt().map(String),
  fc.constantFrom(
    '0',
    '-1',
    '1e400',
    '9'.repeat(400),
    'Infinity',
    'NaN',
    '1767225607',
    'Thu, 01 Jan 9999 00:00:20 GMT',
    '9999-01-01T00:00:00Z',
    '1h',
    '999999999h',
    SECRET,
    'text/html',
  ),
  fc.tuple(fc.nat(), fc.constantFrom('ms', 's', 'm', 'h', 'd')).map(([count, unit]) => `${count}${unit}`),
);
const headers = fc.dictionary(headerName, headerValue, { maxKeys: 6 });

const key = fc.constantFrom(
  'error',
  'message',
  'code',
  'type',
  'status',
  'details',
  'retryDelay',
  'retry_after',
  'resets_at',
  'metadata',
  'raw',
  'headers',
  'violations',
  'quotaId',
  'choices',
  'delta',
  'content',
  'response',
  'param',
  'errors',
  'detail',
  'X-RateLimit-Reset',
  'finish_reason',
  'usage',
  'item',
  'object',
);
const leaf = fc.oneof(
  fc.constantFrom(
    null,
    true,
    0,
    -1,
    NaN,
    Infinity,
    429,
    503,
    '34s',
    'try again in 5s',
    'rate_limit_exceeded',
    'response.failed',
    'error',
    '{"error":{}}',
    '<html>x</html>',
    `Bad value ${SECRET} here`,
    SECRET,
  ),
  fc.string(),
  fc.double(),
);
const body = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 5 },
    leaf,
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(key, tie('any'), { maxKeys: 5 }),
  ),
})).any;
const status = fc.oneof(fc.integer({ min: 100, max: 599 }), fc.constantFrom(200, 429, 503, 400));

/** A wait that a timer can hold, or none. */
function isWait(ms: number | undefined): boolean {
  return ms === undefined || (Number.isFinite(ms) && ms >= 0 && ms < 2 ** 31);
}

function isReading(reading: LimitReading | undefined): boolean {
  if (reading === undefined) return true;
  const { limit, remaining, resetMs, windowMs } = reading;
  const counts = [limit, remaining].every((count) => count === undefined || (Number.isFinite(count) && count >= 0));
  return counts && isWait(resetMs) && Number.isFinite(windowMs) && windowMs > 0;
}

/** Everything of an error that can reach a log. */
function shown(error: SluiceError): string {
  return [
    inspect(error, { depth: 10, showHidden: true }),
    JSON.stringify(error),
    inspect(error.cause),
    error.message,
    error.stack,
  ].join('\n');
}

describe('wire, fuzzed', () => {
  it('answers any headers and body with a wait that a timer can hold, or none, and leaks nothing', () => {
    fc.assert(
      fc.property(
        status,
        headers,
        body,
        fc.oneof(fc.double(), fc.constant(1_767_225_600_000)),
        (code, fields, value, wallNowMs) => {
          const head = { status: code, headers: headerReader(fields), body: value, wallNowMs };
          const hints = readHints(head);
          expect(isWait(hints?.retryAfterMs), 'hint').to.equal(true);
          expect(isReading(hints?.requests) && isReading(hints?.tokens), 'limits').to.equal(true);
          const error = classifyResponse(head);
          expect(isWait(error.retryAfterMs), 'error').to.equal(true);
          expect(error.message.length).to.be.below(400);
          expect(shown(error)).to.not.include('SECRET');
        },
      ),
      { numRuns: 300 },
    );
  });

  it('reads any chunk without a throw, and leaks nothing', () => {
    fc.assert(
      fc.property(
        fc.array(body, { maxLength: 5 }),
        fc.option(fc.constantFrom('error', 'message'), { nil: undefined }),
        (values, event) => {
          for (const reader of [new ChatReader(CONTEXT), new ResponsesReader(CONTEXT)]) {
            for (const value of values) {
              const verdict = reader.read(value, event);
              if (isSluiceError(verdict)) expect(shown(verdict)).to.not.include('SECRET');
              else expect(verdict).to.be.oneOf(['content', 'quiet']);
            }
            expect(reader.partial().restarts).to.equal(0);
          }
          for (const value of values) {
            const error = classifyInStream(value, CONTEXT);
            if (error !== undefined) expect(isWait(error.retryAfterMs)).to.equal(true);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('classifies anything that can be thrown, and leaks nothing', () => {
    const thrown = fc.oneof(
      fc.anything(),
      body,
      fc.tuple(fc.string(), body, fc.constantFrom('ECONNRESET', 'x', SECRET, 429)).map(([text, value, code]) =>
        Object.assign(new Error(`${text} ${SECRET}`, { cause: value }), {
          code,
          error: value,
          status: value,
          headers: { authorization: SECRET },
        }),
      ),
    );
    fc.assert(
      fc.property(thrown, (value) => {
        const error = classifyThrown(value);
        expect(isSluiceError(error)).to.equal(true);
        expect(isWait(error.retryAfterMs)).to.equal(true);
        expect(shown(error)).to.not.include('SECRET');
      }),
      { numRuns: 200 },
    );
  });

  it('never throws anything but a SluiceError over any bytes, whatever the split', () => {
    const frame = fc.oneof(
      fc.uint8Array({ maxLength: 30 }),
      fc
        .constantFrom('data: ', '{"choices":[{"delta":{"content":"x"}}]}', '\n\n', '\r', 'event: error', '[DONE]')
        .map(utf8),
    );
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 12 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 60 }),
        (frames, size, maxEventBytes) => {
          const bytes = Buffer.concat(frames);
          const outcome = (reads: Iterable<Uint8Array>): unknown => {
            try {
              return decode(reads, { maxEventBytes }).events;
            } catch (error) {
              expect(isSluiceError(error)).to.equal(true);
              return (error as SluiceError).code;
            }
          };
          expect(outcome(cut(bytes, size))).to.deep.equal(outcome([bytes]));
        },
      ),
      { numRuns: 200 },
    );
  });
});
