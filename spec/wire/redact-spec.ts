import { expect } from 'chai';
import fc from 'fast-check';
import { redact, redactContentType, redactHtml, redactName } from '../../lib/wire/redact.ts';

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

  it('lets a content type pass without its parameters', () => {
    expect(redactContentType('Text/HTML; charset=utf-8')).to.equal('text/html');
    expect(redactContentType('application/problem+json')).to.equal('application/problem+json');
    for (const value of [undefined, '', 'sk-123', 'a/b c']) expect(redactContentType(value)).to.equal(undefined);
  });
});
