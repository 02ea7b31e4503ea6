import { expect } from 'chai';
import { holdsError, readErrorBody, unwrapBody } from '../../lib/wire/errorBody.ts';
import type { ErrorFacts } from '../../lib/wire/errorBody.ts';

function factsOf(body: unknown): ErrorFacts {
  const facts = readErrorBody(body);
  expect(facts, JSON.stringify(body)).to.not.equal(undefined);
  return facts!;
}

describe('errorBody', () => {
  describe('unwrapBody', () => {
    it('parses text that is an object or a list, blanks around it or not', () => {
      expect(unwrapBody('{"a":1}')).to.deep.equal({ a: 1 });
      expect(unwrapBody(' \n {"a":1} ')).to.deep.equal({ a: 1 });
      expect(unwrapBody('[{"a":1}]')).to.deep.equal({ a: 1 });
    });

    it('leaves other text as it is', () => {
      for (const text of ['5', '"[x"', 'see {"a":1}', '{"a":', '']) expect(unwrapBody(text)).to.equal(text);
    });

    it('parses text of up to 20,000 characters', () => {
      const sized = (length: number): string => `{"a":"${'x'.repeat(length - 8)}"}`;
      expect(unwrapBody(sized(20_000))).to.be.an('object');
      expect(unwrapBody(sized(20_001))).to.be.a('string');
    });

    it('takes of a list the first object with an error, else the first object, else the list', () => {
      const error = { error: 'x' };
      expect(unwrapBody([5, { a: 1 }, error])).to.equal(error);
      expect(unwrapBody([null, { a: 1 }, { b: 1 }])).to.deep.equal({ a: 1 });
      const list = [5, 'x', [error]];
      expect(unwrapBody(list)).to.equal(list);
      const far = [...Array.from({ length: 20 }, () => ({ a: 1 })), error];
      expect(unwrapBody(far)).to.deep.equal({ a: 1 });
      expect(unwrapBody(far.slice(1))).to.equal(error);
    });
  });

  describe('holdsError', () => {
    const errors: readonly Record<string, unknown>[] = [
      { error: 'x' },
      { error: 'x', choices: [] },
      { error: { message: 'x' }, choices: [] },
      { error: {} },
      { error: true, choices: [] },
      { type: 'error', delta: {} },
      { type: 'response.failed', response: {} },
      { object: 'error', output: [] },
      { detail: 'x' },
      { errors: ['x'] },
      ...['code', 'status', 'statusCode', 'error_code'].flatMap((key) => [
        { message: 'x', [key]: 'y' },
        { message: 'x', [key]: 0 },
      ]),
    ];
    const answers: readonly Record<string, unknown>[] = [
      {},
      { error: '' },
      { error: '', detail: 'x' },
      { error: null },
      { error: false },
      { error: {}, choices: [] },
      ...['choices', 'response', 'delta', 'output'].map((key) => ({ [key]: [], detail: 'x' })),
      { detail: null },
      { errors: [] },
      { errors: 'x' },
      { message: 'x' },
      { message: 'x', code: '' },
      { message: 'x', code: null },
      { message: 5, code: 'y' },
      { code: 'y' },
    ];
    for (const value of errors)
      it(`is true of ${JSON.stringify(value)}`, () => expect(holdsError(value)).to.equal(true));
    for (const value of answers) {
      it(`is false of ${JSON.stringify(value)}`, () => expect(holdsError(value)).to.equal(false));
    }
  });

  describe('readErrorBody', () => {
    it('reads nothing where nothing is', () => {
      for (const body of [undefined, null, 5, true, '', ' \n', []]) expect(readErrorBody(body)).to.equal(undefined);
    });

    it('takes a text for the message, up to 20,000 characters of it', () => {
      expect(factsOf('no room')).to.deep.equal({
        tokens: [],
        code: undefined,
        type: undefined,
        message: 'no room',
        status: undefined,
        requestId: undefined,
        places: [],
      });
      for (const body of ['x'.repeat(20_001), { message: 'x'.repeat(20_001) }]) {
        expect(factsOf(body).message).to.have.length(20_000);
      }
    });

    it('finds the message under each of its names', () => {
      for (const key of ['message', 'error', 'detail', 'msg', 'Message', 'error_message', 'errorMessage', 'title']) {
        expect(factsOf({ [key]: 'no room' }).message, key).to.equal('no room');
      }
      expect(factsOf({ message: '', title: 'no room' }).message).to.equal('no room');
      expect(factsOf({ error: { message: '' }, message: 'no room' }).message).to.equal('no room');
      expect(factsOf({ code: 5 }).message).to.equal('');
    });

    it('finds the error wherever it stands, before what is around it', () => {
      const error = { message: 'inner', code: 'inner_code' };
      const bodies: readonly Record<string, unknown>[] = [
        { error },
        { error: [error] },
        { error: { error } },
        { response: { error } },
        { choices: [{ error }] },
        { errors: [error] },
        { detail: error },
        { detail: [error] },
        { error: { innererror: error } },
        { error: { metadata: error } },
        { error: { metadata: { raw: error } } },
        { error: { metadata: { raw: JSON.stringify({ error }) } } },
        { error: { details: error } },
        { error: { details: [error] } },
      ];
      for (const body of bodies) {
        const { message, code, places } = factsOf({ message: 'outer', code: 'outer_code', ...body });
        expect([message, code], JSON.stringify(body)).to.deep.equal(['inner', 'inner_code']);
        expect(places.at(-1), JSON.stringify(body)).to.include({ message: 'outer' });
      }
    });

    it('reads no more than 20 details, and 20 places', () => {
      const details = (count: number): object => ({
        error: { message: 'x', details: Array.from({ length: count }, (_, at) => ({ reason: `r${at}` })) },
      });
      expect(factsOf(details(18)).places).to.have.length(20);
      expect(factsOf(details(40)).places).to.have.length(20);
      const idle = Array.from({ length: 20 }, () => null);
      expect(factsOf({ error: { message: 'x', details: [...idle, { reason: 'late' }] } }).tokens).to.deep.equal([]);
    });

    it('collects names from every field that holds one, short ones that say something', () => {
      for (const key of ['code', 'type', 'status', 'reason', 'error_code', 'errorCode', '__type', 'error_type']) {
        expect(factsOf({ [key]: 'no_room' }).tokens, key).to.deep.equal(['no_room']);
        for (const value of ['', 'error', 5, 'x'.repeat(101)]) {
          expect(factsOf({ [key]: value }).tokens, key).to.deep.equal([]);
        }
        expect(factsOf({ [key]: 'x'.repeat(100) }).tokens, key).to.have.length(1);
      }
      expect(factsOf({ error: { code: 'a', type: 'b' }, code: 'c' }).tokens).to.deep.equal(['a', 'b', 'c']);
    });

    it('finds the status of a failure under each of its names, the innermost first', () => {
      for (const key of ['code', 'status', 'statusCode', 'status_code', 'http_status']) {
        for (const value of [400, '429', 599]) expect(factsOf({ [key]: value }).status, key).to.equal(Number(value));
        for (const value of [200, 399, 600, 450.5, 'x', '', null]) {
          expect(factsOf({ [key]: value }).status, key).to.equal(undefined);
        }
      }
      expect(factsOf({ error: { status: 429 }, status: 500 }).status).to.equal(429);
    });

    it('finds the id of the request under both of its names, the innermost first', () => {
      expect(factsOf({ request_id: 'r1' }).requestId).to.equal('r1');
      expect(factsOf({ requestId: 'r1' }).requestId).to.equal('r1');
      expect(factsOf({ error: { request_id: 'r1' }, request_id: 'r2' }).requestId).to.equal('r1');
      expect(factsOf({ error: { request_id: 5 }, request_id: 'r2' }).requestId).to.equal('r2');
    });

    it('names code and type as the provider does, numbers as text, and a status where there is no type', () => {
      expect(factsOf({ error: { code: 429, type: 'a' }, type: 'b' })).to.include({ code: '429', type: 'a' });
      expect(factsOf({ type: 'error', error: { code: '', type: 'a' } })).to.include({ code: undefined, type: 'a' });
      expect(factsOf({ type: 'error', error: { status: 'UNAVAILABLE' } }).type).to.equal('UNAVAILABLE');
    });
  });
});
