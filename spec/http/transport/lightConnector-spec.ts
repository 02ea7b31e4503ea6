import { expect } from 'chai';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { buildConnector, Pool } from 'undici';
import type { Dispatcher } from 'undici';
import { lightConnector } from '../../../lib/http/transport/lightConnector.ts';

const pem = (name: string): Buffer => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url));

/** What one request got. Pauses after each piece of the body where `paused` is set. */
class Reading implements Dispatcher.DispatchHandler {
  readonly done: Promise<unknown>;
  headers: unknown;
  body = '';
  controller: Dispatcher.DispatchController | undefined;
  paused = false;
  /** Settles at the first piece of the body. */
  readonly begun: Promise<void>;
  #begin = (): void => {};
  #end: (error?: unknown) => void = () => {};

  constructor() {
    this.done = new Promise((resolve) => (this.#end = resolve));
    this.begun = new Promise((resolve) => (this.#begin = resolve));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
  }
  onResponseStart(_: unknown, __: number, headers: unknown): void {
    this.headers = headers;
  }
  onResponseData(_: unknown, bytes: Uint8Array): void {
    this.body += Buffer.from(bytes).toString('latin1');
    // Undici tells of an empty piece when it goes on.
    if (this.paused && bytes.length > 0) this.controller?.pause();
    this.#begin();
  }
  onResponseEnd(): void {
    this.#end();
  }
  onResponseError(_: unknown, error: Error): void {
    this.#end(error);
  }
}

for (const secure of [false, true]) {
  describe(`lightConnector, ${secure ? 'by TLS' : 'without TLS'}`, () => {
    let server: Server;
    let pool: Pool;
    /** Server sides of the connections, each with a request that has come. */
    let asked: Socket[];
    let heard: (() => void)[];

    beforeEach(async () => {
      asked = [];
      heard = [];
      const serve = (socket: Socket): void => {
        socket.on('error', () => {});
        socket.on('data', () => {
          asked.push(socket);
          heard.shift()?.();
        });
      };
      const cert = pem('cert');
      server = secure ? createTlsServer({ cert, key: pem('key') }, serve) : createServer(serve);
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const connect = lightConnector(buildConnector, secure ? { ca: cert } : undefined, 5_000);
      const never = { headersTimeout: 0, bodyTimeout: 0 };
      pool = new Pool(`http${secure ? 's' : ''}://127.0.0.1:${port}`, { connect, pipelining: 1, ...never });
    });
    afterEach(async () => {
      await pool.destroy();
      server.close();
      await once(server, 'close');
    });

    /** Sends a request, and waits until the server has it. */
    async function ask(paused = false): Promise<{ readonly reading: Reading; readonly socket: Socket }> {
      const reading = new Reading();
      reading.paused = paused;
      const arrived = new Promise<void>((resolve) => heard.push(resolve));
      pool.dispatch({ method: 'GET', path: '/' }, reading);
      await arrived;
      return { reading, socket: asked.at(-1) as Socket };
    }

    const written = (socket: Socket, text: string): Promise<void> =>
      new Promise((resolve) => socket.write(text, 'latin1', () => resolve()));

    it('reads answers one after another from one connection', async () => {
      for (const body of ['one', 'two', 'three']) {
        const { reading, socket } = await ask();
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
        expect(await reading.done).to.equal(undefined);
        expect(reading.body).to.equal(body);
        // A connection is free in the next turn of the loop.
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(new Set(asked).size).to.equal(1);
    });

    it('keeps the parts of a head that come in pieces, whatever comes on other connections between', async () => {
      const { reading: first, socket } = await ask();
      const { reading: second, socket: other } = await ask();
      await written(socket, 'HTTP/1.1 200 OK\r\nx-first: AAAA\r\nx-sec');
      await written(
        other,
        'HTTP/1.1 200 OK\r\nx-other: BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\r\ncontent-length: 2\r\n\r\nhi',
      );
      expect(await second.done).to.equal(undefined);
      await written(socket, 'ond: CCCC\r\ncontent-length: 2\r\n\r\nho');
      expect(await first.done).to.equal(undefined);
      expect(first.headers).to.deep.include({ 'x-first': 'AAAA', 'x-second': 'CCCC' });
      expect([first.body, second.body]).to.deep.equal(['ho', 'hi']);
    });

    it('gives all that had come when the server closed, also to a reader that has paused', async () => {
      const body = 'abcdefghij'.repeat(30_000);
      const { reading, socket } = await ask(true);
      const finished = once(socket, 'finish');
      socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${body}`, 'latin1');
      await Promise.all([reading.begun, finished]);
      expect(reading.body.length).to.be.below(body.length);
      const goOn = setInterval(() => reading.controller?.resume(), 0);
      expect(await reading.done).to.equal(undefined);
      clearInterval(goOn);
      expect(reading.body).to.equal(body);
    });

    it('goes on where it was, however often it is paused', async () => {
      const pieces = Array.from({ length: 400 }, (_, at) => `${at} `.repeat(1 + (at % 500)));
      const { reading, socket } = await ask(true);
      const goOn = setInterval(() => reading.controller?.resume(), 0);
      await written(socket, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      for (const piece of pieces) void written(socket, `${piece.length.toString(16)}\r\n${piece}\r\n`);
      await written(socket, '0\r\n\r\n');
      expect(await reading.done).to.equal(undefined);
      clearInterval(goOn);
      expect(reading.body).to.equal(pieces.join(''));
    });

    it('does not read what nobody wants', async () => {
      const { reading, socket } = await ask(true);
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n');
      const part = 'x'.repeat(1024 * 1024);
      let taken = 0;
      // Far more than the buffers of both sockets hold.
      for (let at = 0; at < 40; at++) socket.write(part, () => taken++);
      await reading.begun;
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(taken).to.be.below(30);
      expect(reading.body.length).to.be.below(256 * 1024);
      reading.paused = false;
      reading.controller?.resume();
      socket.end();
      expect(await reading.done).to.equal(undefined);
      expect(reading.body.length).to.equal(40 * part.length);
    });

    if (!secure) {
      it('fails a request whose connection is reset while its reader has paused', async () => {
        const { reading, socket } = await ask(true);
        await written(socket, 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhal');
        await reading.begun;
        socket.resetAndDestroy();
        expect(await reading.done).to.be.an('error');
        expect(reading.body).to.equal('hal');
      });
    }

    it('fails a request whose connection breaks off', async () => {
      const { reading, socket } = await ask();
      await written(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhal');
      await reading.begun;
      socket.destroy();
      expect(await reading.done).to.be.an('error');
      expect(reading.body).to.equal('hal');
    });
  });
}

describe('lightConnector', () => {
  it('tells of a connection that does not come about', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    const pool = new Pool(`http://127.0.0.1:${port}`, { connect: lightConnector(buildConnector, undefined, 5_000) });
    const reading = new Reading();
    pool.dispatch({ method: 'GET', path: '/' }, reading);
    expect(await reading.done).to.have.property('code', 'ECONNREFUSED');
    await pool.destroy();
  });
});
