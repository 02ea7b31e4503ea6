import { expect } from 'chai';
import { connect } from 'node:net';
import { startGateway } from '../../helpers/gateways.ts';
import type { GatewaySetup, RunningGateway } from '../../helpers/gateways.ts';
import { rawServer } from '../../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../../helpers/rawServer.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };
const STREAM = { ...CHAT, stream: true };
const PATH = '/v1/chat/completions';

const chunk = (content: string, reason: string | null = null): object => ({
  id: 'a',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { content }, finish_reason: reason }],
});

async function until(holds: () => boolean): Promise<void> {
  const startMs = performance.now();
  while (!holds()) {
    if (performance.now() - startMs > 8_000) throw new Error('it never held');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe('createGateway, its ends', () => {
  let server: RawServer;
  let running: RunningGateway;
  const start = async (setup: GatewaySetup = {}, answer?: (exchange: RawExchange) => void): Promise<void> => {
    server = await rawServer(answer);
    running = await startGateway(server.baseURL, setup);
  };
  const begun = (exchange: RawExchange): void => {
    exchange.head();
    exchange.events(chunk('Hel'));
  };
  afterEach(async () => {
    await running.close();
    await server.close();
  });

  describe('close', () => {
    it('lets streams that run come to their end, and takes no more', async () => {
      await start({}, begun);
      const response = await running.ask(PATH, STREAM);
      expect(running.gateway.inFlight).to.equal(1);
      const closed = running.gateway.close({ drainMs: 60_000 });
      const refused: unknown = await fetch(`${running.url}/healthz`).catch((thrown: unknown) => thrown);
      expect(refused).to.be.instanceOf(TypeError);
      const exchange = await server.next();
      exchange.events(chunk('lo', 'stop'), '[DONE]');
      exchange.end();
      expect(await response.text()).to.match(/data: \[DONE\]\n\n$/);
      await closed;
      expect(running.gateway.inFlight).to.equal(0);
    });

    it('tells those that still run after drainMs, and ends them', async () => {
      await start({}, begun);
      const response = await running.ask(PATH, STREAM);
      const waiting = running.ask(PATH, CHAT);
      await until(() => server.exchanges.length === 2);
      await running.gateway.close({ drainMs: 20 });
      expect(await response.text()).to.match(/"code":"closed"\}\}\n\n$/);
      const [first] = server.exchanges;
      expect((await first?.closed)?.aborted).to.equal(true);
      // The second had a head from the provider, but no answer yet.
      const answer = await waiting;
      expect(answer.status).to.equal(503);
      expect(await answer.json()).to.have.nested.property('error.code', 'closed');
    });

    it('ends at once where nothing runs, and again where it has ended', async () => {
      await start();
      await running.gateway.close();
      await running.gateway.close();
    });

    it('answers 503 where another server hands requests on', async () => {
      await start();
      const { gateway } = running;
      const answers: number[] = [];
      const other = await startGateway(server.baseURL, {
        page: (request, response) => {
          request.url = '/readyz';
          gateway.listener(request, response);
        },
      });
      answers.push((await fetch(`${other.url}/x`)).status);
      await gateway.close();
      answers.push((await fetch(`${other.url}/x`)).status);
      expect(answers).to.deep.equal([200, 503]);
      await other.close();
    });

    it('checks how long it may take', async () => {
      await start();
      const failure: unknown = await running.gateway.close({ drainMs: -1 }).catch((thrown: unknown) => thrown);
      expect(failure).to.have.property('code', 'invalid_option');
    });
  });

  it('listens once', async () => {
    await start();
    const failure: unknown = await running.gateway.listen().catch((thrown: unknown) => thrown);
    expect(failure).to.have.property('code', 'invalid_option');
  });

  it('ends what takes longer than it may, before and after the answer has begun', async () => {
    await start({ totalMs: 400 }, (exchange) => {
      if (exchange.body['stream'] === true) begun(exchange);
    });
    const ended: unknown[] = [];
    running.sluice.events$.subscribe((event) => {
      if (event.type === 'call.ended') ended.push([event.outcome, event.code]);
    });
    const late = await running.ask(PATH, CHAT);
    expect(late.status).to.equal(504);
    const events = await (await running.ask(PATH, STREAM)).text();
    expect(events).to.match(/"code":"timeout_deadline"\}\}\n\n$/);
    await until(() => running.sluice.snapshot().calls === 0);
    expect(ended).to.deep.equal(Array(2).fill(['failure', 'timeout_deadline']));
  });

  it('reads no further ahead than a slow client does, and lets go of one that reads nothing', async function () {
    this.timeout(20_000);
    let flooding: Promise<void> | undefined;
    await start({ idleMs: 300 }, (exchange) => {
      exchange.head();
      const flood = async (): Promise<void> => {
        const frame = `data: ${JSON.stringify(chunk('x'.repeat(60_000)))}\n\n`;
        let over = false;
        const closed = exchange.closed.then(() => (over = true));
        for (let i = 0; i < 2_000 && !over; i++) {
          if (!exchange.write(frame)) await Promise.race([exchange.drained(), closed]);
        }
      };
      flooding = flood();
    });
    const socket = connect(Number(new URL(running.url).port), '127.0.0.1');
    socket.on('error', () => {});
    const body = JSON.stringify(STREAM);
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    const exchange = await server.next();
    expect((await exchange.closed).aborted).to.equal(true);
    // What fits into the sockets in between, and no more, of 120 MB.
    expect(exchange.written).to.be.below(40_000_000);
    await until(() => running.gateway.inFlight === 0 && running.sluice.snapshot().calls === 0);
    socket.destroy();
    await flooding;
  });
});
