import { expect } from 'chai';
import OpenAI from 'openai';
import { createSluice } from '../../../lib/client/createSluice.ts';
import { isRequest, MAX_REQUEST_BYTES } from '../../../lib/client/fetch/readRequest.ts';
import type { Sluice } from '../../../lib/client/Sluice.ts';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type { Emulator } from '../../../lib/emulator/index.ts';

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
const policy = { models: { default: { retry: { attempts: 3, baseMs: 1 } } } };

describe('sluice.fetch of a Request', () => {
  let emulator: Emulator;
  let sluice: Sluice;
  let calls: number;
  const sent: (readonly [unknown, RequestInit | undefined])[] = [];

  beforeEach(async () => {
    emulator = await startEmulator({
      firstTokenMs: 1,
      recordBodies: true,
      recordHeaders: ['x-kept', 'x-sluice-tenant'],
    });
    const send: typeof fetch = (input, init) => {
      sent.push([input, init]);
      return fetch(input, init);
    };
    sluice = createSluice(new OpenAI({ apiKey: 'key', baseURL: emulator.baseURL }), policy, { fetch: send });
    calls = sent.length = 0;
    sluice.events$.subscribe(({ type }) => (calls += type === 'call.ended' ? 1 : 0));
  });
  afterEach(() => emulator.close());

  const request = (init: RequestInit = {}, path = '/chat/completions'): Request =>
    new Request(`${emulator.baseURL}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-kept': '1', 'x-sluice-tenant': 'acme' },
      body,
      ...init,
    });

  it('makes a call of it, which is tried again with its bytes and headers', async () => {
    emulator.script([{ kind: 'error', error: 'server_error', times: 2 }]);
    const asked = request();
    const response = await sluice.fetch(asked);
    expect(response.status).to.equal(200);
    expect(calls).to.equal(1);
    expect(asked.bodyUsed).to.equal(true);
    const { log } = emulator.report();
    expect(log.map(({ status }) => status)).to.deep.equal([500, 500, 200]);
    for (const record of log) {
      expect(record.body).to.deep.equal(JSON.parse(body));
      expect(record.headers).to.deep.equal({ 'x-kept': '1' });
    }
  });

  it('keeps what only the Request says, such as how to follow redirects', async () => {
    await sluice.fetch(request({ redirect: 'error' }));
    const [input, init] = sent[0] ?? [];
    expect(new Request(input as Request, init).redirect).to.equal('error');
  });

  it('lets init stand over the Request', async () => {
    const other = body.replace('"m"', '"other"');
    await sluice.fetch(request(), { body: other, headers: { 'x-kept': '2' } });
    const [record] = emulator.report().log;
    expect(record?.model).to.equal('other');
    expect(record?.headers).to.deep.equal({ 'x-kept': '2' });
    await sluice.fetch(request(), { method: 'PUT' });
    expect(calls).to.equal(1);
  });

  it('rejects with the reason where the signal of the Request is aborted, before and in flight', async () => {
    const before = await sluice
      .fetch(request({ signal: AbortSignal.abort('mine') }))
      .catch((reason: unknown) => reason);
    expect(before).to.equal('mine');
    emulator.script([{ kind: 'stall', after: 'connect' }]);
    const controller = new AbortController();
    const failing = sluice.fetch(request({ signal: controller.signal })).catch((reason: unknown) => reason);
    while (emulator.report().running === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    controller.abort('enough');
    expect(await failing).to.equal('enough');
    expect(sluice.snapshot().calls).to.equal(0);
  });

  it('does not wait for a body that never ends once it is aborted', async () => {
    const controller = new AbortController();
    const endless = new ReadableStream<Uint8Array>({ start: (to) => to.enqueue(new TextEncoder().encode('{')) });
    const init = { body: endless, duplex: 'half', signal: controller.signal };
    const failing = sluice.fetch(request(init as RequestInit)).catch((reason: unknown) => reason);
    controller.abort('enough');
    expect(await failing).to.equal('enough');
    expect(calls).to.equal(0);
  });

  it('passes on what it does not understand, whole', async () => {
    const embedding = await sluice.fetch(request({ body: '{"model":"m","input":"x"}' }, '/embeddings'));
    expect(embedding.status).to.equal(200);
    const unreadable = request({ body: '{"model":7}' });
    await sluice.fetch(unreadable);
    expect(emulator.report().log[0]?.body).to.deep.equal({ model: 'm', input: 'x' });
    expect((sent[1]?.[0] as Request).bodyUsed).to.equal(true);
    expect(calls).to.equal(0);
    const used = request();
    await used.text();
    expect(await sluice.fetch(used).catch((error: unknown) => error)).to.be.instanceOf(TypeError);
  });

  it('passes on a body that is too large to be read', async () => {
    let size = 0;
    const send: typeof fetch = async (input) => {
      for await (const part of (input as Request).body as ReadableStream<Uint8Array>) size += part.length;
      return new Response('{}');
    };
    sluice = createSluice(new OpenAI({ apiKey: 'key', baseURL: emulator.baseURL }), policy, { fetch: send });
    let left = MAX_REQUEST_BYTES / (1024 * 1024) + 1;
    const part = new Uint8Array(1024 * 1024).fill(32);
    const large = new ReadableStream<Uint8Array>({ pull: (to) => (left-- > 0 ? to.enqueue(part) : to.close()) });
    await sluice.fetch(request({ body: large, duplex: 'half' } as RequestInit));
    expect(size).to.equal(MAX_REQUEST_BYTES + part.length);
  });

  it('knows a Request by what it can do', () => {
    expect(isRequest(request())).to.equal(true);
    expect(isRequest({ url: 'http://a.invalid', clone: () => ({}) } as never)).to.equal(true);
    expect(isRequest('http://a.invalid')).to.equal(false);
    expect(isRequest(new URL('http://a.invalid'))).to.equal(false);
  });
});
