import { expect } from 'chai';
import { describeWithRedis } from '../helpers/redisServer.ts';
import { sideBySide } from '../helpers/sideBySide.ts';
import { crashHolder, spreadTurns, startLanes, stopHolder } from './parts/redisLanes.ts';
import type { LanesWorld } from './parts/redisLanes.ts';

const LEASE_MS = 3000;
/** What timers and processes of a busy machine may be late. */
const SLACK_MS = 2500;

describeWithRedis('conversations of four processes', function () {
  this.timeout(30_000);
  let world: LanesWorld;

  before(async () => {
    world = await startLanes(LEASE_MS);
  });

  after(() => world.close());

  it('never overlap, keep their order, and leave nothing', async () => {
    const spread = await spreadTurns(world, 6, 6);

    expect(spread.answered).to.equal(36);
    expect(spread.overlaps).to.equal(0);
    expect(spread.inOrder).to.equal(6);
    expect(spread.left.turns).to.equal(0);
    expect(spread.left.keys).to.be.at.most(3);
    expect(spread.betweenMs.length).to.be.above(10);
  });

  // Two processes each.
  const play = sideBySide(2);
  play('are lost to a process that stood still for longer than its lease, and go on elsewhere', async () => {
    const stopped = await stopHolder(world, LEASE_MS + 500);

    expect(stopped.result).to.equal('lane_lost');
    expect(stopped.next).to.equal('answered');
    expect(stopped.behind).to.equal('answered');
    expect(stopped.freeAfterMs).to.be.below(LEASE_MS + SLACK_MS);
  });

  play('are free again within the lease of a process that was killed', async () => {
    const { freeAfterMs, result } = await crashHolder(world);

    expect(result).to.equal('answered');
    expect(freeAfterMs).to.be.below(LEASE_MS + SLACK_MS);
  });
});
