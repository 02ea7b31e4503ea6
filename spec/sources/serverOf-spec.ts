import { expect } from 'chai';
import { addressOf, serverOf } from '../../lib/sources/serverOf.ts';

describe('serverOf', () => {
  for (const [url, host, port] of [
    ['https://api.openai.com/v1', 'api.openai.com', 443],
    ['http://127.0.0.1:8080/v1', '127.0.0.1', 8080],
    ['http://localhost', 'localhost', 80],
    ['https://[::1]:4000/v1', '::1', 4000],
  ] as const) {
    it(`reads ${url}`, () => {
      expect(addressOf(url)).to.deep.equal({ host, port });
    });
  }

  it('knows nothing of a client without a base URL, or with one that is none', () => {
    expect(serverOf({})).to.equal(undefined);
    expect(serverOf({ baseURL: 'nowhere' })).to.equal(undefined);
    expect(addressOf('file:///etc')).to.equal(undefined);
  });

  it('follows a client whose base URL is changed', () => {
    const client = { baseURL: 'https://a.example/v1' };
    expect(serverOf(client)?.host).to.equal('a.example');
    expect(serverOf(client)).to.equal(serverOf(client));
    client.baseURL = 'https://b.example/v1';
    expect(serverOf(client)?.host).to.equal('b.example');
  });
});
