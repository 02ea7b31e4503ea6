import { expect } from 'chai';
import OpenAI from 'openai';
import type { APIError } from 'openai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { SluiceOptions } from '../../lib/client/SluiceOptions.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator, EmulatorOptions } from '../../lib/emulator/index.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { rawServer } from '../helpers/rawServer.ts';
import type { RawServer } from '../helpers/rawServer.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const FAST: PolicyInput = {
  models: {
    default: { retry: { attempts: 3, baseMs: 1, capMs: 5 } },
    a: { fallback: ['b'], retry: { attempts: 2, baseMs: 1, capMs: 5 } },
  },
};
const KEYS = { apiKey: 'key', maxRetries: 0 };

describe('sluice.fetch', () => {
  let emulator: Emulator | undefined;
  let server: RawServer | undefined;
  let sluice: Sluice;
  let events: SluiceEvent[];

  function make(baseURL: string, policy: PolicyInput = FAST, options: SluiceOptions = {}): OpenAI {
    sluice = createSluice(new OpenAI({ ...KEYS, baseURL }), policy, options);
    events = [];
    sluice.events$.subscribe((event) => events.push(event));
    return new OpenAI({ ...KEYS, baseURL, fetch: sluice.fetch });
  }

  async function emulated(
    policy?: PolicyInput,
    provider: EmulatorOptions = {},
    options?: SluiceOptions,
  ): Promise<OpenAI> {
    emulator = await startEmulator({
      tokens: 5,
      firstTokenMs: 2,
      tokenMs: 1,
      recordHeaders: ['x-sluice-tenant', 'x-sluice-conversation'],
      ...provider,
    });
    return make(emulator.baseURL, policy, options);
  }
  const raw = async (
    answer: Parameters<typeof rawServer>[0],
    policy?: PolicyInput,
    options?: SluiceOptions,
  ): Promise<OpenAI> => {
    server = await rawServer(answer);
    return make(server.baseURL, policy, options);
  };
  const failureOf = (promise: PromiseLike<unknown>): Promise<APIError> =>
    Promise.resolve(promise).then(
      () => expect.fail('it succeeded'),
      (error: unknown) => error as APIError,
    );

  afterEach(async () => {
    await emulator?.close();
    await server?.close();
    emulator = server = undefined;
    expect(sluice.snapshot().calls).to.equal(0);
  });

  forEachOpenAI(({ OpenAI: Version }) => {
    const client = async (maxRetries = 0): Promise<OpenAI> => {
      const { baseURL } = await emulated();
      return new Version({ apiKey: 'key', maxRetries, baseURL, fetch: sluice.fetch });
    };

    it('answers chat completions, streamed and whole, and responses', async () => {
      const openai = await client();
      const whole = await openai.chat.completions.create({ model: 'm', messages });
      expect(whole.choices[0]?.message.content).to.be.a('string').and.not.empty;
      let text = '';
      for await (const chunk of await openai.chat.completions.create({ model: 'm', messages, stream: true })) {
        text += chunk.choices[0]?.delta.content ?? '';
      }
      expect(text).to.equal(whole.choices[0]?.message.content);
      const response = await openai.responses.create({ model: 'm', input: 'Hello' });
      expect(response.output_text).to.not.equal('');
      const types: string[] = [];
      for await (const event of await openai.responses.create({ model: 'm', input: 'Hello', stream: true })) {
        types.push(event.type);
      }
      expect(types[0]).to.equal('response.created');
      expect(types.at(-1)).to.equal('response.completed');
    });

    it('works under the stream helper', async () => {
      const openai = await client();
      const stream = openai.chat.completions.stream({ model: 'm', messages });
      const completion = await stream.finalChatCompletion();
      expect(completion.choices[0]?.message.content).to.not.equal('');
    });

    it('retries before the commit, and asks the fallback', async () => {
      const openai = await client();
      emulator?.script([{ kind: 'error', error: 'server_error', model: 'a', times: 'always' }]);
      const answer = await openai.chat.completions.create({ model: 'a', messages });
      expect(answer.model).to.equal('b');
      expect(emulator?.report().log.map(({ model }) => model)).to.deep.equal(['a', 'a', 'b']);
    });

    it('keeps the SDK from retrying on top', async () => {
      const openai = await client(2);
      emulator?.script([{ kind: 'error', error: 'server_error', times: 'always' }]);
      const error = await failureOf(openai.chat.completions.create({ model: 'm', messages }));
      expect(error.status).to.equal(500);
      expect(emulator?.report().log).to.have.length(3);
    });

    it('makes an error of the SDK of a stream that breaks off', async () => {
      const openai = await client();
      emulator?.script([{ kind: 'cut', after: 2 }]);
      const stream = await openai.chat.completions.create({ model: 'm', messages, stream: true });
      let text = '';
      const error = await failureOf(
        (async () => {
          for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
        })(),
      );
      expect(text).to.not.equal('');
      expect(error).to.be.instanceOf(Version.APIError);
    });

    it('rejects where the caller aborts, and only there', async () => {
      const openai = await client();
      emulator?.script([{ kind: 'stall', after: 'connect' }]);
      const controller = new AbortController();
      const failing = failureOf(
        openai.chat.completions.create({ model: 'm', messages }, { signal: controller.signal }),
      );
      setTimeout(() => controller.abort(), 20);
      expect(await failing).to.be.instanceOf(Version.APIUserAbortError);
    });

    it('works under parse and runTools', async () => {
      const openai = await client();
      const schema = {
        type: 'object',
        properties: { answer: { type: 'string' } },
        required: ['answer'],
        additionalProperties: false,
      };
      emulator?.script([{ kind: 'pass', answer: { text: '{"answer":"42"}' } }]);
      const parsed = await openai.chat.completions.parse({
        model: 'm',
        messages,
        response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } },
      });
      expect(parsed.choices[0]?.message.parsed).to.deep.equal({ answer: '42' });

      const asked: unknown[] = [];
      const tool = {
        type: 'function' as const,
        function: {
          name: 'look',
          description: 'Looks it up.',
          parameters: schema,
          parse: JSON.parse,
          function: (args: unknown) => {
            asked.push(args);
            return 'found';
          },
        },
      };
      emulator?.script([
        { kind: 'pass', answer: { toolCalls: [{ name: 'look', arguments: '{"answer":"42"}' }] } },
        { kind: 'pass', answer: { text: 'It is 42.' } },
      ]);
      const runner = openai.chat.completions.runTools({ model: 'm', messages, tools: [tool as never] });
      expect(await runner.finalContent()).to.equal('It is 42.');
      expect(asked).to.deep.equal([{ answer: '42' }]);
    });
  });

  const post = (
    openai: OpenAI,
    body: string,
    headers: Record<string, string> = {},
    path = '/chat/completions',
  ): Promise<Response> =>
    sluice.fetch(`${openai.baseURL}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
  const whole = (model: string): object => ({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, finish_reason: 'stop' }],
  });

  it('sends the bytes that came where nothing has to be adapted, and passes headers on both ways', async () => {
    const bodies: string[] = [];
    const send: typeof fetch = (input, init) => {
      bodies.push(init?.body as string);
      return fetch(input, init);
    };
    const openai = await raw(
      ({ json }) => json(200, whole('m'), { 'x-request-id': 'r-7', 'x-own': 'kept' }),
      {},
      { fetch: send },
    );
    const body = '{ "messages": [{"content":"Hello", "role":"user"}],  "seed": 12345678901234567890, "model":"m" }';
    const response = await post(openai, body, { authorization: 'Bearer key', 'x-extra': '1' });
    expect(bodies).to.deep.equal([body]);
    expect(response.headers.get('x-request-id')).to.equal('r-7');
    expect(response.headers.get('x-own')).to.equal('kept');
    expect(server?.exchanges[0]?.headers).to.include({ authorization: 'Bearer key', 'x-extra': '1' });
    expect(await response.json()).to.deep.equal(whole('m'));
  });

  it('adapts the body where the policy says so', async () => {
    const models = { m: { params: { omit: ['temperature'] }, deployments: [{ client: 'main', model: 'm-eu' }] } };
    const openai = await raw(({ json }) => json(200, whole('m')), { models });
    await post(openai, JSON.stringify({ model: 'm', messages, temperature: 1 }));
    expect(server?.exchanges[0]?.body).to.deep.equal({ model: 'm-eu', messages, stream: false });
  });

  it('takes call options from headers that never reach the provider', async () => {
    const openai = await raw(({ json }) => json(200, whole('m')), { conversations: { header: 'x-thread' } });
    const headers = {
      'x-sluice-conversation': 'c-1',
      'x-sluice-tenant': 'acme',
      'x-sluice-priority': 'batch',
      'x-sluice-deadline-ms': '5000',
    };
    const response = await post(openai, JSON.stringify({ model: 'm', messages }), headers);
    expect(response.status).to.equal(200);
    expect(events.at(-1)).to.include({ type: 'call.ended', tenant: 'acme', conversation: 'c-1' });
    const sent = server?.exchanges[0]?.headers ?? {};
    expect(Object.keys(sent).filter((name) => name.startsWith('x-sluice'))).to.deep.equal([]);
    expect(sent['x-thread']).to.equal('c-1');
  });

  it('holds to the deadline and priorities that headers name', async () => {
    const openai = await raw(() => {});
    const body = JSON.stringify({ model: 'm', messages });
    const late = await post(openai, body, { 'x-sluice-deadline-ms': '30' });
    expect(late.status).to.equal(504);
    expect(late.headers.get('x-should-retry')).to.equal('false');
    expect(await late.json()).to.have.nested.property('error.code', 'timeout_deadline');
    for (const headers of [
      { 'x-sluice-deadline-ms': 'soon' },
      { 'x-sluice-priority': 'never' },
      { 'x-sluice-tennant': 'a' },
    ]) {
      const refused = await post(openai, body, headers as never);
      expect(refused.status).to.equal(400);
      expect(await refused.json()).to.have.nested.property('error.code', 'invalid_request');
    }
  });

  it('passes through what it does not understand, without our headers', async () => {
    const openai = await raw(({ json }) => json(200, { ok: true }));
    const send = (path: string, init: RequestInit): Promise<Response> => sluice.fetch(`${openai.baseURL}${path}`, init);
    const headers = { 'x-sluice-tenant': 'acme', 'x-other': '1' };
    await send('/embeddings', { method: 'POST', headers, body: '{"model":"m","input":"x"}' });
    await send('/models', { headers });
    await send('/chat/completions', { method: 'POST', headers, body: '{"model":' + '7}' });
    await send('/responses', { method: 'POST', headers, body: '{"model":"m","input":"x","background":true}' });
    await sluice.fetch(new Request(`${openai.baseURL}/models`, { headers }));
    expect(events).to.deep.equal([]);
    expect(server?.exchanges).to.have.length(5);
    for (const exchange of server?.exchanges ?? []) {
      expect(exchange.headers).to.not.have.property('x-sluice-tenant');
      expect(exchange.headers).to.have.property('x-other', '1');
    }
  });

  it('gives back what the provider said of a failure, with its wait, and tells the SDK not to retry', async () => {
    const failure = { error: { message: 'no', type: 'requests', param: 'messages', code: 'rate_limit_exceeded' } };
    const retry = { attempts: 1 };
    const openai = await raw(
      ({ json }) =>
        json(429, failure, { 'retry-after': '7', 'x-request-id': 'r-1', 'x-ratelimit-limit-requests': '9' }),
      {
        models: { default: { retry } },
      },
    );
    const response = await post(openai, JSON.stringify({ model: 'm', messages }));
    expect(response.status).to.equal(429);
    expect(await response.json()).to.deep.equal(failure);
    expect(response.headers.get('x-should-retry')).to.equal('false');
    expect(Number(response.headers.get('retry-after-ms'))).to.be.within(6_000, 7_000);
    expect(response.headers.get('retry-after')).to.equal('7');
    expect(response.headers.get('x-ratelimit-limit-requests')).to.equal('9');
  });

  it('makes a Response of a connection that fails, and rejects on abort only', async () => {
    const openai = await raw((exchange) => exchange.reset(), { models: { default: { retry: { attempts: 1 } } } });
    const response = await post(openai, JSON.stringify({ model: 'm', messages }));
    expect(response.status).to.equal(502);
    expect(await response.json()).to.have.nested.property('error.code', 'connection');
    const signal = AbortSignal.abort(new Error('mine'));
    const error = await failureOf(
      sluice.fetch(`${openai.baseURL}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', messages }),
        signal,
      }),
    );
    expect(error.message).to.equal('mine');
  });

  it('refuses with 503 once the client is closed', async () => {
    const openai = await raw(() => {});
    await sluice.close();
    const response = await post(openai, JSON.stringify({ model: 'm', messages }));
    expect(response.status).to.equal(503);
  });

  it('resolves at the commit, and reads the body at the pace of its reader', async () => {
    const openai = await raw(() => {});
    const responding = post(openai, JSON.stringify({ model: 'm', messages, stream: true }));
    const exchange = await (server as RawServer).next();
    const chunk = (content: string, reason: string | null = null): object => ({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta: { content }, finish_reason: reason }],
    });
    exchange.head();
    exchange.events(chunk(''));
    expect(await Promise.race([responding, new Promise((resolve) => setTimeout(() => resolve('held'), 30))])).to.equal(
      'held',
    );
    exchange.events(chunk('Hello'));
    const response = await responding;
    // More than what the sockets and buffers in between hold.
    const large = chunk('x'.repeat(64 * 1024));
    let blocked = false;
    for (let sent = 0; sent < 400 && !blocked; sent++) {
      blocked = !exchange.write(`data: ${JSON.stringify(large)}\n\n`);
      if (blocked)
        blocked =
          (await Promise.race([
            exchange.drained(),
            new Promise((resolve) => setTimeout(() => resolve('blocked'), 150)),
          ])) === 'blocked';
    }
    expect(blocked, 'the provider is held back').to.equal(true);
    exchange.events(chunk('', 'stop'), '[DONE]');
    exchange.end();
    const text = await response.text();
    expect(text.startsWith('data: ')).to.equal(true);
    expect(text.endsWith('data: [DONE]\n\n')).to.equal(true);
  });

  it('aborts the request when the body is cancelled', async () => {
    const openai = await raw(() => {});
    const responding = post(openai, JSON.stringify({ model: 'm', messages, stream: true }));
    const exchange = await (server as RawServer).next();
    exchange.head();
    exchange.events({ id: 'c', choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] });
    const response = await responding;
    await response.body?.cancel();
    expect((await exchange.closed).aborted).to.equal(true);
    expect(events.at(-1)).to.include({ type: 'call.ended', outcome: 'dropped' });
  });

  it('asks a fallback through the client that serves it', async () => {
    const other = await startEmulator({ tokens: 5, firstTokenMs: 2, tokenMs: 1 });
    try {
      server = await rawServer(({ json }) => json(500, { error: { message: 'down' } }));
      const clients = {
        main: new OpenAI({ ...KEYS, baseURL: server.baseURL }),
        other: new OpenAI({ ...KEYS, baseURL: other.baseURL }),
      };
      sluice = createSluice(clients, {
        models: { a: { fallback: ['b'], retry: { attempts: 1 } }, b: { client: 'other' } },
      });
      const openai = new OpenAI({ ...KEYS, baseURL: server.baseURL, fetch: sluice.fetch });
      const answer = await openai.chat.completions.create({ model: 'a', messages });
      expect(answer.model).to.equal('b');
      expect(other.report().log).to.have.length(1);
    } finally {
      await other.close();
    }
  });

  it('lets a request of its own pass that a client with the same fetch sends', async () => {
    server = await rawServer(({ json }) => json(200, whole('m')));
    const { baseURL } = server;
    const inner: OpenAI = new OpenAI({ ...KEYS, baseURL, fetch: (input, init) => sluice.fetch(input, init) });
    sluice = createSluice(inner, { models: { default: { concurrency: { limit: 1 } } } });
    let calls = 0;
    sluice.events$.subscribe(({ type }) => (calls += type === 'call.ended' ? 1 : 0));
    await new Promise<void>((resolve, reject) => {
      sluice.complete({ model: 'm', messages }).subscribe({ error: reject, complete: () => resolve() });
    });
    expect(calls).to.equal(1);
    expect(server.exchanges).to.have.length(1);
  });

  it('warns once when the SDK still retries', async () => {
    const warnings: string[] = [];
    const openai = await raw(({ json }) => json(200, whole('m')), {}, { warn: (message) => warnings.push(message) });
    for (const count of ['0', '1', '2']) {
      await post(openai, JSON.stringify({ model: 'm', messages }), { 'x-stainless-retry-count': count });
    }
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.contain('maxRetries: 0');
  });
});
