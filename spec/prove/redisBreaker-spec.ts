import { expect } from 'chai';
import { describeWithRedis } from '../helpers/redisServer.ts';
import { ONE_PROBE, runDeadProber, runOutage, startBreakerWorld } from './parts/redisBreaker.ts';
import type { BreakerWorld } from './parts/redisBreaker.ts';

const OPEN_MS = 400;

describeWithRedis('one breaker for several processes', function () {
  this.timeout(120_000);
  let world: BreakerWorld;

  before(async () => {
    world = await startBreakerWorld(3);
  });
  after(() => world.close());

  it('lets one probe go in each open time, all of them together, and lets all go on afterwards', async () => {
    const breaker = { ...ONE_PROBE, openMs: OPEN_MS };
    const { probes, leastGapMs } = await runOutage(world, { shared: true, breaker, probes: 3 });

    expect(probes).to.be.at.least(3);
    expect(leastGapMs).to.be.at.least(OPEN_MS);
  });

  it('lets another process probe when the one that did was killed, and not before', async () => {
    const leaseMs = 2500;
    const { meanwhile, fromAnother, nextAfterMs } = await runDeadProber(world, leaseMs);

    expect(meanwhile).to.equal(1);
    expect(fromAnother).to.equal(true);
    // What timers and processes of a busy machine may be late.
    expect(nextAfterMs).to.be.below(leaseMs + 5000);
  });
});
