import { expect } from 'chai';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { encodeServerSentEvent } from '../../lib/http/ServerSentEvent.ts';
import type { ServerSentEvent } from '../../lib/http/ServerSentEvent.ts';
import { isSluiceError } from '../../lib/core/errors.ts';

interface Parsed {
  readonly events: { readonly id?: string | undefined; readonly event?: string | undefined; readonly data: string }[];
  readonly comments: string[];
  readonly retries: number[];
  readonly errors: unknown[];
}

function parsed(text: string): Parsed {
  const found: Parsed = { events: [], comments: [], retries: [], errors: [] };
  const parser = createParser({
    onEvent: ({ id, event, data }) => found.events.push({ id, event, data }),
    onComment: (comment) => found.comments.push(comment),
    onRetry: (retry) => found.retries.push(retry),
    onError: (error) => found.errors.push(error),
  });
  parser.feed(text);
  return found;
}

const asLf = (text: string): string => text.replaceAll(/\r\n|\r/g, '\n');

describe('encodeServerSentEvent', () => {
  it('writes each field on its line and ends the event', () => {
    const event = { id: 'a-1', event: 'delta', data: '{"text":"Hi"}', retry: 3000, comment: 'first' };
    expect(encodeServerSentEvent(event)).to.equal(
      ': first\nevent: delta\nid: a-1\nretry: 3000\ndata: {"text":"Hi"}\n\n',
    );
  });

  it('writes comments alone', () => {
    expect(encodeServerSentEvent({ comment: '' })).to.equal(': \n\n');
  });

  it('keeps what stands in a field within it, for any text', () => {
    const line = fc.string({ unit: fc.constantFrom('a', ' ', ':', 'é', '\u2028', 'data: x', 'id', '"') });
    const text = fc.string({ unit: fc.constantFrom('a', ' ', ':', '\n', '\r', '\r\n', 'data: x', '\0', '😀') });
    fc.assert(
      fc.property(line, line, text, text, (id, event, data, comment) => {
        const found = parsed(encodeServerSentEvent({ id, event, data, comment }));
        expect(found.errors).to.deep.equal([]);
        expect(found.retries).to.deep.equal([]);
        expect(found.comments).to.deep.equal(asLf(comment).split('\n'));
        const [got] = found.events;
        expect(found.events).to.have.length(1);
        expect(got?.data).to.equal(asLf(data));
        expect(got?.id).to.equal(id);
        expect(got?.event ?? '').to.equal(event);
      }),
    );
  });

  const unfit: readonly (readonly [string, ServerSentEvent])[] = [
    ['a name of two lines', { event: 'delta\ndata: x' }],
    ['a name with CR', { event: 'delta\r' }],
    ['an id of two lines', { id: '1\n2' }],
    ['an id with NUL', { id: '1\0' }],
    ['an id that is no text', { id: 7 as unknown as string }],
    ['a negative retry', { retry: -1 }],
    ['a retry of NaN', { retry: NaN }],
    ['a retry with a fraction', { retry: 1.5 }],
  ];
  for (const [what, event] of unfit) {
    it(`refuses ${what}`, () => {
      expect(() => encodeServerSentEvent(event))
        .to.throw()
        .that.satisfies(isSluiceError);
    });
  }
});
