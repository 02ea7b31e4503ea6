import { expect } from 'chai';
import fc from 'fast-check';
import { OpenAI } from 'openai';
import { chat } from '../../lib/sources/chat.ts';
import { complete } from '../../lib/sources/complete.ts';
import { respond } from '../../lib/sources/respond.ts';
import { record } from '../helpers/record.ts';

const messages = [{ role: 'user' as const, content: 'hi' }];

/** Pieces of what providers send, whole and broken. */
const piece = fc.oneof(
  fc.constantFrom(
    'data: ',
    'event: error\n',
    'event: ping\n',
    ': keep-alive\n\n',
    '\n\n',
    '\r\n\r\n',
    '\r',
    '\ufeff',
    '[DONE]',
    'data: [DONE]\n\n',
    'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    'data: {"choices":[null]}\n\n',
    'data: {"choices":[{"delta":null,"index":"x"}]}\n\n',
    'data: {"choices":{}}\n\n',
    'data: {"choices":[],"usage":{"total_tokens":-1}}\n\n',
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[null,{"function":null}]}}]}\n\n',
    'data: {"error":null}\n\n',
    'data: {"error":{"code":7}}\n\n',
    'data: {"type":"response.created"}\n\n',
    'data: {"type":"response.output_text.delta","delta":"a"}\n\n',
    'data: {"type":"response.completed","response":null}\n\n',
    'data: {"type":"response.failed"}\n\n',
    'data: null\n\n',
    'data: 7\n\n',
    'data: []\n\n',
    'data: "x"\n\n',
    'data: {"__proto__":{"choices":[1]}}\n\n',
    '{"choices":[{"index":0,"message":{"content":"a","tool_calls":[1]},"finish_reason":"stop"}]}',
    '{"choices":[{}]}',
    '[{"error":{"message":"x"}}]',
    '<!DOCTYPE html>',
  ),
  fc.string({ maxLength: 12 }),
);
const body = fc.oneof(
  fc.array(piece, { maxLength: 12 }).map((pieces) => new TextEncoder().encode(pieces.join(''))),
  fc.uint8Array({ maxLength: 64 }),
);
const headers = fc.record({
  'content-type': fc.constantFrom('text/event-stream', 'application/json', 'text/html', ''),
  'retry-after': fc.constantFrom('', '-1', 'NaN', '1e99', 'Wed, 21 Oct 2015 07:28:00 GMT', '5'),
  'x-request-id': fc.constantFrom('', 'r1'),
});
const answer = fc.record({
  body,
  splits: fc.array(fc.nat(64), { maxLength: 8 }),
  breaks: fc.boolean(),
  status: fc.constantFrom(200, 200, 200, 201, 400, 429, 500, 599),
  headers,
});

function clientFor(given: Given): OpenAI {
  return new OpenAI({ apiKey: 'key', fetch: () => Promise.resolve(responseOf(given)) });
}

interface Given {
  readonly body: Uint8Array;
  readonly splits: readonly number[];
  readonly breaks: boolean;
  readonly status: number;
  readonly headers: Record<string, string>;
}

function responseOf({ body: bytes, splits, breaks, status, headers: fields }: Given): Response {
  const ends = [...new Set([...splits.filter((at) => at < bytes.length), bytes.length])].sort((a, b) => a - b);
  let from = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const end = ends.shift();
      if (end !== undefined) controller.enqueue(bytes.slice(from, (from = end)));
      else if (breaks) controller.error(new TypeError('terminated'));
      else controller.close();
    },
  });
  return new Response(stream, { status, headers: fields });
}

describe('sources', () => {
  const sources = {
    chat: (client: OpenAI) => chat(client, { model: 'm', messages }),
    respond: (client: OpenAI) => respond(client, { model: 'm', input: 'hi' }),
    complete: (client: OpenAI) => complete(client, { model: 'm', messages }),
  };

  for (const [name, source] of Object.entries(sources)) {
    it(`end any answer exactly once, in success or in a SluiceError: ${name}`, async () => {
      await fc.assert(
        fc.asyncProperty(answer, async (given) => {
          const seen = record<unknown>(source(clientFor(given)));
          await seen.end;
          if (seen.ended === 'complete') return;
          const { error } = seen;
          // A fault of our own would show as a local one.
          expect(error.source).to.equal('upstream');
          expect(error.attempts).to.have.length(1);
          const wait = error.retryAfterMs;
          expect(wait === undefined || (wait >= 0 && wait < 2 ** 31)).to.equal(true);
        }),
        { numRuns: 120 },
      );
    }).timeout(30_000);
  }
});
