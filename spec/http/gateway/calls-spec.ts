import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { APIError, AuthenticationError, RateLimitError } from 'openai';
import { filter, firstValueFrom, Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { WireEvent } from '../../../lib/core/attempt.ts';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type { Emulator, EmulatorOptions } from '../../../lib/emulator/index.ts';
import { httpSource } from '../../../lib/http/transport/httpSource.ts';
import { eventsOf, startGateway } from '../../helpers/gateways.ts';
import type { GatewaySetup, RunningGateway } from '../../helpers/gateways.ts';
import { rawServer } from '../../helpers/rawServer.ts';
import type { RawServer } from '../../helpers/rawServer.ts';

const messages = [{ role: 'user' as const, content: 'hello' }];
const chat = { model: 'm', messages };
const CHAT = '/v1/chat/completions';
const QUICK = { models: { default: { retry: { baseMs: 1, capMs: 2 } } } };

const chunk = (content: string, more: object = {}): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm-2026',
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
  ...more,
});
const finish = {
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm-2026',
  choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
};

describe('createGateway, calls', () => {
  const closers: (() => Promise<void>)[] = [];
  const gatewayTo = async (upstream: string, setup: GatewaySetup = {}): Promise<RunningGateway> => {
    const running = await startGateway(upstream, { policy: QUICK, ...setup });
    closers.push(running.close);
    return running;
  };
  const emulated = async (
    options: EmulatorOptions = {},
    setup: GatewaySetup = {},
  ): Promise<RunningGateway & { readonly emulator: Emulator }> => {
    const emulator = await startEmulator({ firstTokenMs: 1, tokenMs: 0, tokens: 8, ...options });
    closers.push(() => emulator.close());
    return { ...(await gatewayTo(emulator.baseURL, setup)), emulator };
  };
  const raw = async (
    answer?: Parameters<typeof rawServer>[0],
    setup: GatewaySetup = {},
  ): Promise<RunningGateway & { readonly server: RawServer }> => {
    const server = await rawServer(answer);
    closers.push(() => server.close());
    return { ...(await gatewayTo(server.baseURL, setup)), server };
  };
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  it('streams a chat to an OpenAI client', async () => {
    const { openai, emulator } = await emulated();
    const stream = await openai().chat.completions.create({
      ...chat,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: unknown;
    for await (const part of stream) {
      text += part.choices[0]?.delta.content ?? '';
      usage = part.usage ?? usage;
    }
    expect(text.length).to.be.above(0);
    expect(usage).to.include({ completion_tokens: 8 });
    expect(emulator.report().requests).to.equal(1);
  });

  it('answers a chat as a whole', async () => {
    const { openai } = await emulated();
    const { data, response } = await openai().chat.completions.create(chat).withResponse();
    expect(data.choices[0]?.finish_reason).to.equal('stop');
    expect(response.headers.get('x-sluice-attempts')).to.equal('1');
    expect(response.headers.get('x-sluice-model')).to.equal('m');
    expect(response.headers.get('x-request-id')).to.be.a('string');
  });

  it('sends a whole answer before its call has ended, which it does by itself', async () => {
    const value = { id: 'c1', object: 'chat.completion', choices: [{ index: 0, message: { content: 'a' } }] };
    let transport: Subscriber<WireEvent> | undefined;
    const source = (): Observable<WireEvent> =>
      new Observable((subscriber) => {
        transport = subscriber;
        subscriber.next({ kind: 'head', status: 200, requestId: undefined, hints: undefined });
        subscriber.next({ kind: 'data', value, event: undefined });
      });
    const { ask, sluice, close } = await startGateway(source);
    closers.push(close);
    const ended = firstValueFrom(sluice.events$.pipe(filter(({ type }) => type === 'call.ended')));
    expect(await (await ask(CHAT, chat)).json()).to.deep.equal(value);
    expect(sluice.snapshot().calls).to.equal(1);
    transport?.complete();
    expect(await ended).to.include({ outcome: 'success' });
    expect(sluice.snapshot().calls).to.equal(0);
  });

  it('takes bodies that come in pieces, at once or later, up to their limit', async () => {
    const { gateway, url } = await emulated({}, { maxBodyBytes: 300_000 });
    const statusOf = async (pieces: readonly string[], at = url): Promise<string> => {
      const socket = connect(Number(new URL(at).port), '127.0.0.1').setNoDelay();
      let text = '';
      socket.on('data', (part) => (text += String(part))).on('error', () => {});
      const closed = new Promise((resolve) => socket.on('close', resolve));
      const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n`;
      const [first = '', ...later] = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
      const end = '0\r\n\r\n';
      // One piece comes with its head.
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n${first}${later.length === 0 ? end : ''}`);
      for (const piece of later.length === 0 ? [] : [...later, end]) {
        await new Promise((resolve) => setImmediate(resolve));
        if (!socket.destroyed) socket.write(piece);
      }
      await closed;
      return text.slice(9, 12);
    };
    const whole = JSON.stringify(chat);
    const large = JSON.stringify({ ...chat, user: 'x'.repeat(200_000) });
    expect(await statusOf([whole])).to.equal('200');
    expect(await statusOf([...whole])).to.equal('200');
    expect(await statusOf(large.match(/.{1,9000}/g) ?? [])).to.equal('200');
    expect(await statusOf(['x'.repeat(300_001)])).to.equal('413');
    expect(await statusOf(Array.from({ length: 40 }, () => 'x'.repeat(9_000)))).to.equal('413');
    expect(gateway.inFlight).to.equal(0);
    // Together with its head, and with and without its length.
    const { ask, url: strict } = await emulated({}, { maxBodyBytes: 20 });
    expect((await ask(CHAT, chat)).status).to.equal(413);
    expect(await statusOf([whole], strict)).to.equal('413');
  });

  it('streams and answers responses', async () => {
    const { openai } = await emulated();
    const whole = await openai().responses.create({ model: 'm', input: 'hello' });
    const stream = await openai().responses.create({ model: 'm', input: 'hello', stream: true });
    let text = '';
    let last: string | undefined;
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event.type;
    }
    expect(text).to.equal(whole.output_text);
    expect(last).to.equal('response.completed');
  });

  it('passes on answers byte for byte, numbers of any size among them', async () => {
    const odd =
      '{"id":"c1", "object":"chat.completion","created":1,"model":"m","big":12345678901234567890,"choices":[{"index":0,"message":{"role":"assistant","content":"\\u0041"},"finish_reason":"stop"}]}';
    const { ask } = await raw((exchange) => {
      exchange.head(200, { 'content-type': 'application/json' });
      exchange.write(odd);
      exchange.end();
    });
    expect(await (await ask(CHAT, chat)).text()).to.equal(odd);
  });

  it('passes on events byte for byte', async () => {
    const odd = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","big":12345678901234567890,"choices":[{"index":0,"delta":{"content":"\\u0041"},"finish_reason":"stop"}]}`;
    const { ask } = await raw((exchange) => {
      exchange.head();
      exchange.events(odd, '[DONE]');
      exchange.end();
    });
    expect(await (await ask(CHAT, { ...chat, stream: true })).text()).to.equal(`data: ${odd}\n\ndata: [DONE]\n\n`);
  });

  it('sends requests byte for byte where nothing in them is changed, and its own key', async () => {
    const sent: { readonly body: string; readonly key: string | undefined }[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (part: string) => (body += part));
      request.on('end', () => {
        sent.push({ body, key: request.headers.authorization });
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ choices: [{ message: {} }] }));
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closers.push(async () => void server.close());
    const source = httpSource({
      baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
      apiKey: 'of-the-provider',
    });
    closers.push(() => source.close());
    const { ask, close } = await startGateway(source, {
      policy: { models: { default: {}, other: { params: { set: { seed: 1 } } } } },
    });
    closers.push(close);
    const odd = '{"model":"m", "messages":[{"role":"user","content":"\\u0041"}],"big":12345678901234567890}';
    await ask(CHAT, odd, { authorization: 'Bearer of-the-caller', 'x-sluice-tenant': 'acme' });
    await ask(CHAT, odd.replace('"m"', '"other"'));
    expect(sent[0]).to.deep.equal({ body: odd, key: 'Bearer of-the-provider' });
    expect(JSON.parse(sent[1]?.body ?? '')).to.include({ model: 'other', seed: 1 });
  });

  it('asks for usage on its own account, and hides it', async () => {
    const { ask, emulator } = await emulated();
    const events = await eventsOf(await ask(CHAT, { ...chat, stream: true }));
    expect(events.at(-1)).to.equal('[DONE]');
    expect(events.filter((event) => event.includes('"usage":{'))).to.deep.equal([]);
    expect(emulator.report().requests).to.equal(1);
  });

  it('gives what failed before the answer its status, body and headers', async () => {
    const { openai, ask } = await emulated({
      script: [{ kind: 'error', error: 'requests', retryAfterMs: 70_000, times: 'always' }],
    });
    const response = await ask(CHAT, { ...chat, stream: true });
    expect(response.status).to.equal(429);
    expect(response.headers.get('content-type')).to.equal('application/json');
    expect(Number(response.headers.get('retry-after'))).to.be.within(69, 71);
    expect(response.headers.get('x-should-retry')).to.equal('false');
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(error).to.have.all.keys('message', 'type', 'param', 'code');
    const failure = await openai()
      .chat.completions.create(chat)
      .catch((thrown: unknown) => thrown);
    expect(failure).to.be.instanceOf(RateLimitError);
  });

  it('retries, and says how many attempts it took', async () => {
    const { ask } = await emulated({ script: [{ kind: 'error', error: 'server_error' }] });
    const response = await ask(CHAT, chat);
    expect(response.status).to.equal(200);
    expect(response.headers.get('x-sluice-attempts')).to.equal('2');
  });

  it('names the model that answered', async () => {
    const { ask } = await emulated(
      { script: [{ kind: 'error', error: 'server_error', model: 'm', times: 'always' }] },
      { policy: { models: { default: { retry: { attempts: 1 } }, m: { fallback: ['other'] } } } },
    );
    const response = await ask(CHAT, chat);
    expect(response.status).to.equal(200);
    expect(response.headers.get('x-sluice-model')).to.equal('other');
  });

  it('passes on what the provider says of its limits, by the names of OpenAI', async () => {
    const { ask } = await emulated({ requestsPerMinute: 600, burstRequests: 10 });
    const { headers } = await ask(CHAT, chat);
    expect(Number(headers.get('x-ratelimit-limit-requests'))).to.be.above(0);
    expect(headers.get('x-ratelimit-remaining-requests')).to.match(/^\d+$/);
    expect(headers.get('x-ratelimit-reset-requests')).to.match(/^(\d+m)?[\d.]+m?s$/);
  });

  it('tells of what breaks off as the SDKs expect it: an error in the stream, and no [DONE]', async () => {
    const { openai, ask } = await raw((exchange) => {
      exchange.head();
      exchange.events(chunk('Hel'));
      setTimeout(() => exchange.cut(), 20);
    });
    const events = await eventsOf(await ask(CHAT, { ...chat, stream: true }));
    expect(events).to.have.length(2);
    expect(JSON.parse(events[1] ?? '')).to.have.nested.property('error.code');
    let failure: unknown;
    try {
      for await (const part of await openai().chat.completions.create({ ...chat, stream: true }))
        expect(part.id).to.equal('c1');
    } catch (thrown) {
      failure = thrown;
    }
    expect(failure).to.be.instanceOf(APIError);
  });

  it('aborts the request to the provider when the client leaves', async () => {
    const { ask, server } = await raw((exchange) => {
      exchange.head();
      exchange.events(chunk('Hel'));
    });
    const leaving = new AbortController();
    const response = await ask(CHAT, { ...chat, stream: true }, {}, leaving.signal);
    await response.body?.getReader().read();
    const leftAtMs = performance.now();
    leaving.abort();
    const { aborted, atMs } = await (await server.next()).closed;
    expect(aborted).to.equal(true);
    expect(atMs - leftAtMs).to.be.below(1_000);
  });

  it('completes an answer without content', async () => {
    const { ask } = await raw((exchange) => {
      exchange.head();
      exchange.events(finish, '[DONE]');
      exchange.end();
    });
    expect((await eventsOf(await ask(CHAT, { ...chat, stream: true }))).at(-1)).to.equal('[DONE]');
  });

  it('lets a wrong key of its own account show as what it is', async () => {
    const { openai } = await emulated({ script: [{ kind: 'error', error: 'auth', times: 'always' }] });
    const failure = await openai()
      .chat.completions.create(chat)
      .catch((thrown: unknown) => thrown);
    expect(failure).to.be.instanceOf(AuthenticationError);
  });
});
