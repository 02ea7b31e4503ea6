import { expect } from 'chai';
import express from 'express';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { BodyWriter } from '../../lib/http/BodyWriter.ts';

const ignore = (): void => {};

describe('BodyWriter', () => {
  let server: Server;
  let sockets: Socket[];
  let responses: ServerResponse[];
  let arrived: (() => void)[];

  async function listen(listener?: RequestListener): Promise<void> {
    server = createServer(
      listener ??
        ((_, response) => {
          responses.push(response);
          arrived.shift()?.();
        }),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  beforeEach(() => {
    sockets = [];
    responses = [];
    arrived = [];
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  /** A client that sends so many requests at once, and keeps all that it gets. */
  function client(requests: readonly string[] = ['HTTP/1.1']): { readonly socket: Socket; text(): string } {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const parts: Buffer[] = [];
    socket.on('data', (part) => parts.push(part)).on('error', ignore);
    socket.write(requests.map((version) => `GET / ${version}\r\nhost: x\r\n\r\n`).join(''));
    sockets.push(socket);
    return { socket, text: () => Buffer.concat(parts).toString() };
  }

  async function next(): Promise<ServerResponse> {
    if (responses.length === 0) await new Promise<void>((resolve) => arrived.push(resolve));
    return responses.shift() as ServerResponse;
  }

  /** Until `text` has come, however busy the machine is. */
  async function until(holds: () => boolean): Promise<void> {
    for (let at = 0; at < 1_000 && !holds(); at++) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  const write = (response: ServerResponse, pieces: readonly string[]): void => {
    const body = new BodyWriter(response, ignore);
    response.sendDate = false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) body.write(piece);
    response.end('last');
  };

  it('writes what a response writes, byte for byte', async () => {
    await listen();
    const pieces = ['data: one\n\n', '', 'data: zwölf €\n\n', 'data: \u{1f600}\n\n', 'x'.repeat(40_000)];
    const [ours, plain] = [client(), client()];
    write(await next(), pieces);
    const response = await next();
    response.sendDate = false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) response.write(piece);
    response.end('last');
    await until(() => plain.text().endsWith('0\r\n\r\n') && ours.text().endsWith('0\r\n\r\n'));
    expect(ours.text()).to.equal(plain.text());
    expect(ours.text()).to.include('zwölf €');
  });

  it('is heard by fetch as any other body is, twice over one connection', async () => {
    await listen((_, response) => write(response, ['a', 'ü', 'c']));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (let at = 0; at < 2; at++) expect(await (await fetch(url)).text()).to.equal('aüclast');
  });

  it('sends each piece after the first at once', async () => {
    await listen();
    const { text } = client();
    const response = await next();
    response.writeHead(200);
    const body = new BodyWriter(response, ignore);
    body.write('first');
    await until(() => text().includes('first'));
    body.write('second');
    expect(response.socket?.writableLength).to.equal(0);
    await until(() => text().endsWith('6\r\nsecond\r\n'));
    expect(text()).to.match(/5\r\nfirst\r\n6\r\nsecond\r\n$/);
  });

  it('leaves it to the response where the body is not chunked', async () => {
    await listen();
    const { text, socket } = client(['HTTP/1.0']);
    write(await next(), ['one', 'two']);
    await once(socket, 'close');
    expect(text()).to.match(/\r\n\r\nonetwolast$/);
  });

  it('leaves it to what stands before the response', async () => {
    const seen: unknown[] = [];
    const app = express();
    app.use((_, response, then) => {
      const own = response.write.bind(response) as (piece: unknown) => boolean;
      response.write = (piece: unknown) => {
        seen.push(piece);
        return own(String(piece).toUpperCase());
      };
      then();
    });
    app.get('/', (_, response) => write(response, ['one', 'two']));
    await listen(app);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await (await fetch(url)).text()).to.equal('ONETWOlast');
    expect(seen).to.deep.equal(['one', 'two']);
  });

  it('goes to the socket in Express too', async () => {
    const app = express();
    let waiting: number | undefined;
    app.get('/', (_, response) => {
      response.writeHead(200);
      const body = new BodyWriter(response, ignore);
      body.write('one');
      setImmediate(() => {
        body.write('two');
        waiting = response.socket?.writableLength;
        response.end();
      });
    });
    await listen(app);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await (await fetch(url)).text()).to.equal('onetwo');
    expect(waiting).to.equal(0);
  });

  it('keeps the order of answers where requests did not wait for them', async () => {
    await listen();
    const { text } = client(['HTTP/1.1', 'HTTP/1.1']);
    const first = await next();
    const second = await next();
    second.writeHead(200);
    const later = new BodyWriter(second, ignore);
    later.write('B1 ');
    later.write('B2 ');
    first.writeHead(200);
    const sooner = new BodyWriter(first, ignore);
    sooner.write('A1 ');
    sooner.write('A2 ');
    first.end();
    await until(() => second.socket !== null);
    later.write('B3 ');
    second.end();
    await until(() => text().split('0\r\n\r\n').length === 3);
    expect(text().match(/[AB]\d/g)).to.deep.equal(['A1', 'A2', 'B1', 'B2', 'B3']);
  });

  it('is full once the client takes no more, and says when there is room', async () => {
    await listen();
    const { socket } = client();
    const response = await next();
    let roomy = 0;
    response.writeHead(200);
    const body = new BodyWriter(response, () => roomy++);
    expect(body.write('first')).to.equal(true);
    await until(() => response.socket?.writableLength === 0);
    socket.pause();
    const piece = 'x'.repeat(64 * 1024);
    let written = 0;
    // Far more than the buffers of both sockets take.
    while (written < 1_000 && body.write(piece)) {
      written++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(written).to.be.below(1_000);
    expect([body.full, body.write('more'), body.write(''), roomy]).to.deep.equal([true, false, false, 0]);
    socket.resume();
    await until(() => roomy > 0);
    expect([body.full, roomy]).to.deep.equal([false, 1]);
    expect(body.write('again')).to.equal(true);
  });

  it('is full where the first piece is too much already', async () => {
    await listen();
    const { socket } = client();
    const response = await next();
    socket.pause();
    let roomy = 0;
    response.writeHead(200);
    const body = new BodyWriter(response, () => roomy++);
    expect(body.write('x'.repeat(32 * 1024 * 1024))).to.equal(false);
    expect([body.full, body.write('more')]).to.deep.equal([true, false]);
    socket.resume();
    await until(() => roomy > 0);
    expect([body.full, roomy]).to.deep.equal([false, 1]);
  });

  it('writes nothing into the next answer when somebody else has ended this one', async () => {
    await listen();
    const { text } = client(['HTTP/1.1', 'HTTP/1.1']);
    const first = await next();
    const second = await next();
    const errors: unknown[] = [];
    first.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code));
    first.writeHead(200);
    const body = new BodyWriter(first, ignore);
    body.write('mine');
    await until(() => text().includes('mine'));
    body.write('mine');
    first.end();
    body.write('late');
    await until(() => errors.length > 0);
    second.end('other');
    await until(() => text().includes('other'));
    expect(text()).not.to.include('late');
    expect(errors).to.deep.equal(['ERR_STREAM_WRITE_AFTER_END']);
  });
});
