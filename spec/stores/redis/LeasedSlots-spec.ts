import { expect } from 'chai';
import fc from 'fast-check';
import { SlotsWorld } from './slotsWorld.ts';

describe('LeasedSlots', () => {
  it('takes a thousand places in few calls', async () => {
    const world = new SlotsWorld();
    const one = world.add(2000);
    one.want(1000, 200);
    await world.runtime.advanceAsync(150);

    expect(one.started).to.equal(1000);
    expect(world.calls).to.be.at.most(3);
  });

  it('asks for a small lot at a time, and not for each place', async () => {
    const world = new SlotsWorld();
    const one = world.add(2000);
    one.want(64, 5000);
    await world.runtime.advanceAsync(5);
    const before = world.calls;
    one.want(8, 5000);

    expect(one.started).to.equal(72);
    await world.runtime.advanceAsync(5);
    expect(world.calls).to.equal(before);
  });

  it('gives back what is idle after a short while, and then needs no timer', async () => {
    const world = new SlotsWorld();
    const one = world.add(10, { sliceMs: 100 });
    one.want(10, 50);
    await world.runtime.advanceAsync(60);
    expect(one.slots.have).to.equal(10);
    await world.runtime.advanceAsync(250);

    expect(one.slots.have).to.equal(0);
    expect(world.runtime.pending).to.equal(0);
  });

  it('keeps what is idle as long as told', async () => {
    const world = new SlotsWorld();
    const one = world.add(10, { sliceMs: 400 });
    one.want(10, 50);
    await world.runtime.advanceAsync(400);

    expect(one.slots.have).to.equal(10);
  });

  it('renews its lease for as long as something is in use', async () => {
    const world = new SlotsWorld();
    world.add(1).want(1, 10_000);
    await world.runtime.advanceAsync(20);
    const other = world.add(1);
    other.want(1, 10);
    await world.runtime.advanceAsync(9900);
    expect(other.started).to.equal(0);
    await world.runtime.advanceAsync(400);

    expect(other.started).to.equal(1);
    expect(world.mostAtOnce).to.equal(1);
  });

  it('gives half of the places to a second process that wants them, as its own come free', async () => {
    const world = new SlotsWorld();
    const one = world.add(10);
    one.want(500, 100);
    await world.runtime.advanceAsync(300);
    expect(one.taken).to.equal(10);
    const other = world.add(10);
    other.want(500, 100);
    await world.runtime.advanceAsync(1000);

    expect([one.taken, other.taken]).to.deep.equal([5, 5]);
    expect(world.mostAtOnce).to.equal(10);
  });

  it('gives the part that one does not need to those who do', async () => {
    const world = new SlotsWorld();
    const [one, two, small] = [world.add(12), world.add(12), world.add(12)];
    one.want(500, 100);
    two.want(500, 100);
    small.want(2, 3000);
    await world.runtime.advanceAsync(1500);

    expect([one.taken, two.taken, small.taken]).to.deep.equal([5, 5, 2]);
  });

  it('serves more processes than there are places in turn', async () => {
    const world = new SlotsWorld();
    const processes = [0, 1, 2, 3, 4].map(() => world.add(2));
    for (const process of processes) process.want(1000, 100);
    await world.runtime.advanceAsync(20_000);

    const started = processes.map((process) => process.started);
    expect(Math.max(...started) - Math.min(...started)).to.be.at.most(6);
    // Some of the time passes until the next one looks.
    expect(started.reduce((a, b) => a + b)).to.be.above(200);
    expect(world.mostAtOnce).to.equal(2);
  });

  it('gives idle places at once to a process that waits', async () => {
    const world = new SlotsWorld();
    const one = world.add(10, { sliceMs: 60_000 });
    one.want(10, 100);
    await world.runtime.advanceAsync(150);
    const other = world.add(10);
    other.want(4, 100);
    // With its next renewal.
    await world.runtime.advanceAsync(450);

    expect(other.started).to.equal(4);
    expect(one.slots.have).to.equal(0);
  });

  it('looks ever more seldom while it waits, and not at all once nobody does', async () => {
    const world = new SlotsWorld();
    world.add(1, { leaseMs: 60_000 }).want(1, 60_000);
    await world.runtime.advanceAsync(20);
    const other = world.add(1, { leaseMs: 60_000 });
    other.want(5, 10);
    const before = world.calls;
    await world.runtime.advanceAsync(10_000);
    expect(world.calls - before).to.be.within(20, 130);
    other.cancelWaiting();
    await world.runtime.advanceAsync(50);
    const after = world.calls;
    await world.runtime.advanceAsync(5000);

    expect(world.calls).to.equal(after);
  });

  it('lets others have the places of a killed process after its lease', async () => {
    const world = new SlotsWorld();
    const one = world.add(4, { leaseMs: 900 });
    one.want(4, 60_000);
    await world.runtime.advanceAsync(1000);
    const other = world.add(4, { leaseMs: 900 });
    other.want(4, 60_000);
    one.kill();
    await world.runtime.advanceAsync(500);
    expect(other.started).to.equal(0);
    await world.runtime.advanceAsync(800);

    expect(other.started).to.equal(4);
  });

  it('never has more in use than the limit in all processes, whatever they want', () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.record({ process: fc.nat(3), count: fc.nat(20), eachMs: fc.nat(300), afterMs: fc.nat(200) }), {
          minLength: 1,
          maxLength: 20,
        }),
        async (limit, steps) => {
          const world = new SlotsWorld();
          const processes = [0, 1, 2, 3].map(() => world.add(limit));
          let wanted = 0;
          for (const { process, count, eachMs, afterMs } of steps) {
            processes[process]?.want(count, eachMs);
            wanted += count;
            await world.runtime.advanceAsync(afterMs);
          }
          await world.runtime.advanceAsync(wanted * 700 + 2000);
          expect(world.mostAtOnce).to.be.at.most(limit);
          expect(processes.reduce((sum, { started }) => sum + started, 0)).to.equal(wanted);
          expect(world.runtime.pending).to.equal(0);
        },
      ),
      { numRuns: 15 },
    ));

  it('takes another limit, and gives back what is above it as it comes free', async () => {
    const world = new SlotsWorld();
    const one = world.add(4);
    one.want(100, 100);
    await world.runtime.advanceAsync(50);
    one.slots.reload(6);
    await world.runtime.advanceAsync(300);
    expect(one.taken).to.equal(6);
    one.slots.reload(2);
    await world.runtime.advanceAsync(300);

    expect(one.taken).to.equal(2);
    expect(() => one.slots.reload(0)).to.throw('limit');
  });

  it('gives everything back when it is closed, and keeps counting what still runs', async () => {
    const world = new SlotsWorld();
    const one = world.add(4);
    one.want(2, 2000);
    one.want(2, 100);
    await world.runtime.advanceAsync(50);
    one.slots.close();
    const other = world.add(4);
    other.want(4, 10_000);
    await world.runtime.advanceAsync(600);
    expect(other.taken).to.equal(2);
    await world.runtime.advanceAsync(2000);

    expect(other.taken).to.equal(4);
    expect(one.slots.have).to.equal(0);
  });

  describe('while the store is lost', () => {
    it('goes on with its share of the limit, rounded down', async () => {
      const world = new SlotsWorld();
      const processes = [0, 1, 2].map(() => world.add(11));
      for (const process of processes) process.want(1000, 100);
      await world.runtime.advanceAsync(1500);
      world.lose();
      await world.runtime.advanceAsync(3000);

      expect(processes.map(({ taken }) => taken)).to.deep.equal([3, 3, 3]);
      expect(world.mostAtOnce).to.equal(11);
    });

    it('has no more than it had, until what others have must have come free', async () => {
      const world = new SlotsWorld();
      const [one, other] = [world.add(8), world.add(8)];
      one.want(8, 200);
      other.want(1, 10);
      await world.runtime.advanceAsync(150);
      world.lose();
      other.want(10, 1000);
      await world.runtime.advanceAsync(700);
      expect(other.slots.have).to.equal(0);
      await world.runtime.advanceAsync(500);

      expect(other.slots.have).to.equal(4);
      expect(other.slots.refusing).to.be.undefined;
    });

    it('has none, and says why, where the share is less than one, not known or not allowed', async () => {
      for (const [limit, options, known] of [
        [1, {}, true],
        [8, {}, false],
        [8, { loss: 'refuse' }, true],
      ] as const) {
        const world = new SlotsWorld();
        const [one, other] = [world.add(limit, options), world.add(limit, options)];
        if (known) {
          one.want(1, 10);
          other.want(1, 10);
          await world.runtime.advanceAsync(1000);
        }
        world.lose();
        one.want(1, 10);
        await world.runtime.advanceAsync(2000);

        expect(one.slots.have).to.equal(0);
        expect(one.slots.refusing).to.equal('TIMEOUT');
      }
    });

    it('takes its share of a store that was never reached where the number of processes is given', async () => {
      const world = new SlotsWorld();
      world.lose();
      const one = world.add(8, { processes: 4 });
      one.want(4, 10_000);
      await world.runtime.advanceAsync(2000);

      expect(one.taken).to.equal(2);
    });

    it('never exceeds the limit when the store comes back, and then has all of it again', async () => {
      const world = new SlotsWorld();
      const processes = [0, 1, 2].map(() => world.add(12));
      for (const process of processes) process.want(1000, 150);
      await world.runtime.advanceAsync(1500);
      world.lose();
      await world.runtime.advanceAsync(3000);
      world.comeBack();
      await world.runtime.advanceAsync(1500);

      expect(world.mostAtOnce).to.equal(12);
      expect(world.inFlight).to.equal(12);
    });
  });

  it('gives nothing out of a store that has forgotten what is held until those who hold it are heard of', async () => {
    const world = new SlotsWorld();
    const [one, other] = [world.add(6), world.add(6)];
    one.want(6, 10_000);
    await world.runtime.advanceAsync(100);
    other.want(3, 10_000);
    await world.runtime.advanceAsync(100);
    world.forgetAll();
    await world.runtime.advanceAsync(5000);

    expect(other.started).to.equal(0);
    expect(world.mostAtOnce).to.equal(6);
  });
});
