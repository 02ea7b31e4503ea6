import { expect } from 'chai';
import { nothingLeft } from './parts/nothingLeft.ts';

describe('mixed calls on one long-lived signal', () => {
  it('leave no listener, timer, permit, lane or socket, and a process that ends by itself', async function () {
    this.timeout(180_000);
    const { as, otherwise, heapGrowth: _, endedAfterMs: _ms, ...left } = await nothingLeft(1500);

    expect(otherwise).to.deep.equal([]);
    expect(Object.values(as).reduce((sum, some) => sum + some, 0)).to.equal(1500);
    for (const fate of [
      'answered',
      'failed',
      'cancelled queued',
      'cancelled before headers',
      'cancelled in mid-stream',
    ]) {
      expect(as).to.have.property(fate).above(100);
    }
    expect(left.held).to.satisfy((held: Record<string, number>) => Object.values(held).every((some) => some === 0));
    expect({ ...left, held: {} }).to.deep.equal({
      held: {},
      listeners: 0,
      timers: 0,
      activeTimers: 0,
      sockets: 0,
      running: 0,
      busyConnections: 0,
      unhandled: [],
      warnings: [],
      code: 0,
    });
  });
});
