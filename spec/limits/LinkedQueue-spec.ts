import { expect } from 'chai';
import fc from 'fast-check';
import { LinkedQueue } from '../../lib/limits/LinkedQueue.ts';
import type { QueueNode } from '../../lib/limits/LinkedQueue.ts';

describe('LinkedQueue', () => {
  it('gives items back in the order in which they came', () => {
    const queue = new LinkedQueue<number>();
    for (const item of [1, 2, 3]) queue.push(item);

    expect([queue.shift(), queue.shift(), queue.shift(), queue.shift()]).to.deep.equal([1, 2, 3, undefined]);
    expect(queue.size).to.equal(0);
  });

  it('shows the first and the last', () => {
    const queue = new LinkedQueue<number>();
    expect([queue.peek(), queue.peekLast()]).to.deep.equal([undefined, undefined]);
    const nodes = [1, 2, 3].map((item) => queue.push(item));
    expect([queue.peek(), queue.peekLast()]).to.deep.equal([1, 3]);
    queue.remove(nodes[2] as QueueNode<number>);
    expect([queue.peek(), queue.peekLast()]).to.deep.equal([1, 2]);
  });

  it('says whether a removed node was still there', () => {
    const queue = new LinkedQueue<number>();
    const node = queue.push(1);

    expect(queue.remove(node)).to.be.true;
    expect(queue.remove(node)).to.be.false;
    const next = queue.push(2);
    queue.shift();
    expect(queue.remove(next)).to.be.false;
  });

  it('lets go of the neighbours of a node that has left', () => {
    const queue = new LinkedQueue<number>();
    const [first, middle, last] = [queue.push(1), queue.push(2), queue.push(3)];
    queue.remove(middle);

    expect(middle).to.include({ before: undefined, after: undefined });
    expect(first.after).to.equal(last);
    expect(last.before).to.equal(first);
  });

  it('behaves as an array does, whatever leaves from where', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant('push' as const), fc.constant('shift' as const), fc.nat({ max: 9 }))),
        (steps) => {
          const queue = new LinkedQueue<number>();
          let model: QueueNode<number>[] = [];
          let item = 0;
          for (const step of steps) {
            if (step === 'push') model.push(queue.push(item++));
            else if (step === 'shift') expect(queue.shift()).to.equal(model.shift()?.item);
            else {
              const node = model[step];
              if (node) expect(queue.remove(node)).to.be.true;
              model = model.filter((each) => each !== node);
            }
            expect(queue.size).to.equal(model.length);
          }
          expect(model.map(() => queue.shift())).to.deep.equal(model.map((node) => node.item));
        },
      ),
      { numRuns: 300 },
    );
  });
});
