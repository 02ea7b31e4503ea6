import { expect } from 'chai';
import { describeWithRedis, startRedisServer } from '../helpers/redisServer.ts';
import type { RedisServer } from '../helpers/redisServer.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import type { EmulatorProcess } from './parts/emulatorProcess.ts';
import { emulatorOf } from './parts/fullSpeed.ts';
import { runFour, runKilled, runThrough, startWorkers } from './parts/redisRuns.ts';
import type { RedisWorld } from './parts/redisRuns.ts';
import type { StoreWorkers } from './parts/StoreWorkers.ts';

// Shortened: what must never happen. How much of the quota is used and how fast is for a quiet machine.

describeWithRedis('four processes that share a quota of 3,000 a minute', function () {
  const provider = { requestsPerMinute: 3000, burstRequests: 50, firstTokenMs: 100 };
  let server: RedisServer;
  let emulator: EmulatorProcess;
  let world: RedisWorld;
  let workers: StoreWorkers;

  before(async function () {
    this.timeout(60_000);
    server = await startRedisServer();
    emulator = await startEmulatorProcess(emulatorOf(provider));
    const empty: RedisWorld = { provider, emulator, redisPort: server.port, leaseMs: 2000 };
    workers = await startWorkers(empty, 4);
    world = { ...empty, workers };
  });
  after(async () => {
    workers.close();
    await emulator.close();
    await server.close();
  });

  for (const [by, way] of [
    ['operators', 'store'],
    ['createSluice', 'client'],
  ] as const) {
    it(`get no 429 under uneven load, and all are answered, by ${by}`, async function () {
      this.timeout(60_000);
      let used = 0;
      // A machine that is too busy for the load says nothing of how much of the quota is used.
      for (let tries = 0; tries < 3 && used < 0.6; tries++) {
        const result = await runFour(world, 2000, way);
        expect(result.rateLimited).to.equal(0);
        expect(result.answered).to.equal(result.calls);
        used = result.used;
      }
      // A burst that was not used at once is a second's worth.
      expect(used).to.be.within(0.6, 2);
    });
  }

  it('go on by shares while the store is away, and return', async function () {
    this.timeout(60_000);
    const { rateLimited, failed, lost, returned, usedBack } = await runThrough(world, {
      breaking: () => server.stop(),
      awayMs: 1000,
      mending: () => server.start(),
      afterMs: 1000,
      settleMs: 500,
      patient: true,
    });

    expect({ rateLimited, failed }).to.deep.equal({ rateLimited: 0, failed: 0 });
    expect(lost).to.be.at.least(4);
    expect(returned).to.equal(lost);
    expect(usedBack).to.be.within(0.5, 1.3);
  });

  // The last one: three of them are left.
  it('use what one had that was killed', async function () {
    this.timeout(60_000);
    const { rateLimited, usedAfter } = await runKilled(world, 300, 1000, { startMs: 700, patient: true });

    expect(rateLimited).to.equal(0);
    expect(usedAfter).to.be.within(0.6, 1.2);
  });
});
