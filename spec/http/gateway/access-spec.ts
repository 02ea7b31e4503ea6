import { expect } from 'chai';
import { createHash } from 'node:crypto';
import type { CallStart } from '../../../lib/core/CallObserver.ts';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type { Emulator } from '../../../lib/emulator/index.ts';
import type { PolicyInput } from '../../../lib/policy/PolicyInput.ts';
import { startGateway } from '../../helpers/gateways.ts';
import type { GatewaySetup, RunningGateway } from '../../helpers/gateways.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };
const PATH = '/v1/chat/completions';
const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex');
const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

const KEYS: PolicyInput = {
  gateway: {
    keys: [
      { hash: hashOf('of-acme'), tenant: 'acme', priority: 'batch' },
      { hash: hashOf('of-operator').toUpperCase() },
    ],
  },
};

describe('createGateway, who may ask', () => {
  let emulator: Emulator;
  let running: RunningGateway;
  const seen: { tenant: string | undefined; priority: string | undefined; conversation: string | undefined }[] = [];

  const start = async (policy: PolicyInput = {}, setup: GatewaySetup = {}): Promise<RunningGateway> => {
    seen.length = 0;
    const telemetry = {
      onCall({ tenant, priority, conversation }: CallStart): undefined {
        seen.push({ tenant, priority, conversation });
      },
    };
    running = await startGateway(emulator.baseURL, { policy, sluice: { telemetry }, ...setup });
    return running;
  };
  const statusOf = async (headers: Record<string, string>): Promise<number> =>
    (await running.ask(PATH, CHAT, headers)).status;

  before(async () => {
    emulator = await startEmulator({ firstTokenMs: 1, tokenMs: 0, tokens: 2 });
  });
  after(() => emulator.close());
  afterEach(() => running.close());

  it('needs no key where the policy has none, whatever a client sends as one', async () => {
    await start();
    expect(await statusOf({})).to.equal(200);
    expect(await statusOf(bearer('anything'))).to.equal(200);
  });

  it('answers 401 without a key and with a wrong one, and says nothing of it', async () => {
    const { ask } = await start(KEYS);
    const wrong: Record<string, string>[] = [
      {},
      bearer('of-acm'),
      bearer(hashOf('of-acme')),
      { authorization: 'of-acme' },
      { authorization: 'Bearer ' },
      { 'api-key': 'wrong-key' },
    ];
    for (const headers of wrong) {
      const response = await ask(PATH, CHAT, headers);
      expect(response.status).to.equal(401);
      expect(response.headers.get('www-authenticate')).to.equal('Bearer');
      const text = await response.text();
      expect(JSON.parse(text)).to.have.nested.property('error.code', 'invalid_api_key');
      expect(text).to.not.include('acm').and.not.include('wrong-key');
    }
    expect(seen).to.deep.equal([]);
  });

  it('takes a key as OpenAI clients, Azure clients and browsers send it', async () => {
    await start(KEYS);
    expect(await statusOf(bearer('of-acme'))).to.equal(200);
    expect(await statusOf({ authorization: 'bearer of-acme' })).to.equal(200);
    expect(await statusOf({ 'api-key': 'of-acme' })).to.equal(200);
    const basic = Buffer.from('anybody:of-acme').toString('base64');
    expect(await statusOf({ authorization: `Basic ${basic}` })).to.equal(200);
  });

  it('counts calls for the tenant and the priority of the key', async () => {
    const { ask } = await start(KEYS);
    await ask(PATH, CHAT, bearer('of-acme'));
    await ask(PATH, CHAT, { ...bearer('of-acme'), 'x-sluice-tenant': 'acme', 'x-sluice-priority': 'batch' });
    expect(seen.map(({ tenant, priority }) => [tenant, priority])).to.deep.equal([
      ['acme', 'batch'],
      ['acme', 'batch'],
    ]);
  });

  it('refuses a key that names another tenant or priority than its own', async () => {
    const { ask } = await start(KEYS);
    for (const header of ['x-sluice-tenant', 'x-sluice-priority']) {
      const response = await ask(PATH, CHAT, { ...bearer('of-acme'), [header]: 'interactive' });
      expect(response.status).to.equal(403);
      expect(await response.text()).to.include(header);
    }
    expect(seen).to.deep.equal([]);
  });

  it('lets requests name both where the key does not, and where there is no key', async () => {
    const named = { 'x-sluice-tenant': 'initech', 'x-sluice-priority': 'batch' };
    const first = await start(KEYS);
    await first.ask(PATH, CHAT, { ...bearer('of-operator'), ...named });
    expect(seen).to.deep.equal([{ tenant: 'initech', priority: 'batch', conversation: undefined }]);
    await first.close();
    const second = await start();
    await second.ask(PATH, CHAT, named);
    expect(seen).to.deep.equal([{ tenant: 'initech', priority: 'batch', conversation: undefined }]);
  });

  it('keeps conversations of tenants apart', async () => {
    const { ask } = await start(KEYS);
    const headers = { 'x-sluice-conversation': 'c-1' };
    await ask(PATH, CHAT, { ...bearer('of-acme'), ...headers });
    await ask(PATH, CHAT, { ...bearer('of-operator'), ...headers });
    expect(seen.map(({ conversation }) => conversation)).to.deep.equal(['acme/c-1', 'c-1']);
  });

  it('takes keys of a policy that is loaded later, and lets go of those that are gone', async () => {
    const { sluice } = await start(KEYS);
    sluice.reload({ gateway: { keys: [hashOf('of-somebody-else')] } });
    expect(await statusOf(bearer('of-acme'))).to.equal(401);
    expect(await statusOf(bearer('of-somebody-else'))).to.equal(200);
  });

  it('answers 400 to headers that mean nothing', async () => {
    const { ask } = await start();
    const wrong: Record<string, string>[] = [
      { 'x-sluice-tennant': 'acme' },
      { 'x-sluice-priority': 'urgent' },
      { 'x-sluice-deadline-ms': 'soon' },
      { 'x-sluice-mid-stream': 'maybe' },
      { 'x-sluice-tenant': 'a'.repeat(257) },
    ];
    for (const headers of wrong) {
      const response = await ask(PATH, CHAT, headers);
      expect(response.status, JSON.stringify(headers).slice(0, 60)).to.equal(400);
      expect(await response.json()).to.have.nested.property('error.code', 'invalid_request');
    }
    expect(emulator.report().requests).to.be.below(100);
  });

  it('takes a deadline that is shorter than that of the policy, and none that is longer', async () => {
    const stalled = await startEmulator({ firstTokenMs: 60_000 });
    running = await startGateway(stalled.baseURL, {
      policy: { deadlineMs: 300, models: { default: { retry: { attempts: 1 } } } },
    });
    for (const [deadline, most] of [
      ['50', 250],
      ['1e9', 5_000],
    ] as const) {
      const startMs = performance.now();
      const response = await running.ask(PATH, CHAT, { 'x-sluice-deadline-ms': deadline });
      expect(response.status).to.equal(504);
      if (deadline === '1e9') expect(performance.now() - startMs).to.be.within(290, most);
      await response.text();
    }
    await stalled.close();
  });

  describe('and see', () => {
    const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
      fetch(`${running.url}${path}`, { headers, method });

    it('lets anybody ask whether it runs, and whether it takes calls', async () => {
      await start(KEYS);
      expect(await (await get('/healthz')).json()).to.deep.equal({ status: 'ok' });
      expect((await get('/readyz')).status).to.equal(200);
      await running.sluice.close({ drainMs: 0 });
      expect((await get('/healthz')).status).to.equal(200);
      expect((await get('/readyz')).status).to.equal(503);
    });

    it('lists the models of the policy', async () => {
      await start({ models: { 'gpt-5.5': {}, 'vendor/mini': {}, default: {} } });
      const { object, data } = (await (await get('/v1/models')).json()) as { object: string; data: { id: string }[] };
      expect(object).to.equal('list');
      expect(data.map(({ id }) => id)).to.deep.equal(['gpt-5.5', 'vendor/mini']);
      expect(await (await get('/v1/models/vendor%2Fmini')).json()).to.include({ id: 'vendor/mini', object: 'model' });
      const unknown = await get('/v1/models/none');
      expect(unknown.status).to.equal(404);
      expect(await unknown.json()).to.have.nested.property('error.code', 'model_not_found');
    });

    it('shows metrics and pages to keys that are not of one tenant', async () => {
      await start(KEYS, { page: (_, response) => void response.end('page') });
      for (const path of ['/metrics', '/', '/events']) {
        expect((await get(path)).status, path).to.equal(401);
        expect((await get(path, bearer('of-acme'))).status, path).to.equal(403);
        expect((await get(path, bearer('of-operator'))).status, path).to.equal(200);
      }
      expect((await get('/')).headers.get('www-authenticate')).to.match(/^Basic /);
    });

    it('tells Prometheus how the client stands', async () => {
      await start({ models: { m: { concurrency: { limit: 7 } }, default: {} } });
      await running.ask(PATH, CHAT, { 'x-sluice-tenant': 'a"b\\' });
      const response = await get('/metrics');
      expect(response.headers.get('content-type')).to.match(/^text\/plain; version=0\.0\.4/);
      const text = await response.text();
      expect(text).to.include('# TYPE sluice_calls_running gauge\nsluice_calls_running 0\n');
      expect(text).to.match(/^sluice_breaker_state\{sluice_breaker="[^"]+"\} 0$/m);
      expect(text).to.match(/^sluice_concurrency_limit\{sluice_limiter="[^"]+"\} 7$/m);
      expect((await get('/metrics', {}, 'HEAD')).status).to.equal(200);
    });

    it('hands metrics to another listener', async () => {
      await start({}, { metrics: (_, response) => void response.end('others') });
      expect(await (await get('/metrics')).text()).to.equal('others');
    });
  });

  it('answers for the hosts that it is told, with or without a port', async () => {
    await start({}, { hosts: ['127.0.0.1'] });
    expect((await fetch(`${running.url}/healthz`)).status).to.equal(200);
    await running.close();
    await start({}, { hosts: ['gateway.internal'] });
    const response = await fetch(`${running.url}/healthz`);
    expect(response.status).to.equal(421);
    expect(await response.json()).to.have.nested.property('error.code', 'misdirected_request');
  });
});
