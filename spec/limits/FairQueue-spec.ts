import { expect } from 'chai';
import fc from 'fast-check';
import { FairQueue } from '../../lib/limits/FairQueue.ts';
import type { FairWaiter } from '../../lib/limits/FairQueue.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';

let order = 0;

function waiter(tenant: string, tokens = 10, weight = 1): FairWaiter {
  return { tenant, weight, cost: { requests: 1, tokens }, order: order++ };
}

const anyone = (): boolean => false;

/** Grants to the first candidate so many times; who got it. */
function serve(queue: FairQueue<FairWaiter>, times: number): string[] {
  const served: string[] = [];
  for (let i = 0; i < times; i++) {
    const [first] = queue.candidates(anyone);
    if (first === undefined) break;
    queue.take(first);
    served.push(first.tenant);
  }
  return served;
}

function joinMany(queue: FairQueue<FairWaiter>, count: number, make: () => FairWaiter): void {
  for (let i = 0; i < count; i++) queue.join(make());
}

describe('FairQueue', () => {
  it('serves one tenant first in, first out', () => {
    const queue = new FairQueue<FairWaiter>();
    const all = Array.from({ length: 5 }, () => waiter('a'));
    all.forEach((one) => queue.join(one));
    const served: FairWaiter[] = [];
    for (let [first] = queue.candidates(anyone); first; [first] = queue.candidates(anyone)) {
      queue.take(first);
      served.push(first);
    }
    expect(served).to.deep.equal(all);
  });

  it('divides by tokens, not by requests', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 100, () => waiter('large', 40));
    joinMany(queue, 100, () => waiter('small', 10));
    const served = serve(queue, 50);
    expect(served.filter((tenant) => tenant === 'small')).to.have.length.within(39, 41);
  });

  it('divides in proportion to weights', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 100, () => waiter('heavy', 10, 3));
    joinMany(queue, 100, () => waiter('light', 10, 1));
    expect(serve(queue, 40).filter((tenant) => tenant === 'heavy')).to.have.length.within(29, 31);
  });

  it('starts a newcomer within one turn of a tenant that floods', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 1000, () => waiter('flood'));
    serve(queue, 100);
    queue.join(waiter('new'));
    expect(serve(queue, 2)).to.include('new');
  });

  it('gives no credit for having been away', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 1, () => waiter('a'));
    joinMany(queue, 1000, () => waiter('b'));
    serve(queue, 500);
    joinMany(queue, 100, () => waiter('a'));
    expect(serve(queue, 20).filter((tenant) => tenant === 'a')).to.have.length.within(9, 11);
  });

  it('gives no credit for the time in which a tenant was parked', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 100, () => waiter('a'));
    joinMany(queue, 1000, () => waiter('b'));
    for (let i = 0; i < 200; i++) queue.take(queue.candidates(({ tenant }) => tenant === 'a')[0] as FairWaiter);
    queue.unpark('a');
    expect(serve(queue, 20).filter((tenant) => tenant === 'a')).to.have.length.within(9, 11);
  });

  it('does not let ever new tenants keep out one that waits', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 3, () => waiter('old', 100));
    serve(queue, 1);
    let turns = 0;
    for (; turns < 1000; turns++) {
      queue.join(waiter(`new ${turns}`, 10));
      queue.join(waiter(`more ${turns}`, 10));
      if (serve(queue, 1)[0] === 'old') break;
    }
    expect(turns).to.be.below(200);
  });

  it('charges what a grant turns out to have cost', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 100, () => waiter('a'));
    joinMany(queue, 100, () => waiter('b'));
    serve(queue, 2);
    queue.correct('a', 100);
    expect(serve(queue, 10)).to.deep.equal(Array<string>(10).fill('b'));
    queue.correct('nobody', 100);
  });

  it('offers waiters of other sizes after the one whose turn it is', () => {
    const queue = new FairQueue<FairWaiter>();
    const large = waiter('a', 1100);
    const small = waiter('a', 10);
    queue.join(large);
    queue.join(waiter('a', 1200));
    queue.join(small);
    expect(queue.candidates(anyone)).to.deep.equal([large, small]);
    expect(queue.headsOf('a')).to.deep.equal([large, small]);
    expect(queue.ahead('a', { requests: 1, tokens: 1500 })).to.deep.equal({ requests: 2, tokens: 2300 });
  });

  it('does not offer a parked tenant again, nor its newcomers, before it is unparked', () => {
    const queue = new FairQueue<FairWaiter>();
    queue.join(waiter('a'));
    expect(queue.candidates(() => true)).to.deep.equal([]);
    queue.join(waiter('a', 1000));
    expect(queue.candidates(anyone)).to.deep.equal([]);
    queue.unpark('a');
    expect(queue.candidates(anyone)).to.have.length(2);
  });

  it('lets one leave from the middle', () => {
    const queue = new FairQueue<FairWaiter>();
    const [first, second, third] = [waiter('a'), waiter('a'), waiter('a')];
    [first, second, third].forEach((one) => queue.join(one));
    expect(queue.leave(second)).to.equal(true);
    expect(queue.leave(second)).to.equal(false);
    expect(queue.has(second)).to.equal(false);
    expect(queue.candidates(anyone)).to.deep.equal([first]);
    queue.take(first);
    expect(queue.candidates(anyone)).to.deep.equal([third]);
    expect(queue.oldest()).to.equal(third);
    expect(queue.youngest()).to.equal(third);
  });

  it('forgets a tenant once the others have caught up with it', () => {
    const queue = new FairQueue<FairWaiter>();
    joinMany(queue, 100, () => waiter('stays'));
    for (let i = 0; i < 20; i++) queue.join(waiter(`once ${i}`));
    serve(queue, 60);
    expect(queue.tenants).to.equal(1);
    serve(queue, 60);
    expect(queue.size).to.equal(0);
    expect(queue.tenants).to.equal(0);
  });

  it('stays within one request of each other for tenants that always wait', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 2, maxLength: 6 }),
        (seed, sizes) => {
          const random = seededRandom(seed);
          const queue = new FairQueue<FairWaiter>();
          const weights = sizes.map((_, i) => 1 + (i % 3));
          const join = (i: number): void =>
            queue.join(waiter(`t${i}`, Math.ceil(random() * (sizes[i] as number)), weights[i] as number));
          const served = sizes.map(() => 0);
          for (const i of sizes.keys()) for (let k = 0; k < 2; k++) join(i);
          for (let turn = 0; turn < 200; turn++) {
            const [first] = queue.candidates(anyone);
            if (first === undefined) throw new Error('nobody is offered');
            queue.take(first);
            const i = Number(first.tenant.slice(1));
            served[i] = (served[i] ?? 0) + first.cost.tokens / first.weight;
            join(i);
          }
          for (const [i, own] of served.entries()) {
            for (const [k, other] of served.entries()) {
              // The bound of the source: one request of each.
              const bound =
                (sizes[i] as number) / (weights[i] as number) + (sizes[k] as number) / (weights[k] as number);
              expect(Math.abs(own - other)).to.be.at.most(bound + 1e-6);
            }
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  for (const [name, tenantsOf] of [
    ['of ten tenants', () => 10],
    ['of one tenant', () => 1],
  ] as const) {
    it(`costs at most twice as much an operation with 100,000 waiters ${name} as with 100`, () => {
      const perOperation = (waiters: number): number => {
        let compared = 0;
        const random = seededRandom(3);
        const queue = new FairQueue<FairWaiter>(() => compared++);
        const tenants = tenantsOf();
        const all: FairWaiter[] = [];
        const join = (): void => {
          const one = waiter(`t${Math.floor(random() * tenants)}`, 1 + Math.floor(random() * 2000));
          all.push(one);
          queue.join(one);
        };
        for (let i = 0; i < waiters; i++) join();
        compared = 0;
        for (let i = 0; i < 1000; i++) {
          queue.take(queue.candidates(anyone)[0] as FairWaiter);
          join();
          queue.leave(all[Math.floor(random() * all.length)] as FairWaiter);
          join();
        }
        return compared / 4000;
      };
      expect(perOperation(100_000)).to.be.at.most(2 * perOperation(100) + 1);
    });
  }

  it('grows with the logarithm of the tenants that wait', () => {
    const perOperation = (tenants: number): number => {
      let compared = 0;
      const queue = new FairQueue<FairWaiter>(() => compared++);
      for (let i = 0; i < tenants; i++) queue.join(waiter(`t${i}`));
      compared = 0;
      for (let i = 0; i < 50; i++) {
        queue.take(queue.candidates(anyone)[0] as FairWaiter);
        queue.join(waiter(`new ${i}`));
      }
      return compared / 100;
    };
    expect(perOperation(100_000)).to.be.at.most((Math.log2(100_000) / Math.log2(100)) * perOperation(100) + 1);
  });
});
