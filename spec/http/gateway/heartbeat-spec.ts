import { expect } from 'chai';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { HEARTBEAT } from '../../../lib/http/EventEncoding.ts';
import { createGateway } from '../../../lib/http/gateway/createGateway.ts';
import { EventReply } from '../../../lib/http/gateway/EventReply.ts';
import { createSluice } from '../../../lib/client/createSluice.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { startGateway } from '../../helpers/gateways.ts';
import type { GatewaySetup, RunningGateway } from '../../helpers/gateways.ts';
import { rawServer } from '../../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../../helpers/rawServer.ts';

const PATH = '/v1/chat/completions';
const STREAM = { model: 'm', messages: [{ role: 'user', content: 'hello' }], stream: true };
const ONCE = { models: { default: { retry: { attempts: 1 }, timeouts: { idleMs: 600_000 } } } };

const chunk = (content: string, reason: string | null = null): object => ({
  id: 'a',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { content }, finish_reason: reason }],
});
const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** Reads a stream piece by piece. */
class Reading {
  text = '';
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor({ body }: Response) {
    if (body === null) throw new Error('no body');
    this.#reader = body.getReader();
  }

  async until(end: string): Promise<string> {
    while (!this.text.endsWith(end)) {
      const { value, done } = await this.#reader.read();
      if (done) throw new Error(`ended with ${this.text}`);
      this.text += Buffer.from(value).toString();
    }
    return this.text;
  }

  async rest(): Promise<string> {
    for (let read = await this.#reader.read(); !read.done; read = await this.#reader.read()) {
      this.text += Buffer.from(read.value).toString();
    }
    return this.text;
  }
}

