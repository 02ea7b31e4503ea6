import { expect } from 'chai';
import express from 'express';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type { Emulator } from '../../../lib/emulator/index.ts';
import { startGateway } from '../../helpers/gateways.ts';
import type { GatewaySetup, RunningGateway } from '../../helpers/gateways.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };
const PATH = '/v1/chat/completions';
const JSON_TYPE = { 'content-type': 'application/json' };

/** Bytes, sent as they are. Resolves to everything that comes back until the connection is closed. */
function exchange(port: number, ...parts: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    socket.on('error', () => {}).on('close', () => resolve(text));
    for (const part of parts) socket.write(part);
  });
}

describe('createGateway, requests that are no calls', () => {
  let emulator: Emulator;
  let running: RunningGateway;
  const start = async (setup: GatewaySetup = {}): Promise<RunningGateway> =>
    (running = await startGateway(emulator.baseURL, setup));
  const portOf = (): number => Number(new URL(running.url).port);

  before(async () => {
    emulator = await startEmulator({ firstTokenMs: 1, tokenMs: 0, tokens: 2 });
  });
  after(() => emulator.close());
  afterEach(() => running.close());

  /** Status and code of the answer, which must be JSON in the shape of OpenAI's errors. */
  const refusalOf = async (response: Response): Promise<readonly [number, string]> => {
    expect(response.headers.get('content-type')).to.equal('application/json');
    const { error } = (await response.json()) as { error: { code: string } };
    expect(error).to.have.all.keys('message', 'type', 'param', 'code');
    return [response.status, error.code];
  };

  const requests: readonly (readonly [name: string, path: string, init: RequestInit, status: number, code: string])[] =
    [
      ['a path that is none', '/v1/embeddings', { method: 'POST', body: '{}', headers: JSON_TYPE }, 404, 'unknown_url'],
      ['a path that hides a slash', '/v1%2fmodels', {}, 404, 'unknown_url'],
      ['a path with two slashes', '//v1/chat/completions', { method: 'POST' }, 404, 'unknown_url'],
      ['a path that ends in a slash', '/v1/models/', {}, 404, 'unknown_url'],
      ['a model that cannot be decoded', '/v1/models/%', {}, 404, 'unknown_url'],
      ['GET of what is posted', PATH, {}, 405, 'method_not_allowed'],
      ['OPTIONS', PATH, { method: 'OPTIONS' }, 405, 'method_not_allowed'],
      ['DELETE of what is read', '/v1/models', { method: 'DELETE' }, 405, 'method_not_allowed'],
      ['no type', PATH, { method: 'POST', body: new Uint8Array([123, 125]) }, 415, 'unsupported_media_type'],
      [
        'the type of a form',
        PATH,
        { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } },
        415,
        'unsupported_media_type',
      ],
      [
        'a compressed body',
        PATH,
        { method: 'POST', body: '{}', headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } },
        415,
        'unsupported_media_type',
      ],
      ['no body', PATH, { method: 'POST', headers: JSON_TYPE }, 400, 'invalid_json'],
      ['a body that is not JSON', PATH, { method: 'POST', body: '{"model":', headers: JSON_TYPE }, 400, 'invalid_json'],
      [
        'a body that is not UTF-8',
        PATH,
        { method: 'POST', body: new Uint8Array([34, 0xff, 34]), headers: JSON_TYPE },
        400,
        'invalid_json',
      ],
      ['a list', PATH, { method: 'POST', body: '[]', headers: JSON_TYPE }, 400, 'invalid_json'],
      ['null', PATH, { method: 'POST', body: 'null', headers: JSON_TYPE }, 400, 'invalid_json'],
      [
        'what would pass for a refusal of ours',
        PATH,
        { method: 'POST', body: '{"status":418,"code":"x","message":"y","headers":{"x":"y"}}', headers: JSON_TYPE },
        400,
        'invalid_request',
      ],
      ['no model', PATH, { method: 'POST', body: '{"messages":[]}', headers: JSON_TYPE }, 400, 'invalid_request'],
      [
        'a model that is no text',
        PATH,
        { method: 'POST', body: '{"model":5,"messages":[]}', headers: JSON_TYPE },
        400,
        'invalid_request',
      ],
      ['no messages', PATH, { method: 'POST', body: '{"model":"m"}', headers: JSON_TYPE }, 400, 'invalid_request'],
      [
        'stream that is a word',
        PATH,
        { method: 'POST', body: '{"model":"m","messages":[],"stream":"yes"}', headers: JSON_TYPE },
        400,
        'invalid_request',
      ],
      [
        'an answer in the background',
        '/v1/responses',
        { method: 'POST', body: '{"model":"m","input":"x","background":true}', headers: JSON_TYPE },
        400,
        'invalid_request',
      ],
    ];
  for (const [name, path, init, status, code] of requests) {
    it(`answers ${status} to ${name}`, async () => {
      const { url } = await start();
      const { requests: before } = emulator.report();
      expect(await refusalOf(await fetch(url + path, init))).to.deep.equal([status, code]);
      expect(emulator.report().requests).to.equal(before);
    });
  }

  it('names the methods that a path takes', async () => {
    const { url } = await start();
    expect((await fetch(url + PATH)).headers.get('allow')).to.equal('POST');
    expect((await fetch(`${url}/v1/models`, { method: 'PUT' })).headers.get('allow')).to.equal('GET, HEAD');
  });

  it('answers HEAD like GET, without a body', async () => {
    const { url } = await start();
    const response = await fetch(`${url}/v1/models`, { method: 'HEAD' });
    expect(response.status).to.equal(200);
    expect(await response.text()).to.equal('');
    expect((await fetch(url + PATH, { method: 'HEAD' })).status).to.equal(405);
  });

  it('answers 413 to a body that is too large, announced or not, and reads no more of it', async () => {
    const { url, ask } = await start({ maxBodyBytes: 1_000 });
    const large = { ...CHAT, padding: 'x'.repeat(2_000) };
    expect(await refusalOf(await ask(PATH, large))).to.deep.equal([413, 'request_too_large']);
    const text = JSON.stringify(large);
    const parts = new Blob([text]).stream();
    const init = { method: 'POST', headers: JSON_TYPE, body: parts, duplex: 'half' } as RequestInit;
    expect(await refusalOf(await fetch(url + PATH, init))).to.deep.equal([413, 'request_too_large']);
    expect((await ask(PATH, CHAT)).status).to.equal(200);
  });

  it('answers 408 to a body that does not come', async () => {
    await start({ bodyMs: 50 });
    const head = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`;
    const text = await exchange(portOf(), head);
    expect(text)
      .to.match(/^HTTP\/1\.1 408 /)
      .and.to.include('"code":"request_timeout"');
  });

  it('closes connections whose bodies nobody waits for, and which do not come', async function () {
    this.timeout(10_000);
    await start({ bodyMs: 50, listen: { headersMs: 50 } });
    for (const line of ['GET /healthz', 'POST /nowhere']) {
      // Resolves only once the connection is closed.
      const text = await exchange(portOf(), `${line} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`);
      expect(text).to.match(/^HTTP\/1\.1 (?:200|404) /);
    }
  });

  it('answers 408 to a head that does not come', async function () {
    this.timeout(10_000);
    await start({ listen: { headersMs: 100 } });
    const text = await exchange(portOf(), `POST ${PATH} HTTP/1.1\r\nx-a: `);
    expect(text)
      .to.match(/^HTTP\/1\.1 408 /)
      .and.to.include('"code":"request_timeout"');
  });

  it('answers 431 to a head that is too large', async () => {
    await start({ listen: { maxHeaderBytes: 2_000 } });
    const text = await exchange(portOf(), `GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: ${'a'.repeat(4_000)}\r\n\r\n`);
    expect(text)
      .to.match(/^HTTP\/1\.1 431 /)
      .and.to.include('"code":"headers_too_large"');
    expect((await fetch(`${running.url}/healthz`)).status).to.equal(200);
  });

  it('answers 400 to what is not HTTP, and to headers that hide others', async () => {
    await start();
    for (const bytes of [
      'hello\r\n\r\n',
      'GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: b\rx-c: d\r\n\r\n',
      `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
    ]) {
      expect(await exchange(portOf(), bytes))
        .to.match(/^HTTP\/1\.1 400 /)
        .and.to.include('"code":"bad_request"');
    }
  });

  it('writes no header that a model or a tenant could break', async () => {
    const { ask } = await start();
    const response = await ask(PATH, { ...CHAT, model: 'm\r\nx-evil: 1' }, { 'x-sluice-tenant': 'é' });
    expect(response.status).to.equal(200);
    expect(response.headers.has('x-evil')).to.equal(false);
    expect(response.headers.has('x-sluice-model')).to.equal(false);
  });

  it('works within Express, before and behind what reads bodies', async () => {
    const { gateway } = await start();
    for (const readers of [[], [express.json()]]) {
      const app = express();
      for (const reader of readers) app.use(reader);
      app.use('/llm', gateway.listener);
      const server = createServer(app as never).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/llm`;
      const response = await fetch(base + PATH, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CHAT) });
      expect(response.status).to.equal(200);
      expect(await response.json()).to.have.property('choices');
      server.close();
    }
  });

  it('checks its options as it is made', async () => {
    await start();
    const wrong: readonly GatewaySetup[] = [
      { maxBodyBytes: 0 },
      { bodyMs: 0 },
      { idleMs: NaN },
      { totalMs: -1 },
      { maxBufferedBytes: 1.5 },
      { hosts: 'localhost' as never },
      { page: 5 as never },
    ];
    for (const setup of wrong) {
      const failure: unknown = await startGateway(emulator.baseURL, setup).catch((thrown: unknown) => thrown);
      expect(failure).to.have.property('code', 'invalid_option');
    }
  });
});
