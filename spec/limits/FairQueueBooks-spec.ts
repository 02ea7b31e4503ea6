import { expect } from 'chai';
import { FairQueue } from '../../lib/limits/FairQueue.ts';
import type { FairWaiter } from '../../lib/limits/FairQueue.ts';

// What the queue keeps of each tenant: who leads, where it stands, and for how long that is remembered.

let order = 0;

function waiter(tenant: string, tokens = 10, weight = 1): FairWaiter {
  return { tenant, weight, cost: { requests: 1, tokens }, order: order++ };
}

const anyone = (): boolean => false;

/** Grants to the first candidate so many times; who got it. */
function serve(queue: FairQueue<FairWaiter>, times: number): string[] {
  return Array.from({ length: times }, () => {
    const [first] = queue.candidates(anyone) as [FairWaiter];
    queue.take(first);
    return first.tenant;
  });
}

function joined(queue: FairQueue<FairWaiter>, ...args: Parameters<typeof waiter>): FairWaiter {
  const one = waiter(...args);
  queue.join(one);
  return one;
}

describe('FairQueue', () => {
  let queue: FairQueue<FairWaiter>;
  beforeEach(() => (queue = new FairQueue()));
  /** Where a tenant stands, in tokens per unit of weight; one that nothing is known of stands at the present. */
  const standing = (tenant: string): number => queue.finishOf(waiter(tenant, 1)) - 1;

  describe('as a line', () => {
    it('shows who waits, in the order of joining, and who leads', () => {
      const [first, second, large] = [joined(queue, 'a'), joined(queue, 'a'), joined(queue, 'a', 1000)];
      const other = joined(queue, 'b');
      expect([...queue.waiters()]).to.deep.equal([first, second, large, other]);
      expect([first, second, large, other].map((one) => queue.leads(one))).to.deep.equal([true, false, true, true]);
      expect(queue.leads(waiter('a'))).to.equal(false);
      queue.leave(first);
      expect([...queue.waiters()]).to.deep.equal([second, large, other]);
      expect(queue.leads(second)).to.equal(true);
      expect(queue.leads(first)).to.equal(false);
    });

    it('has no heads of a tenant that does not wait, and none of a size that has left', () => {
      const small = joined(queue, 'a');
      const large = joined(queue, 'a', 1000);
      expect(queue.headsOf('nobody')).to.deep.equal([]);
      queue.take(small);
      expect(queue.headsOf('a')).to.deep.equal([large]);
      queue.leave(large);
      expect(queue.headsOf('a')).to.deep.equal([]);
      expect(queue.candidates(anyone)).to.deep.equal([]);
    });

    it('adds up what is ahead of a newcomer of a size', () => {
      const cost = { requests: 1, tokens: 12 };
      expect(queue.ahead('a', cost)).to.deep.equal({ requests: 0, tokens: 0 });
      const [first, second] = [joined(queue, 'a', 10), joined(queue, 'a', 11)];
      joined(queue, 'a', 12);
      joined(queue, 'b', 10);
      expect(queue.ahead('a', cost)).to.deep.equal({ requests: 3, tokens: 33 });
      expect(queue.ahead('a', { requests: 1, tokens: 1000 })).to.deep.equal({ requests: 0, tokens: 0 });
      queue.take(first);
      queue.leave(second);
      expect(queue.ahead('a', cost)).to.deep.equal({ requests: 1, tokens: 12 });
    });

    it('does nothing for one that does not wait', () => {
      const one = joined(queue, 'a');
      const stranger = waiter('a');
      queue.take(stranger);
      queue.unpark('nobody');
      expect([...queue.waiters()]).to.deep.equal([one]);
      expect(standing('a')).to.equal(0);
    });

    it('serves the one that came first where tenants stand alike', () => {
      const names = Array.from({ length: 20 }, (_, i) => `t${(7 * i) % 20}`);
      const all = names.map((name) => waiter(name));
      // Not in the order in which they are put in.
      for (const one of [...all].sort((a, b) => a.tenant.localeCompare(b.tenant))) queue.join(one);
      expect(serve(queue, 20)).to.deep.equal(names);
    });

    it('compares nobody for those who join, or leave, behind others of their tenant and size', () => {
      let compared = 0;
      const counted = new FairQueue<FairWaiter>(() => compared++);
      for (let i = 0; i < 100; i++) counted.join(waiter(`t${i}`));
      compared = 0;
      const behind = Array.from({ length: 100 }, (_, i) => waiter(`t${i}`));
      for (const one of behind) counted.join(one);
      for (const one of behind) expect(counted.leave(one)).to.equal(true);
      expect(compared).to.equal(0);
    });
  });

  describe('as standing', () => {
    it('moves a tenant on by what it was granted, over its weight', () => {
      joined(queue, 'heavy', 10, 4);
      joined(queue, 'heavy', 10, 4);
      joined(queue, 'light', 10, 1);
      serve(queue, 1);
      expect(standing('heavy')).to.equal(2.5);
      expect(queue.finishOf(waiter('heavy', 10, 4))).to.equal(5);
      expect(queue.finishOf(waiter('light', 0, 2))).to.equal(0.5);
    });

    it('moves the present on by the work that is done, shared by the weights of those who wait', () => {
      joined(queue, 'a', 10, 1);
      joined(queue, 'b', 12, 3);
      joined(queue, 'b', 12, 3);
      expect(standing('new')).to.equal(0);
      serve(queue, 1);
      // The first grant shows in the present when the next one is made: 10 tokens over 4, then 12 over 3.
      expect(standing('new')).to.equal(0);
      serve(queue, 1);
      expect(standing('new')).to.equal(2.5);
      joined(queue, 'c', 10, 2);
      expect(serve(queue, 1)).to.deep.equal(['c']);
      expect(standing('new')).to.equal(6.5);
    });

    it('takes over the weights that waiters have by now', () => {
      const weights = { a: 1, b: 1 };
      const join = (tenant: 'a' | 'b'): void =>
        queue.join({
          ...waiter(tenant),
          get weight() {
            return weights[tenant];
          },
        });
      for (let i = 0; i < 50; i++) join('a');
      for (let i = 0; i < 50; i++) join('b');
      queue.take(joined(queue, 'idle'));
      queue.correct('idle', 1000);
      weights.a = 4;
      queue.reweigh();
      serve(queue, 1);
      // 10 tokens over the three that waited, then over 5, the new weights of the two.
      expect(standing('new')).to.be.closeTo(10 / 3, 1e-9);
      serve(queue, 1);
      expect(standing('new')).to.be.closeTo(10 / 3 + 2, 1e-9);
      expect(serve(queue, 20).filter((tenant) => tenant === 'a')).to.have.length.within(15, 17);
      expect(standing('idle')).to.equal(1010);
    });

    it('charges corrections by weight, to those who wait and those who do not', () => {
      joined(queue, 'a', 10, 2);
      joined(queue, 'a', 10, 2);
      joined(queue, 'b', 10, 2);
      joined(queue, 'c');
      queue.correct('a', 8);
      expect(standing('a')).to.equal(4);
      queue.correct('a', -4);
      expect(standing('a')).to.equal(2);
      queue.correct('a', -100);
      expect(standing('a'), 'never before the present').to.equal(0);
      expect(serve(queue, 2)).to.deep.equal(['a', 'b']);
      queue.correct('b', 100);
      expect(standing('b')).to.equal(55);
    });

    it('leaves one that is behind the present where it is, for a correction by nothing and for one that was not parked', () => {
      joined(queue, 'c');
      joined(queue, 'b');
      joined(queue, 'a');
      serve(queue, 2);
      const present = standing('new');
      expect(present).to.be.above(0);
      queue.correct('a', 0);
      queue.unpark('a');
      expect(standing('a')).to.equal(0);
    });

    it('lets one that left from behind the present come back at the present', () => {
      joined(queue, 'c');
      joined(queue, 'b');
      joined(queue, 'd');
      const left = joined(queue, 'a');
      serve(queue, 2);
      queue.leave(left);
      joined(queue, 'a');
      expect(standing('a')).to.equal(standing('new')).and.to.be.above(0);
    });
  });

  describe('as memory', () => {
    /** So many tenants are served past what the others owe. */
    const serveOthers = (times: number): void => {
      for (let i = 0; i < times; i++) {
        const one = joined(queue, 'others', 100);
        queue.candidates(({ tenant }) => tenant !== 'others');
        queue.take(one);
      }
    };

    it('lets one that owes come back with its debt', () => {
      const one = joined(queue, 'a');
      joined(queue, 'others', 100);
      queue.take(one);
      queue.correct('a', 500);
      joined(queue, 'a');
      expect(standing('a')).to.equal(510);
    });

    it('forgets each tenant as the present comes to where it stands, whatever the order in which they left', () => {
      for (const order of ['xyz', 'zyx', 'yzx', 'xzy']) {
        queue = new FairQueue();
        joined(queue, 'others', 100);
        for (const tenant of order) {
          queue.take(joined(queue, tenant, 1));
          queue.correct(tenant, 300 * (1 + 'xyz'.indexOf(tenant)));
        }
        const counts = Array.from({ length: 12 }, () => {
          serveOthers(1);
          return queue.tenants;
        });
        expect([...new Set(counts)], order).to.deep.equal([4, 3, 2, 1]);
      }
    });

    it('forgets a tenant that stands at the present itself', () => {
      const one = joined(queue, 'a', 10);
      joined(queue, 'b', 5);
      joined(queue, 'b', 10);
      joined(queue, 'b', 10);
      queue.take(one);
      serve(queue, 1);
      queue.correct('b', 5);
      expect([standing('a'), standing('b')]).to.deep.equal([10, 10]);
      expect(queue.tenants).to.equal(2);
      serve(queue, 1);
      expect(standing('new')).to.equal(10);
      expect(queue.tenants).to.equal(1);
    });

    it('owes nothing of the past once nobody waits', () => {
      joined(queue, 'a');
      serve(queue, 1);
      expect([queue.tenants, standing('a')]).to.deep.equal([0, 0]);
      const [one, other] = [joined(queue, 'a'), joined(queue, 'b')];
      queue.take(one);
      expect(standing('a')).to.equal(10);
      queue.leave(other);
      expect([queue.tenants, standing('a')]).to.deep.equal([0, 0]);
    });

    it('offers a tenant again that was parked when its last waiter left', () => {
      joined(queue, 'others', 100);
      const parked = joined(queue, 'a');
      queue.candidates(({ tenant }) => tenant === 'a');
      queue.leave(parked);
      const back = joined(queue, 'a');
      expect(queue.candidates(anyone)).to.include(back);
    });

    for (const [name, prepare] of [
      ['has come back with a debt', () => {}],
      ['was corrected while nobody of it waited', () => queue.correct('a', 40)],
    ] as const) {
      it(`does not forget a tenant that waits and ${name}`, () => {
        joined(queue, 'others', 100);
        queue.take(joined(queue, 'a', 50));
        prepare();
        const waits = joined(queue, 'a', 50);
        queue.candidates(({ tenant }) => tenant === 'a');
        serveOthers(20);
        queue.unpark('a');
        expect(queue.candidates(anyone)).to.include(waits);
      });
    }

    it('does not forget a tenant that was corrected while it waited', () => {
      joined(queue, 'others', 100);
      const waits = joined(queue, 'a');
      queue.candidates(({ tenant }) => tenant === 'a');
      queue.correct('a', 50);
      serveOthers(20);
      queue.unpark('a');
      expect(queue.candidates(anyone)).to.include(waits);
    });

    it('remembers nothing of before a time in which nobody waited', () => {
      const last = joined(queue, 'others', 100);
      queue.take(joined(queue, 'a', 50));
      queue.leave(last);
      joined(queue, 'others', 100);
      const waits = joined(queue, 'a');
      queue.candidates(({ tenant }) => tenant === 'a');
      serveOthers(20);
      queue.unpark('a');
      expect(queue.candidates(anyone)).to.include(waits);
    });

    it('forgets a tenant that was corrected once the others have caught up with it', () => {
      joined(queue, 'others', 100);
      queue.take(joined(queue, 'a', 50));
      queue.correct('a', 40);
      expect(queue.tenants).to.equal(2);
      serveOthers(20);
      expect(queue.tenants).to.equal(1);
    });

    it('counts no weight of those who have left into the pace of the present', () => {
      const stays = joined(queue, 'stays', 10, 1);
      queue.leave(joined(queue, 'left', 10, 9));
      queue.take(joined(queue, 'others', 10, 1));
      queue.take(joined(queue, 'others', 10, 1));
      // 10 tokens over two, and where those after them stand.
      expect(standing('new')).to.equal(10);
      queue.take(stays);
      expect(standing('new')).to.equal(0);
    });
  });
});