describe('createGateway, while a provider is silent', () => {
  let runtime: VirtualRuntime;
  let server: RawServer;
  let running: RunningGateway;

  async function start(setup: GatewaySetup = {}): Promise<void> {
    runtime = virtualRuntime();
    server = await rawServer();
    running = await startGateway(server.baseURL, { policy: ONCE, ...setup, sluice: { runtime } });
  }
  afterEach(async () => {
    let closed = false;
    const closing = running.close().then(() => (closed = true));
    while (!closed) await runtime.advanceAsync(1_000);
    await closing;
    await server.close();
  });

  /** A stream of which the first content has come. */
  async function begun(): Promise<{ readonly reading: Reading; readonly exchange: RawExchange }> {
    const asked = running.ask(PATH, STREAM);
    const exchange = await server.next();
    exchange.head();
    exchange.events(chunk('Hel'));
    const reading = new Reading(await asked);
    await reading.until(frame(chunk('Hel')));
    return { reading, exchange };
  }

  it('sends a comment after 15 s without an event, and another one after as long again', async () => {
    await start();
    const { reading, exchange } = await begun();
    runtime.advance(14_999);
    exchange.events(chunk('l'));
    expect(await reading.until(frame(chunk('l')))).not.to.include(HEARTBEAT);
    runtime.advance(14_999);
    exchange.events(chunk('o'));
    expect(await reading.until(frame(chunk('o')))).not.to.include(HEARTBEAT);
    runtime.advance(15_000);
    await reading.until(HEARTBEAT);
    runtime.advance(15_000);
    await reading.until(HEARTBEAT + HEARTBEAT);
    exchange.events(chunk('', 'stop'), '[DONE]');
    exchange.end();
    expect(await reading.rest()).to.match(/data: \[DONE\]\n\n$/);
  });

  it('goes by heartbeatMs', async () => {
    await start({ heartbeatMs: 2_000 });
    const { reading } = await begun();
    runtime.advance(2_000);
    await reading.until(HEARTBEAT);
  });

  it('sends none where heartbeatMs is Infinity', async () => {
    await start({ heartbeatMs: Infinity });
    const { reading, exchange } = await begun();
    runtime.advance(500_000);
    exchange.events(chunk('', 'stop'), '[DONE]');
    exchange.end();
    expect(await reading.rest()).not.to.include(HEARTBEAT);
  });

  it('begins no stream before the first content, so that a failure keeps its status', async () => {
    await start();
    const asked = running.ask(PATH, STREAM);
    const exchange = await server.next();
    exchange.head();
    exchange.write(': keep-alive\n\n');
    runtime.advance(8_000);
    exchange.events({ error: { message: 'too many', type: 'rate_limit_error', code: 'rate_limit_exceeded' } });
    const response = await asked;
    expect(response.status).to.equal(429);
    expect(response.headers.get('content-type')).to.equal('application/json');
  });

  it('begins one after openAfterMs: what fails then is an event', async () => {
    await start({ openAfterMs: 5_000, heartbeatMs: 2_000 });
    const asked = running.ask(PATH, STREAM);
    const exchange = await server.next();
    exchange.head();
    runtime.advance(5_000);
    const response = await asked;
    expect(response.status).to.equal(200);
    expect(response.headers.get('x-sluice-attempts')).to.equal('1');
    const reading = new Reading(response);
    await reading.until(HEARTBEAT);
    runtime.advance(2_000);
    await reading.until(HEARTBEAT + HEARTBEAT);
    exchange.events({ error: { message: 'too many', type: 'rate_limit_error', code: 'rate_limit_exceeded' } });
    expect(await reading.rest()).to.match(/"code":"rate_limit_exceeded"\}\}\n\n$/);
  });

  it('begins at once where openAfterMs is 0, also before anything was sent to a provider', async () => {
    await start({ openAfterMs: 0 });
    const asked = running.ask(PATH, STREAM);
    const exchange = await server.next();
    runtime.advance(0);
    const reading = new Reading(await asked);
    await reading.until(HEARTBEAT);
    exchange.head();
    exchange.events(chunk('Hello', 'stop'), '[DONE]');
    exchange.end();
    const text = `${frame(chunk('Hello', 'stop'))}data: [DONE]\n\n`;
    expect(await reading.rest()).to.equal(HEARTBEAT + text);
  });

  it('keeps a stream open that is delivered as a whole', async () => {
    await start({ openAfterMs: 5_000, heartbeatMs: 5_000 });
    const asked = running.ask(PATH, STREAM, { 'x-sluice-mid-stream': 'buffer' });
    const exchange = await server.next();
    exchange.head();
    exchange.events(chunk('Hel'));
    runtime.advance(5_000);
    const reading = new Reading(await asked);
    await reading.until(HEARTBEAT);
    runtime.advance(5_000);
    await reading.until(HEARTBEAT + HEARTBEAT);
    exchange.events(chunk('lo', 'stop'), '[DONE]');
    exchange.end();
    const answer = `${frame(chunk('Hel'))}${frame(chunk('lo', 'stop'))}data: [DONE]\n\n`;
    expect(await reading.rest()).to.equal(HEARTBEAT + HEARTBEAT + answer);
  });

  it('leaves answers alone that are not streamed', async () => {
    await start({ openAfterMs: 0 });
    const asked = running.ask(PATH, { ...STREAM, stream: false });
    const exchange = await server.next();
    runtime.advance(20_000);
    exchange.json(500, { error: { message: 'broken' } });
    expect((await asked).status).to.equal(500);
  });

  it('leaves no timer behind, whoever ends it', async () => {
    await start({ openAfterMs: 60_000 });
    const leaving = new AbortController();
    const asked = running.ask(PATH, STREAM, {}, leaving.signal);
    const exchange = await server.next();
    exchange.head();
    exchange.events(chunk('Hel'));
    await new Reading(await asked).until(frame(chunk('Hel')));
    leaving.abort();
    await exchange.closed;
    const { reading, exchange: other } = await begun();
    other.events(chunk('lo', 'stop'), '[DONE]');
    other.end();
    await reading.rest();
    // Those of the released place: a second, and what the body had to end in.
    runtime.advance(1_000);
    expect(runtime.pending).to.equal(0);
  });

  it('adds nothing to what a client does not read', async () => {
    await start();
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const clock = virtualRuntime();
    const reply = new EventReply(response, { idleMs: 60_000, heartbeatMs: 1_000, runtime: clock });
    reply.open({});
    reply.send('x'.repeat(100_000));
    void reply.demand.ready();
    const waiting = response.writableLength;
    expect(response.writableNeedDrain).to.equal(true);
    clock.advance(30_000);
    expect(response.writableLength).to.equal(waiting);
    reply.stop();
  });

  it('refuses times that are none', async () => {
    await start();
    const sluice = createSluice(() => ({}) as never, {});
    for (const wrong of [{ heartbeatMs: 0 }, { heartbeatMs: NaN }, { openAfterMs: -1 }]) {
      const [name = ''] = Object.keys(wrong);
      expect(() => createGateway(sluice, wrong))
        .to.throw(new RegExp(name))
        .with.property('code', 'invalid_option');
    }
    await sluice.close();
  });
});
