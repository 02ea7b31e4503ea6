import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import OpenAI, { AzureOpenAI } from 'openai';
import { predictAnswer, startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator, EmulatorOptions } from '../../lib/emulator/index.ts';
import { isSluiceError } from '../../lib/core/errors.ts';

const messages = [{ role: 'user' as const, content: 'hello' }];
const chat = { model: 'm', messages };
const fast: EmulatorOptions = { firstTokenMs: 1, tokenMs: 0, tokens: 8 };

describe('startEmulator', () => {
  let emulator: Emulator;
  let openai: OpenAI;

  const start = async (options: EmulatorOptions = {}): Promise<void> => {
    emulator = await startEmulator({ ...fast, ...options });
    openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none', maxRetries: 0 });
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(emulator.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  /** Sends a streamed request with node:http, and gives the answer when its head has come. */
  const ask = (body: object = { ...chat, stream: true }) =>
    new Promise<{ response: IncomingMessage; leave: () => void }>((resolve, reject) => {
      const request = httpRequest(
        `${emulator.baseURL}/chat/completions`,
        { method: 'POST', agent: false },
        (response) => {
          response.on('error', () => {});
          resolve({ response, leave: () => request.destroy() });
        },
      );
      request.on('error', reject);
      request.end(JSON.stringify(body));
    });
  const until = async (holds: () => boolean): Promise<number> => {
    const startMs = performance.now();
    while (!holds()) {
      if (performance.now() - startMs > 3_000) throw new Error('it never held');
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return performance.now() - startMs;
  };

  afterEach(() => emulator.close());

  describe('with the openai SDK', () => {
    it('streams the predicted text, with usage at the end', async () => {
      await start();
      const stream = await openai.chat.completions.create({
        ...chat,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = '';
      const usages: unknown[] = [];
      const reasons: unknown[] = [];
      for await (const { choices, usage, model } of stream) {
        expect(model).to.equal('m');
        text += choices[0]?.delta.content ?? '';
        if (choices[0]?.finish_reason) reasons.push(choices[0].finish_reason);
        if (usage) usages.push(usage);
      }
      expect(text).to.equal(predictAnswer(chat, { tokens: 8 }));
      expect(reasons).to.deep.equal(['stop']);
      expect(usages).to.have.length(1);
      expect(usages[0]).to.include({ prompt_tokens: 6, completion_tokens: 8, total_tokens: 14 });
    });

    it('answers in one piece, with the same text, several choices, and a length limit', async () => {
      await start();
      const { choices, usage } = await openai.chat.completions.create({ ...chat, n: 2, max_completion_tokens: 4 });
      expect(choices.map(({ message }) => message.content)).to.deep.equal([
        predictAnswer({ ...chat, max_completion_tokens: 4 }, { tokens: 8 }),
        predictAnswer({ ...chat, max_completion_tokens: 4 }, { tokens: 8, choice: 1 }),
      ]);
      expect(choices[0]?.finish_reason).to.equal('length');
      expect(usage?.completion_tokens).to.equal(8);
    });

    it('streams several choices in turns', async () => {
      await start({ tokens: 3 });
      const order: number[] = [];
      for await (const { choices } of await openai.chat.completions.create({ ...chat, n: 2, stream: true })) {
        if (choices[0]?.delta.content) order.push(choices[0].index);
      }
      expect(order).to.deep.equal([0, 1, 0, 1, 0, 1]);
    });

    it('calls the function that the request insists on, in pieces', async () => {
      await start({ tokens: 4 });
      const tools = [{ type: 'function' as const, function: { name: 'look_up', parameters: {} } }];
      let json = '';
      let name: string | undefined;
      let reason: string | null | undefined;
      const stream = await openai.chat.completions.create({ ...chat, tools, tool_choice: 'required', stream: true });
      for await (const { choices } of stream) {
        const call = choices[0]?.delta.tool_calls?.[0];
        name ??= call?.function?.name;
        json += call?.function?.arguments ?? '';
        reason = choices[0]?.finish_reason ?? reason;
      }
      expect(name).to.equal('look_up');
      expect(JSON.parse(json)).to.deep.equal({ answer: predictAnswer(chat, { tokens: 4 }) });
      expect(reason).to.equal('tool_calls');
    });

    it('sends the reasoning, refusals, tool calls and texts of a script', async () => {
      await start();
      emulator.script([
        { kind: 'pass', answer: { refusal: true, reasoningTokens: 2 } },
        { kind: 'pass', answer: { toolCalls: [{ name: 'a', arguments: '{}' }, { name: 'b' }] } },
        { kind: 'pass', answer: { text: 'Exactly this.' } },
      ]);
      const answers = [];
      for (let i = 0; i < 3; i++) answers.push((await openai.chat.completions.create(chat)).choices[0]?.message);
      expect(answers[0]?.refusal).to.equal(predictAnswer(chat, { tokens: 8 }));
      expect(answers[0]).to.have.property('reasoning_content').with.length.above(3);
      expect(answers[1]?.tool_calls?.map((call) => call.type === 'function' && call.function.name)).to.deep.equal([
        'a',
        'b',
      ]);
      expect(answers[2]?.content).to.equal('Exactly this.');
    });

    it('goes on after a prefix of its own answer', async () => {
      await start();
      const whole = predictAnswer(chat, { tokens: 8 });
      for (const chars of [0, 5, 8, 20, whole.length]) {
        const prefix = whole.slice(0, chars);
        const { choices } = await openai.chat.completions.create({
          ...chat,
          messages: [...messages, { role: 'assistant', content: prefix }],
        });
        expect(prefix + (choices[0]?.message.content ?? '')).to.equal(whole);
      }
    });

    it('streams and answers the Responses API', async () => {
      await start();
      const request = { model: 'm', input: 'hello' };
      const types: string[] = [];
      const numbers: number[] = [];
      let text = '';
      for await (const event of await openai.responses.create({ ...request, stream: true })) {
        types.push(event.type);
        numbers.push(event.sequence_number);
        if (event.type === 'response.output_text.delta') text += event.delta;
      }
      expect(text).to.equal(predictAnswer(request, { tokens: 8 }));
      expect(types[0]).to.equal('response.created');
      expect(types.at(-1)).to.equal('response.completed');
      expect(numbers).to.deep.equal(numbers.map((_, index) => index));
      const whole = await openai.responses.create({ ...request, max_output_tokens: 4 });
      expect(whole.output_text).to.equal(predictAnswer({ ...request, max_output_tokens: 4 }));
      expect(whole.incomplete_details?.reason).to.equal('max_output_tokens');
    });

    it('gives unit vectors, the same for the same text', async () => {
      await start();
      const { data, usage } = await openai.embeddings.create({ model: 'e', input: ['a', 'b', 'a'], dimensions: 32 });
      const floats = await openai.embeddings.create({
        model: 'e',
        input: 'a',
        encoding_format: 'float',
        dimensions: 32,
      });
      expect(data.map(({ embedding }) => embedding.length)).to.deep.equal([32, 32, 32]);
      expect(data[0]?.embedding).to.deep.equal(data[2]?.embedding).and.not.to.deep.equal(data[1]?.embedding);
      expect(Math.hypot(...(data[0]?.embedding ?? []))).to.be.closeTo(1, 1e-6);
      expect(floats.data[0]?.embedding).to.deep.equal(data[0]?.embedding);
      expect(usage.total_tokens).to.equal(1);
    });

    it('lists its models, and knows no other', async () => {
      await start({ models: { a: {}, b: {} } });
      const listed = [];
      for await (const { id } of openai.models.list()) listed.push(id);
      expect(listed).to.deep.equal(['a', 'b']);
      const error = await openai.chat.completions.create(chat).catch((caught: unknown) => caught);
      expect(error).to.include({ status: 404, code: 'model_not_found' });
    });

    it('serves the Azure client, whose path names the model', async () => {
      await start({ dialect: 'azure', requestsPerMinute: 60 });
      const azure = new AzureOpenAI({
        endpoint: emulator.url,
        apiKey: 'none',
        apiVersion: '2026-01-01',
        deployment: 'gpt-eu',
      });
      const { data, response } = await azure.chat.completions.create({ ...chat, model: 'gpt-eu' }).withResponse();
      expect(data.model).to.equal('gpt-eu');
      expect(response.headers.get('apim-request-id')).to.match(/^req_/);
    });

    it('refuses above the quota with the hint and the limits in the headers', async () => {
      await start({ requestsPerMinute: 60, burstRequests: 1 });
      await openai.chat.completions.create(chat);
      const error = await openai.chat.completions.create(chat).catch((caught: unknown) => caught);
      if (!(error instanceof OpenAI.RateLimitError)) return expect.fail('no rate limit');
      expect(Number(error.headers.get('retry-after-ms'))).to.be.within(1, 1_000);
      expect(error.headers.get('x-ratelimit-limit-requests')).to.equal('60');
      expect(emulator.report().rateLimited).to.deep.equal({ total: 1, requests: 1 });
      emulator.setQuota({ account: { requestsPerMinute: 60_000, burstRequests: 100 } });
      await new Promise((resolve) => setTimeout(resolve, 5));
      await openai.chat.completions.create(chat);
    });
  });

  describe('faults over HTTP', () => {
    it('resets the connection before the head', async () => {
      await start({ script: [{ kind: 'reset', after: 'connect' }] });
      const error = await ask().catch((caught: unknown) => caught);
      expect(error).to.have.property('code', 'ECONNRESET');
      expect(emulator.report().log[0]).to.include({ outcome: 'cut', status: undefined });
    });

    it('resets the connection in mid-stream, and what was sent before it arrives', async () => {
      await start({ script: [{ kind: 'reset', after: 2 }] });
      const { response } = await ask();
      let text = '';
      response.on('data', (part: Buffer) => (text += part.toString()));
      const error = await new Promise<unknown>((resolve) => response.on('error', resolve));
      expect(error).to.have.property('code', 'ECONNRESET');
      expect(text.match(/"content":" ?\w+"/g)).to.have.length(2);
    });

    it('ends cleanly without a finish reason', async () => {
      await start({ script: [{ kind: 'cut', after: 2 }] });
      const text = await (await post('/v1/chat/completions', { ...chat, stream: true })).text();
      expect(text).not.to.match(/"finish_reason":"|DONE/);
      expect(emulator.report().log[0]).to.include({ outcome: 'cut', chunks: 2 });
    });

    it('sends the head and then nothing, or nothing at all', async () => {
      await start({
        script: [
          { kind: 'stall', after: 'headers' },
          { kind: 'stall', after: 'connect' },
        ],
      });
      const { response, leave } = await ask();
      expect(response.statusCode).to.equal(200);
      expect(response.headers['content-type']).to.match(/event-stream/);
      leave();
      const silent = ask().catch(() => 'left');
      await until(() => emulator.report().requests === 2);
      expect(await Promise.race([silent, new Promise((resolve) => setTimeout(() => resolve('waiting'), 30))])).to.equal(
        'waiting',
      );
    });

    it('leaves the socket open after [DONE], and counts the answer as whole', async () => {
      await start({ script: [{ kind: 'stall', after: 'done' }] });
      const { response, leave } = await ask();
      let text = '';
      response.on('data', (part: Buffer) => (text += part.toString()));
      await until(() => text.endsWith('data: [DONE]\n\n'));
      expect(emulator.report().log[0]).to.include({ outcome: 'answered' });
      expect(emulator.report().openConnections).to.equal(1);
      leave();
      await until(() => emulator.report().openConnections === 0);
      expect(emulator.report().aborts).to.equal(0);
    });

    it('writes bytes verbatim, each in its own read', async () => {
      const chunks = ['data: {"a', { hex: 'e282' }, { hex: 'ac' }, '"}\n\n'];
      await start({ script: [{ kind: 'bytes', chunks, everyMs: 10, headers: { 'X-Own': '1' } }] });
      const { response } = await ask();
      const reads: string[] = [];
      for await (const part of response) reads.push((part as Buffer).toString('hex'));
      expect(reads).to.deep.equal(chunks.map((c) => (typeof c === 'string' ? Buffer.from(c).toString('hex') : c.hex)));
      expect(response.headers['x-own']).to.equal('1');
    });

    it('stops a flood while nobody reads, and loses nothing', async () => {
      const bytes = 64 * 1_048_576;
      await start({ script: [{ kind: 'flood', bytes }] });
      const { response } = await ask();
      response.pause();
      await until(() => emulator.report().bytes > 0);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const stopped = emulator.report();
      expect(stopped.bytes).to.be.below(16 * 1_048_576);
      expect(stopped.maxBufferedBytes).to.be.within(1, 1_048_576);
      const parts: Buffer[] = [];
      for await (const part of response) parts.push(part as Buffer);
      let content = 0;
      for (const [, text = ''] of Buffer.concat(parts)
        .toString('latin1')
        .matchAll(/"content":"(x+)"/g))
        content += text.length;
      expect(content).to.equal(bytes);
      expect(emulator.report().log[0]).to.include({ outcome: 'answered' });
    });

    it('answers 500 to the request whose script throws, and goes on', async () => {
      await start();
      emulator.script([
        {
          kind: 'html',
          when: () => {
            throw new Error('oh no');
          },
        },
      ]);
      const response = await post('/v1/chat/completions', chat);
      expect([response.status, await response.text()].join(' ')).to.match(/^500 .*oh no/);
      emulator.script([]);
      await openai.chat.completions.create(chat);
    });
  });

  describe('what it sees', function () {
    // Times are real here, and the machine may be busy.
    this.retries(3);

    const phases = [
      ['headers', { kind: 'stall', after: 'connect' }],
      ['first_content', { kind: 'stall', after: 'headers' }],
      ['streaming', { kind: 'stall', after: 3 }],
      ['tail', { kind: 'stall', after: 'finish' }],
    ] as const;
    for (const [phase, fault] of phases) {
      it(`sees within 50 ms that the client has left while in ${phase}`, async () => {
        await start({ script: [fault] });
        const socket = connect(emulator.port, '127.0.0.1');
        const body = JSON.stringify({ ...chat, stream: true });
        socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
        await until(() => emulator.report().log[0]?.phase === phase);
        await new Promise((resolve) => setTimeout(resolve, 20));
        socket.destroy();
        expect(await until(() => emulator.report().aborts === 1)).to.be.below(50);
        const [record] = emulator.report().log;
        expect(record).to.include({ outcome: 'aborted', phase });
        expect(record?.abortedAfterMs).to.be.within(15, 1_000);
        expect(emulator.report()).to.deep.include({ running: 0, abortsByPhase: { [phase]: 1 } });
      });
    }

    it('keeps arrivals, completions and overlap of conversations', async () => {
      await start({ script: [{ kind: 'slow', firstTokenMs: 500 }] });
      const headers = { 'x-conversation': 'c' };
      const first = openai.chat.completions.create(chat, { headers });
      await until(() => emulator.report().requests === 1);
      await Promise.all([first, openai.chat.completions.create(chat, { headers })]);
      await openai.chat.completions.create(chat, { headers });
      expect(emulator.report().conversations['c']).to.deep.include({ maxConcurrent: 2, arrivals: [1, 2, 3] });
      expect(emulator.report().conversations['c']?.completions).to.have.length(3);
      expect(emulator.report().log.map(({ retryCount }) => retryCount)).to.deep.equal([0, 0, 0]);
    });

    it('keeps bodies and named headers only when told to', async () => {
      await start({ recordBodies: true, recordHeaders: ['X-Tag'] });
      await openai.chat.completions.create(chat, { headers: { 'x-tag': 'a' } });
      expect(emulator.report().log[0]).to.deep.include({ headers: { 'x-tag': 'a' }, body: chat });
      await emulator.close();
      await start();
      await openai.chat.completions.create(chat, { headers: { 'x-tag': 'a' } });
      expect(emulator.report().log[0]).not.to.have.any.keys('headers', 'body');
      expect(JSON.stringify(emulator.report())).not.to.include('hello');
    });

    it('begins anew with reset', async () => {
      await start({ requestsPerMinute: 60, burstRequests: 1, script: [{ kind: 'pass' }] });
      await openai.chat.completions.create(chat);
      emulator.setQuota({ account: { burstRequests: 50 } });
      emulator.reset();
      expect(emulator.report()).to.include({ requests: 0, scriptLeft: 1, openConnections: 1 });
      await openai.chat.completions.create(chat);
      expect((await post('/v1/chat/completions', chat)).status).to.equal(429);
    });
  });

  describe('control', () => {
    it('reports, takes a script and a quota, and resets over HTTP', async () => {
      await start();
      expect((await post('/script', { faults: [{ kind: 'html' }] })).status).to.equal(200);
      expect((await post('/v1/chat/completions', chat)).status).to.equal(502);
      expect((await post('/script', [{ kind: 'html', times: 'always' }])).status).to.equal(200);
      const report = (await (await fetch(`${emulator.url}/report`)).json()) as Record<string, unknown>;
      expect(report).to.deep.include({ requests: 1, scriptLeft: -1, faults: { html: 1 }, statuses: { 502: 1 } });
      await post('/reset', '');
      await post('/quota', { account: { requestsPerMinute: 1 } });
      expect((await post('/v1/chat/completions', chat)).status).to.equal(200);
      expect((await post('/v1/chat/completions', chat)).status).to.equal(429);
    });

    const wrong: readonly [string, string, string, number, RegExp][] = [
      ['POST', '/script', '[{"kind":"cut"}]', 400, /script\[0\]\.after must be given/],
      ['POST', '/script', '{}', 400, /script must be a list/],
      ['POST', '/quota', '{"account":{"requestsPerMinute":0}}', 400, /account\.requestsPerMinute must be/],
      ['POST', '/v1/chat/completions', 'no json', 400, /not JSON/],
      ['POST', '/v1/chat/completions', '[]', 400, /model parameter/],
      ['GET', '/v1/chat/completions', '', 405, /use POST/],
      ['POST', '/report', '', 405, /use GET/],
      ['GET', '/nowhere', '', 404, /nothing at this address/],
      ['GET', '/constructor', '', 404, /nothing at this address/],
    ];
    for (const [method, path, body, status, message] of wrong) {
      it(`answers ${status} to ${method} ${path} ${body}`, async () => {
        await start();
        const response = await fetch(emulator.url + path, method === 'GET' ? {} : { method, body });
        expect(response.status).to.equal(status);
        expect(((await response.json()) as { error: { message: string } }).error.message).to.match(message);
      });
    }

    it('is not steered by web pages', async () => {
      await start();
      expect((await post('/reset', '', { origin: 'https://example.com' })).status).to.equal(403);
      expect((await post('/v1/chat/completions', chat, { origin: 'https://example.com' })).status).to.equal(200);
    });

    it('refuses a body above the bound', async () => {
      await start({ maxBodyBytes: 1_000 });
      expect((await post('/v1/chat/completions', 'x'.repeat(1_001))).status).to.equal(413);
      expect((await post('/v1/chat/completions', { ...chat, pad: 'x'.repeat(800) })).status).to.equal(200);
      expect(emulator.report().requests).to.equal(1);
    });
  });

  describe('life', () => {
    it('ends every connection at once with close, in every phase', async () => {
      await start({
        script: [
          { kind: 'stall', after: 'headers' },
          { kind: 'stall', after: 2 },
        ],
      });
      const both = await Promise.all([ask(), ask()]);
      await until(() => emulator.report().log[1]?.phase === 'streaming');
      const closed = both.map(({ response }) => new Promise((resolve) => response.on('close', resolve)));
      const startMs = performance.now();
      await Promise.all([emulator.close(), emulator.close(), ...closed]);
      expect(performance.now() - startMs).to.be.below(500);
      expect(emulator.report()).to.include({ running: 0, openConnections: 0, aborts: 0 });
      expect(emulator.report().log.map(({ outcome }) => outcome)).to.deep.equal(['closed', 'closed']);
    });

    it('keeps no process alive after close, whatever was scripted', async () => {
      await start();
      const program = `
        import { startEmulator } from './lib/emulator/index.ts';
        const emulator = await startEmulator({ firstTokenMs: 60_000 });
        const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a' }], stream: true });
        fetch(emulator.baseURL + '/chat/completions', { method: 'POST', body }).then((r) => r.text()).catch(() => {});
        while (emulator.report().requests === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        await emulator.close();
      `;
      const startMs = performance.now();
      await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 8_000 });
      expect(performance.now() - startMs).to.be.below(5_000);
    });

    it('listens on this machine only', async () => {
      await start();
      expect(emulator.url).to.equal(`http://127.0.0.1:${emulator.port}`);
    });

    it('refuses wrong options by name', async () => {
      await start();
      const wrong: readonly [string, EmulatorOptions][] = [
        ['port', { port: 70_000 }],
        ['host', { host: '' }],
        ['maxBodyBytes', { maxBodyBytes: 0 }],
        ['maxRecords', { maxRecords: -1 }],
        ['recordHeaders', { recordHeaders: ['Authorization'] }],
        ['requestsPerMinute', { requestsPerMinute: Number.NaN }],
      ];
      for (const [name, options] of wrong) {
        const error = await startEmulator(options).catch((caught: unknown) => caught);
        expect(isSluiceError(error) && error.message).to.match(new RegExp(`^${name} must be`));
      }
    });

    it('tells when its port is taken', async () => {
      await start();
      const error = await startEmulator({ port: emulator.port }).catch((caught: unknown) => caught);
      expect(error).to.have.property('code', 'EADDRINUSE');
    });
  });
});
