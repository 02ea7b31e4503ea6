import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { concat, of, throwError } from 'rxjs';
import type { AttemptSource, WireEvent } from '../../lib/core/attempt.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { casesOf } from '../helpers/cases.ts';
import { eventsOf, startGateway } from '../helpers/gateways.ts';
import type { RunningGateway } from '../helpers/gateways.ts';
import { rawServer } from '../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../helpers/rawServer.ts';
import { UNFIT } from './unfit.ts';

const PATH = '/v1/chat/completions';
const CHAT = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };
const STREAM = { ...CHAT, stream: true };
const ONCE: PolicyInput = { models: { default: { retry: { attempts: 1 } } } };

const CHUNK = {
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { content: 'Hel' }, finish_reason: null }],
};

/** The gateways and providers of one case. */
class World {
  readonly #closers: (() => Promise<void>)[] = [];

  async gateway(upstream: string | AttemptSource, policy: PolicyInput = ONCE): Promise<RunningGateway> {
    const running = await startGateway(upstream, { policy });
    this.#closers.push(running.close);
    return running;
  }

  async provider(answer?: (exchange: RawExchange) => void): Promise<RawServer> {
    const server = await rawServer(answer);
    this.#closers.push(() => server.close());
    return server;
  }

  later(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }
}

/** Whether the last event is an error as SDKs raise it, and no end of a whole answer. */
function expectToldOf(events: readonly string[]): void {
  const { error } = JSON.parse(events.at(-1) ?? '') as { error: Record<string, unknown> };
  expect(error).to.include.keys('message', 'type', 'code');
  expect(events).to.not.include('[DONE]');
}

const CASES: Readonly<Record<string, (world: World) => Promise<void>>> = {
  'gateway-01': async (world) => {
    const source: AttemptSource = () =>
      concat(
        of<WireEvent[]>(
          { kind: 'head', status: 200, requestId: undefined, hints: undefined },
          { kind: 'data', value: CHUNK, event: undefined },
        ),
        throwError(() => new TypeError('not a function')),
      );
    const { ask, url } = await world.gateway(source);
    const events = await eventsOf(await ask(PATH, STREAM));
    expect(events).to.have.length(2);
    expect(JSON.parse(events[0] ?? '')).to.deep.equal(CHUNK);
    expectToldOf(events);
    expect((await fetch(`${url}/healthz`)).status).to.equal(200);
  },
  'gateway-02': async (world) => {
    const provider = await world.provider((exchange) => exchange.json(429, {}, { 'retry-after': '7' }));
    const { ask } = await world.gateway(provider.baseURL);
    const response = await ask(PATH, STREAM);
    expect(response.status).to.equal(429);
    expect(response.headers.get('retry-after')).to.equal('7');
    expect(response.headers.get('content-type')).to.equal('application/json');
    const { error } = (await response.json()) as { error: object };
    expect(error).to.include.keys('message', 'type', 'code');
  },
  'gateway-03': async (world) => {
    const provider = await world.provider((exchange) => {
      exchange.head();
      exchange.events(CHUNK);
      setTimeout(() => exchange.reset(), 20);
    });
    const { ask } = await world.gateway(provider.baseURL);
    const response = await ask(PATH, STREAM);
    expect(response.status).to.equal(200);
    expectToldOf(await eventsOf(response));
  },
  'gateway-04': async (world) => {
    const provider = await world.provider((exchange) => exchange.json(200, { choices: [{ message: {} }] }));
    const quota = { account: { requestsPerMinute: 20, burstRequests: 1, maxWaiting: 0, arrivalMarginMs: 0 } };
    const { ask } = await world.gateway(provider.baseURL, { ...ONCE, quota });
    await ask(PATH, CHAT);
    const refused = await ask(PATH, CHAT);
    expect(refused.status).to.equal(429);
    expect(refused.headers.get('retry-after')).to.equal('3');
    expect(Number(refused.headers.get('retry-after-ms'))).to.be.within(2_001, 3_000);
    expect(provider.exchanges).to.have.length(1);
  },
  'gateway-05': async (world) => {
    const provider = await world.provider();
    const { gateway } = await world.gateway(provider.baseURL);
    let answer: ServerResponse | undefined;
    const server = createServer((request, response) => {
      answer = response;
      gateway.listener(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    world.later(async () => void server.close());
    const port = (server.address() as AddressInfo).port;
    const headers = { 'content-type': 'application/json' };
    const client = httpRequest({ port, path: PATH, method: 'POST', headers, agent: false });
    client.on('error', () => {});
    client.end(JSON.stringify(STREAM));
    const exchange = await provider.next();
    const leftAtMs = performance.now();
    client.destroy();
    const { aborted, atMs } = await exchange.closed;
    expect(aborted).to.equal(true);
    // 50 ms on a quiet machine; what it must not be is the end of the answer.
    expect(atMs - leftAtMs).to.be.below(1_000);
    expect(answer?.listenerCount('close')).to.equal(0);
    expect(gateway.inFlight).to.equal(0);
  },
  'gateway-08': async (world) => {
    const provider = await world.provider((exchange) => {
      exchange.head();
      exchange.events(CHUNK);
      exchange.write('data: {"id":"c1","choi');
      setTimeout(() => exchange.reset(), 20);
    });
    const { ask } = await world.gateway(provider.baseURL);
    const events = await eventsOf(await ask(PATH, STREAM));
    expect(events.map((event) => typeof JSON.parse(event))).to.deep.equal(['object', 'object']);
    expectToldOf(events);
  },
};

describe('public reports of form gateway', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  afterEach(() => world.close());

  for (const { id, symptom, expect: expected } of casesOf<unknown, object>('gateway')) {
    if (UNFIT[id] !== undefined) it.skip(`${id}: ${UNFIT[id]}`);
    else {
      it(`${id}: ${expected.must} [${symptom}]`, async () => {
        const run = CASES[id];
        if (run === undefined) throw new Error(`nothing runs case ${id}`);
        await run(world);
      });
    }
  }
});
