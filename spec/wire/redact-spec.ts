import { expect } from 'chai';
import fc from 'fast-check';
import {
  causeOf,
  fieldOf,
  nameOf,
  redact,
  redactContentType,
  redactHtml,
  redactName,
  textOf,
} from '../../lib/wire/redact.ts';

describe('redact', () => {
  it('keeps what providers say about limits', () => {
    const said =
      'Rate limit reached on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms.';
    expect(redact(said)).to.equal(said);
    expect(redact('Worker limit reached (33/32)')).to.equal('Worker limit reached (33/32)');
    expect(redact('Unknown field: stream_options')).to.equal('Unknown field: stream_options');
    expect(redact('connect ECONNREFUSED')).to.equal('connect ECONNREFUSED');
  });

  it('leaves out keys, names, addresses and everything that is no word of the trade', () => {
    expect(redact('Incorrect API key provided: sk-proj-abc123. Contact bob@example.com')).to.equal(
      'Incorrect API key provided: … Contact …',
    );
    expect(redact('Rate limit reached for gpt-secret-7 in organization org-abc')).to.equal(
      'Rate limit reached for … in organization …',
    );
    expect(redact('Invalid prompt: SECRET-PROMPT and SECRET')).to.equal('Invalid prompt: … and …');
    expect(redact('card 4111111111111111 ok')).to.equal('…');
    expect(redact('ESECRET')).to.equal('…');
  });

  it('keeps numbers, amounts, ratios and durations of every form', () => {
    for (const word of [
      ...[
        '5',
        '12345678',
        '1,234',
        '30,000,000',
        '$5',
        '$1,500',
        '99.5%',
        '0.123456789',
        '$12.50',
        '3/5',
        '12345678/1',
      ],
      ...[
        '5ns',
        '3us',
        '7µs',
        '644ms',
        '1.5s',
        '6m0s',
        '1h30m5.25s',
        '7d',
        '10k',
        '20K',
        '3M',
        '4MB',
        '5KB',
        '1d2h3m4s',
      ],
    ]) {
      expect(redact(word), word).to.equal(word);
    }
  });

  it('leaves out numbers that are longer, and what only ends or begins like one', () => {
    for (const word of [
      ...['123456789', '1,23', '1234,567', '1,234,567,890', '0.1234567890', '$', 'x1,234', '1,234x', '1/123456789'],
      ...['x5ms', '5msx', '1d2h3m4s5ms', '5.s', '123456789ms', '0.1234567890s', '12/34/56'],
    ]) {
      expect(redact(`limit ${word} limit`), word).to.not.contain(word);
    }
  });

  it('keeps codes of systems, and nothing that is only spelt like one', () => {
    for (const code of [
      'ECONNRESET',
      'EPIPE',
      'EAI_AGAIN',
      'ETIMEDOUT',
      'ERR_STREAM_PREMATURE_CLOSE',
      'UND_ERR_SOCKET',
    ]) {
      expect(redact(code), code).to.equal(code);
    }
    for (const word of ['ECONNRESETX', 'XECONNRESET', 'ERR_AB', 'ERR_lower', 'EALICE', 'UND_ERR_', 'xERR_SOCKET']) {
      expect(redact(word), word).to.equal('…');
    }
  });

  it('keeps words in brackets, with endings and joined, if each part is one', () => {
    for (const words of [
      ...[
        '(rate) [limit] {model} <error> *request* "token"',
        "the model's limit",
        'the model’s limit',
        "didn't",
        "doesn't",
      ],
      ...['""rate""', "limit'rate", 'rate--limit', 'REQUEST', 'ERROR_CODE'],
      ...['rate-limit/error', 'max_tokens=5', 'input+output', 'status:', 'limit!?', 'http-2', 'error-12', '…'],
    ]) {
      expect(redact(words), words).to.equal(words);
    }
    for (const word of [
      'rate-bobby',
      "bobby's",
      'limit=bobby',
      'bobby1',
      'max_bobby',
      '1-2-bobby',
      'error-123',
      "model's-limit",
    ]) {
      expect(redact(word), word).to.equal('…');
    }
  });

  it('shows marks that stand alone, and no long row of them', () => {
    expect(redact('limit - 5 : *** !')).to.equal('limit - 5 : *** !');
    expect(redact('limit ****')).to.equal('limit …');
  });

  it('joins what it leaves out, takes white space for one, and ends where it is full with a mark', () => {
    expect(redact('  bobby   tables \n limit\t\tbobby ')).to.equal('… limit …');
    expect(redact('')).to.equal('');
    const full = redact('limit '.repeat(60));
    expect(full).to.match(/^(?:limit )+…$/);
    expect(full.length).to.be.within(194, 200);
    expect(redact(`${'limit '.repeat(32)}bobby limit limit`)).to.match(/limit …$/);
    const longest = `${'limit '.repeat(31)}rate request`;
    expect(redact(longest)).to.equal(longest).and.have.length(198);
    expect(redact(`${' '.repeat(4_000)}limit`)).to.equal('');
  });

  it('does not take a long word of parts for words', () => {
    const parts = 'rate-limit-'.repeat(6);
    expect(redact(parts.slice(0, 60))).to.equal(parts.slice(0, 60));
    expect(redact(`${parts.slice(0, 55)}limits`)).to.equal('…');
    expect(redact(parts)).to.equal('…');
  });

  it('leaves out long quotations even of such words', () => {
    const quoted = 'the model said too much about the request and the server';
    expect(redact(`Invalid value: '${quoted}' in messages`)).to.equal('Invalid value: … in messages');
    expect(redact(`Invalid value: "${quoted}`)).to.equal('Invalid value: …');
  });

  it('is at most 200 characters long, and takes no time over a long text', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 3_000 }), (text) => void expect(redact(text).length).to.be.at.most(200)),
      { numRuns: 50 },
    );
    expect(redact('rate limit '.repeat(100_000)).length).to.be.within(150, 200);
    const before = process.cpuUsage().user;
    for (const part of ['<', '"', 'a-', '<script', '&', '1']) redactHtml(part.repeat(200_000));
    expect(process.cpuUsage().user - before).to.be.below(500_000);
  });

  it('takes the markup, scripts and styles off a page', () => {
    expect(
      redactHtml('<html><style>body{}</style><h1>502 Bad&nbsp;Gateway</h1><script>rate()</script><p>proxy error'),
    ).to.equal('502 Bad Gateway proxy error');
  });

  it('lets names of errors pass, and nothing that looks like a key', () => {
    for (const name of [
      'insufficient_quota',
      'RESOURCE_EXHAUSTED',
      'ECONNRESET',
      '429',
      'BadRequestError',
      'AllocationQuota.FreeTierOnly',
    ]) {
      expect(redactName(name)).to.equal(name);
    }
    for (const name of [
      undefined,
      '',
      'sk-TEST-0000',
      'has\nlines',
      'x'.repeat(65),
      'a1b2c3d4e5f6a7b8c9d0e1f2',
      '123456',
      '<b>',
      'token_1234567890',
      'my private prompt',
    ]) {
      expect(redactName(name), String(name)).to.equal(undefined);
    }
  });

  it('takes scripts and tags off that are not closed, whatever their case', () => {
    expect(redactHtml('error<SCRIPT src="x">rate limit</Script >model')).to.equal('error model');
    expect(redactHtml('error<style>rate limit')).to.equal('error');
    expect(redactHtml('error<p>model</p')).to.equal('error model');
    expect(redactHtml('rate<br/>limit&#39;&amp;error')).to.equal('rate limit error');
    expect(redactHtml(`${'<p>'.repeat(1_400)}limit`)).to.equal('');
  });

  it('lets names of several words pass if they are words of the trade, and no longer ones', () => {
    expect(redactName('rate limit')).to.equal('rate limit');
    expect(redactName('rate bobby')).to.equal(undefined);
    expect(redactName('a'.repeat(64))).to.equal('a'.repeat(64));
    expect(redactName('a_b-c.d1__12345')).to.equal('a_b-c.d1__12345');
    for (const name of ['good_b4d', 'a123456', '___', 'x_123456', 'key-1', 'Bearer 5', 'SK_9a']) {
      expect(redactName(name), name).to.equal(name === '___' ? '___' : undefined);
    }
  });

  it('lets a content type pass without its parameters', () => {
    expect(redactContentType('Text/HTML; charset=utf-8')).to.equal('text/html');
    expect(redactContentType('application/problem+json')).to.equal('application/problem+json');
    expect(redactContentType(' text/plain ; x')).to.equal('text/plain');
    for (const value of [undefined, '', 'sk-123', 'a/b c', '1/a', 'a/b/c', '5text/plain', `text/${'x'.repeat(62)}`])
      expect(redactContentType(value)).to.equal(undefined);
  });

  describe('of what was thrown', () => {
    it('keeps name, code and message, each made safe', () => {
      const thrown = Object.assign(new TypeError('connect ECONNREFUSED to bobby'), { code: 'ECONNREFUSED' });
      expect(causeOf(thrown)).to.deep.equal({
        name: 'TypeError',
        code: 'ECONNREFUSED',
        message: 'connect ECONNREFUSED to …',
      });
      expect(causeOf({ name: 'sk-TEST-0000', code: 'sk-TEST-0000' })).to.deep.equal({
        name: 'Error',
        code: undefined,
        message: '',
      });
    });

    it('takes the code from its cause where it has none', () => {
      expect(causeOf({ message: 'terminated', cause: { code: 'ECONNRESET' } }).code).to.equal('ECONNRESET');
      expect(causeOf({ code: 'EPIPE', cause: { code: 'ECONNRESET' } }).code).to.equal('EPIPE');
    });

    it('takes a text for the message', () => {
      expect(causeOf('rate limit')).to.deep.equal({ name: 'string', code: undefined, message: 'rate limit' });
    });

    it('names it by its own name, its class, or its type', () => {
      class LimitError extends Error {}
      const named = Object.assign(new LimitError(), { name: 'Named' });
      expect([named, new LimitError(), new Error(), {}, Object.create(null)].map(nameOf)).to.deep.equal([
        'Named',
        'LimitError',
        'Error',
        'Object',
        'Error',
      ]);
      expect(['x', 5, undefined, null].map(nameOf)).to.deep.equal(['string', 'number', 'undefined', 'object']);
    });

    it('reads fields of objects and functions, and none that throw', () => {
      const failing = {
        get a(): string {
          throw new Error('mine');
        },
      };
      expect(fieldOf({ a: 1 }, 'a')).to.equal(1);
      expect(
        fieldOf(
          Object.assign(() => 0, { a: 1 }),
          'a',
        ),
      ).to.equal(1);
      for (const value of [failing, undefined, null]) expect(fieldOf(value, 'a')).to.equal(undefined);
      expect(fieldOf('text', 'length')).to.equal(undefined);
    });

    it('takes an empty text for none', () => {
      expect([textOf({ a: 'x' }, 'a'), textOf({ a: '' }, 'a'), textOf({ a: 5 }, 'a')]).to.deep.equal([
        'x',
        undefined,
        undefined,
      ]);
    });
  });
});
