import { expect } from 'chai';
import fc from 'fast-check';
import { isSluiceError } from '../../lib/core/errors.ts';
import { SSE_DEFAULTS, SseDecoder } from '../../lib/wire/SseDecoder.ts';
import { cut, decode, utf8 } from '../helpers/readSse.ts';

const dataOf = (text: string): readonly string[] => decode([utf8(text)]).events.map(([data]) => data);

function failureOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

function codeOf(work: () => unknown): unknown {
  const error = failureOf(work);
  return isSluiceError(error) ? error.code : error;
}

describe('SseDecoder', () => {
  it('reports data and name of each event', () => {
    expect(decode([utf8('event: error\ndata: {"a":1}\n\ndata: x\n\n')]).events).to.deep.equal([
      ['{"a":1}', 'error'],
      ['x', undefined],
    ]);
  });

  it('ends lines at LF, CR and CRLF, mixed, and never twice at one CRLF', () => {
    expect(dataOf('data: a\n\ndata: b\r\rdata: c\r\n\r\ndata: d\r\ndata: e\n\r')).to.deep.equal([
      'a',
      'b',
      'c',
      'd\ne',
    ]);
    expect(decode([utf8('data: a\r'), utf8('\ndata: b\r'), utf8('\n\r'), utf8('\n')]).events).to.deep.equal([
      ['a\nb', undefined],
    ]);
  });

  it('waits for the rest of a CRLF over reads that bring nothing', () => {
    const nothing = new Uint8Array(0);
    const reads = [utf8('data: a\r'), nothing, utf8('\ndata: b\r'), nothing, nothing, utf8('\n\r\n')];
    expect(decode(reads).events).to.deep.equal([['a\nb', undefined]]);
  });

  it('takes a field without a colon for one without a value', () => {
    expect(decode([utf8('event: x\ndata\ndata: a\n\n')]).events).to.deep.equal([['\na', 'x']]);
    for (const none of ['event', 'event:', 'event: ']) {
      expect(decode([utf8(`event: x\n${none}\ndata: a\n\n`)]).events, none).to.deep.equal([['a', undefined]]);
    }
  });

  it('joins all lines of data, empty ones too', () => {
    expect(dataOf('data: a\ndata: b\ndata\ndata:\ndata: c\n\n')).to.deep.equal(['a\nb\n\n\nc']);
    expect(dataOf('data:\ndata:\n\n')).to.deep.equal(['\n']);
  });

  it('puts a line together from any number of reads', () => {
    for (const length of [1, 2, 1_017, 1_018, 1_019, 1_020, 2_042, 2_043, 2_044, 3_000]) {
      const data = Array.from({ length }, (_, at) => String(at % 10)).join('');
      expect(decode(cut(utf8(`data: ${data}\n\n`), 1)).events, String(length)).to.deep.equal([[data, undefined]]);
    }
  });

  it('takes one blank after the colon as none of the value, and none as well', () => {
    expect(dataOf('data:a\n\ndata:  b\n\n')).to.deep.equal(['a', ' b']);
  });

  it('drops one byte-order mark at the start, wherever it is cut, and no other', () => {
    const marked = Buffer.from('efbbbf646174613a2061efbbbf0a0aefbbbf646174613a20620a0a', 'hex');
    for (const size of [1, 2, 3, 100]) expect(decode(cut(marked, size)).events).to.deep.equal([['a\ufeff', undefined]]);
  });

  it('counts comments and does not let them end or become an event', () => {
    const { events, comments } = decode([utf8(': ping\n\ndata: a\n:\ndata: b\n\n:x\n')]);
    expect(events).to.deep.equal([['a\nb', undefined]]);
    expect(comments).to.equal(3);
  });

  it('ignores ids, retry times, unknown fields, and fields whose names only begin like known ones', () => {
    expect(dataOf('id: 1\nretry: 5\nfoo: 1\ndatabase: 2\neventual: 3\nDATA: 4\n data: 5\ndata: a\n\n')).to.deep.equal([
      'a',
    ]);
    for (const other of [
      'eventual: 3',
      'even: 3',
      'evens: 3',
      'events',
      'e',
      'dat: 3',
      'dada: 3',
      'datax',
      'd',
      'd:3',
    ]) {
      expect(decode([utf8(`event: x\n${other}\ndata: a\n\n`)]).events, other).to.deep.equal([['a', 'x']]);
    }
  });

  it('reports no event without data, and forgets its name', () => {
    expect(decode([utf8('event: ping\n\ndata\n\ndata:\n\ndata: a\n\n')]).events).to.deep.equal([['a', undefined]]);
  });

  it('keeps NUL and every other character of the data', () => {
    expect(dataOf('data: a\0b\u2028c\n\n')).to.deep.equal(['a\0b\u2028c']);
  });

  it('flushes a whole event that is left at the end, and drops one that was cut', () => {
    expect(dataOf('data: {"a":1}')).to.deep.equal(['{"a":1}']);
    expect(dataOf('data: {"a":1}\n')).to.deep.equal(['{"a":1}']);
    expect(dataOf('data: {"a":\ndata: 1}\r')).to.deep.equal(['{"a":\n1}']);
    expect(dataOf('data: [DONE]')).to.deep.equal(['[DONE]']);
    expect(dataOf('data: {"a":1')).to.deep.equal([]);
    expect(dataOf('data: {"a":1\n')).to.deep.equal([]);
    for (const cutCharacter of [[0xc3], [0xe5, 0x8c], [0xf0, 0x9f, 0x9a]]) {
      const whole = utf8('data: {"a":1}');
      expect(decode([Uint8Array.of(...whole, ...cutCharacter)]).events).to.deep.equal([]);
    }
    expect(dataOf('data: {"a":"x\ndata: y')).to.deep.equal([]);
    expect(dataOf('da')).to.deep.equal([]);
    expect(dataOf('data: 12')).to.deep.equal([]);
  });

  it('gives the same events however the bytes are split', () => {
    const piece = fc.constantFrom(
      'data: ',
      'data',
      'event: x',
      ':c',
      '\n',
      '\r',
      '\r\n',
      '\n\n',
      '{"a":"é北🚀"}',
      '\0',
      'id: 1',
      '\ufeff',
      'x',
    );
    const bytes = fc.oneof(
      fc.array(piece, { maxLength: 30 }).map((all) => utf8(all.join(''))),
      fc.uint8Array({ maxLength: 60 }),
    );
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(60), { maxLength: 8 }), (whole, cuts) => {
        const ends = [...cuts.filter((at) => at < whole.length).sort((a, b) => a - b), whole.length];
        const reads = ends.map((end, at) => whole.subarray(ends[at - 1] ?? 0, end));
        const expected = decode([whole]);
        expect(decode(reads)).to.deep.equal(expected);
        expect(decode(cut(whole, 1))).to.deep.equal(expected);
      }),
      { numRuns: 400 },
    );
  });

  it('decodes any bytes as a TextDecoder would decode them whole', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 5 }), (tail, size) => {
        const clean = tail.filter((byte) => byte !== 10 && byte !== 13);
        const line = Buffer.concat([utf8('data: {"a":'), clean, utf8('\n\n')]);
        expect(decode(cut(line, size)).events).to.deep.equal([
          [`{"a":${new TextDecoder().decode(Buffer.concat([utf8('.'), clean])).slice(1)}`, undefined],
        ]);
      }),
      { numRuns: 300 },
    );
  });

  it('refuses an event above the limit, in one line or many, whole or in pieces', () => {
    const options = { maxEventBytes: 100 };
    const pass = (text: string, size = 1_000): unknown => codeOf(() => decode(cut(utf8(text), size), options));
    for (const size of [1, 7, 1_000]) {
      expect(pass(`data: ${'y'.repeat(100)}\n\n`, size)).to.equal(undefined);
      expect(pass(`data: ${'y'.repeat(101)}\n\n`, size)).to.equal('upstream_body_invalid');
      expect(pass(`${'data: yyyyyyyyy\n'.repeat(10)}\n`, size)).to.equal(undefined);
      expect(pass(`${'data: yyyyyyyyyy\n'.repeat(10)}\n`, size)).to.equal('upstream_body_invalid');
      expect(pass(`data: ${'é'.repeat(50)}\n\n`, size)).to.equal(undefined);
      expect(pass(`data: ${'é'.repeat(51)}\n\n`, size)).to.equal('upstream_body_invalid');
      expect(pass(`data: ${'🚀'.repeat(25)}\n\n`, size)).to.equal(undefined);
      expect(pass(`event: ${'e'.repeat(60)}\ndata: ${'y'.repeat(60)}\n\n`, size)).to.equal('upstream_body_invalid');
      expect(pass(`: ${'c'.repeat(200)}\n`, size)).to.equal('upstream_body_invalid');
    }
    expect(codeOf(() => decode([utf8(`data: ${'y'.repeat(500)}`)]))).to.equal(undefined);
  });

  it('takes a line as long as the name of an event may make it, and refuses a longer one before it ends', () => {
    for (const size of [1, 7, 1_000]) {
      const pass = (text: string): unknown => codeOf(() => decode(cut(utf8(text), size), { maxEventBytes: 100 }));
      for (const end of ['', '\n', '\n\ndata: a\n\n']) {
        expect(pass(`:${'c'.repeat(106)}${end}`)).to.equal(undefined);
        expect(pass(`event: ${'e'.repeat(100)}${end.replace('data: a', '')}`)).to.equal(undefined);
        expect(pass(`:${'c'.repeat(107)}${end}`)).to.equal('upstream_body_invalid');
      }
      const decoder = new SseDecoder({ event() {}, comment() {} }, { maxEventBytes: 100 });
      const push = (): void => [...cut(utf8(`:${'c'.repeat(107)}`), size)].forEach((read) => decoder.push(read));
      expect(codeOf(push)).to.equal('upstream_body_invalid');
      expect(pass('data: yyyyyyyyyy\n'.repeat(9))).to.equal(undefined);
      expect(pass('data: yyyyyyyyyy\n'.repeat(10))).to.equal('upstream_body_invalid');
    }
  });

  it('names the limit that an event was above', () => {
    const error = failureOf(() => decode([utf8(`data: ${'y'.repeat(11)}`)], { maxEventBytes: 4 }));
    const message = 'an event of the stream is larger than 4 bytes';
    expect(error).to.include({ code: 'upstream_body_invalid', limit: 4, message });
  });

  it('takes 8 MiB by default, and refuses a limit that is none', () => {
    expect(SSE_DEFAULTS.maxEventBytes).to.equal(8_388_608);
    for (const maxEventBytes of [0, -1, NaN, 1.5, Infinity]) {
      const error = failureOf(() => new SseDecoder({ event() {}, comment() {} }, { maxEventBytes }));
      expect(error).to.include({ code: 'invalid_option' });
      expect(error).to.have.property('message').that.includes('maxEventBytes');
    }
  });

  it('lets an exception of a handler through', () => {
    const decoder = new SseDecoder({
      event() {
        throw new Error('mine');
      },
      comment() {},
    });
    expect(() => decoder.push(utf8('data: a\n\n'))).to.throw('mine');
  });
});
