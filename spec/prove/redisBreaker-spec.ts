import { expect } from 'chai';
import { describeWithRedis } from '../helpers/redisServer.ts';
import { sideBySide } from '../helpers/sideBySide.ts';
import { ONE_PROBE, runDeadProber, runOutage, startBreakerWorld } from './parts/redisBreaker.ts';
import type { BreakerWorld } from './parts/redisBreaker.ts';

const OPEN_MS = 400;

async function inWorld<Result>(run: (world: BreakerWorld) => Promise<Result>): Promise<Result> {
  const world = await startBreakerWorld(3);
  try {
    return await run(world);
  } finally {
    await world.close();
  }
}

describeWithRedis('one breaker for several processes', function () {
  this.timeout(120_000);
  const test = sideBySide(2);

  test('lets one probe go in each open time, all of them together, and lets all go on afterwards', async () => {
    const settings = { shared: true, breaker: { ...ONE_PROBE, openMs: OPEN_MS }, probes: 3 };
    const { probes, leastGapMs } = await inWorld((world) => runOutage(world, settings));

    expect(probes).to.be.at.least(3);
    expect(leastGapMs).to.be.at.least(OPEN_MS);
  });

  test('lets another process probe when the one that did was killed, and not before', async () => {
    const leaseMs = 2500;
    const { meanwhile, fromAnother, nextAfterMs } = await inWorld((world) => runDeadProber(world, leaseMs));

    expect(meanwhile).to.equal(1);
    expect(fromAnother).to.equal(true);
    // What timers and processes of a busy machine may be late.
    expect(nextAfterMs).to.be.below(leaseMs + 5000);
  });
});
