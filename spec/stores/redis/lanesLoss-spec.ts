import { expect } from 'chai';
import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import type { LanesPort } from '../../../lib/core/ports.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import { askTurn } from '../../contract/lanesPort.ts';
import type { AskedTurn } from '../../contract/lanesPort.ts';
import { describeWithRedis, startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';
import { sideBySide } from '../../helpers/sideBySide.ts';

const LEASE_MS = 4000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Two processes with a server of their own. */
interface World {
  readonly server: RedisServer;
  readonly admin: RedisClientType;
  readonly lanes: readonly [LanesPort, LanesPort];
}

async function inWorld(play: (world: World) => Promise<void>): Promise<void> {
  const server = await startRedisServer();
  const connect = async (): Promise<RedisClientType> => {
    const client: RedisClientType = createClient({
      socket: { port: server.port, host: '127.0.0.1', reconnectStrategy: 50 },
    });
    client.on('error', () => {});
    await client.connect();
    return client;
  };
  const admin = await connect();
  const clients = [await connect(), await connect()];
  const stores = clients.map((client) =>
    redisStore(client, { leaseMs: LEASE_MS, commandTimeoutMs: 700, probeMs: 200 }),
  );
  try {
    await play({ server, admin, lanes: [stores[0]!.lanes('l'), stores[1]!.lanes('l')] });
  } finally {
    for (const store of stores) store.close();
    for (const client of [admin, ...clients]) client.destroy();
    await server.close();
  }
}

const until = async (condition: () => boolean): Promise<void> => {
  for (let left = 2000; left > 0 && !condition(); left--) await pause(5);
  expect(condition()).to.be.true;
};
const threeTurns = async ({ lanes }: World): Promise<AskedTurn[]> => {
  const turns: AskedTurn[] = [];
  for (let n = 0; n < 3; n++) {
    const turn = askTurn(lanes[n % 2]!, 'a');
    turns.push(turn);
    await until(() => turn.place !== undefined || turn.positions.length > 0);
  }
  return turns;
};
const started = (turns: readonly AskedTurn[]): boolean[] => turns.map(({ place }) => place !== undefined);
const endInOrder = async (turns: readonly AskedTurn[]): Promise<void> => {
  for (const [n, turn] of turns.entries()) {
    await until(() => turn.place !== undefined);
    expect(started(turns).filter(Boolean)).to.have.length(n + 1);
    expect(turn.lost).to.be.undefined;
    turn.place?.release();
  }
};

/** With a real server; all else is in SharedLanesDesk-spec.ts, in virtual time. */
describeWithRedis('lanes of a server that is lost', function () {
  this.timeout(30_000);
  const play = sideBySide(4);
  const test = (title: string, inIt: (world: World) => Promise<void>): void => void play(title, () => inWorld(inIt));

  test('go on in their order after it was restarted, the turn that runs too', async (world) => {
    const { server } = world;
    const turns = await threeTurns(world);
    await server.stop();
    await pause(300);
    await server.start();

    await endInOrder(turns);
  });

  test('go on in their order after FLUSHALL and SCRIPT FLUSH', async (world) => {
    const { admin, lanes } = world;
    const turns = await threeTurns(world);
    await admin.flushAll();
    await admin.scriptFlush();
    turns.push(askTurn(lanes[1]!, 'a'));

    await endInOrder(turns);
  });

  test('hold nobody up for longer than their bounds, where it hangs', async ({ server, lanes }) => {
    const running = askTurn(lanes[0]!, 'a');
    await until(() => running.place !== undefined);
    server.pause();
    const beganMs = performance.now();
    const waits = askTurn(lanes[0]!, 'b', { maxWaitMs: 1200 });
    await until(() => waits.error !== undefined);
    expect(waits.error?.code).to.equal('limiter_unavailable');
    expect(performance.now() - beganMs).to.be.below(1200 + 1500);
    await until(() => running.lost !== undefined);
    expect(running.lost?.code).to.equal('lane_lost');
    server.resume();

    const next = askTurn(lanes[1]!, 'a');
    await until(() => next.place !== undefined);
  });

  test('are kept under one hash tag, say nothing of whom they are with, and leave nothing', async (world) => {
    const { admin, lanes } = world;
    const turns = await threeTurns(world);
    const secret = 'c-of-a-person@example.org';
    for (const each of lanes) askTurn(each, secret);
    await until(() => lanes[0]!.snapshot().conversations + lanes[1]!.snapshot().conversations === 4);
    await pause(50);
    const keys = await admin.keys('*');
    expect(keys.every((key) => key.startsWith('sluice:{l}:lanes:'))).to.be.true;
    for (const key of keys) expect(await admin.pTTL(key), key).to.be.above(0);
    const content = JSON.stringify([
      await admin.hGetAll('sluice:{l}:lanes:holders'),
      await admin.zRange('sluice:{l}:lanes:line', 0, -1),
      await admin.zRange('sluice:{l}:lanes:places', 0, -1),
    ]);
    expect(content).to.not.include('person');
    for (const turn of turns) turn.unsubscribe();
    turns[0]?.place?.release();

    for (let n = 0; n < 300; n++) {
      const turn = askTurn(lanes[n % 2]!, `c-${n}`);
      if (n % 3 === 0) turn.unsubscribe();
      else void until(() => turn.place !== undefined).then(() => turn.place?.release());
    }
    await until(() => lanes[0]!.snapshot().conversations <= 1 && lanes[1]!.snapshot().conversations <= 1);
    const left = (): Promise<number[]> =>
      Promise.all([
        admin.hLen('sluice:{l}:lanes:holders'),
        admin.zCard('sluice:{l}:lanes:places'),
        admin.zCard('sluice:{l}:lanes:line'),
        admin.exists('sluice:{l}:lanes:news'),
      ]);
    for (let tries = 200; tries > 0 && String(await left()) !== '1,2,1,0'; tries--) await pause(10);
    expect(await left()).to.deep.equal([1, 2, 1, 0]);
  });
});
