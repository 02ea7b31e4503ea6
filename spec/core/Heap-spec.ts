import { expect } from 'chai';
import fc from 'fast-check';
import { seededRandom } from '../../lib/core/seededRandom.ts';
import type { HeapNode } from '../../lib/core/Heap.ts';
import { Heap } from '../../lib/core/Heap.ts';

interface Item {
  readonly key: number;
  readonly order: number;
}

const before = (a: Item, b: Item): boolean => a.key < b.key || (a.key === b.key && a.order < b.order);

type Step =
  | { readonly kind: 'push'; readonly key: number }
  | { readonly kind: 'pop' }
  | { readonly kind: 'remove'; readonly pick: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('push' as const), key: fc.integer({ min: 0, max: 9 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pop' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat() }) },
);

describe('Heap', () => {
  it('is empty at first', () => {
    const heap = new Heap<number>((a, b) => a < b);
    expect(heap.size).to.equal(0);
    expect(heap.peek()).to.equal(undefined);
    expect(heap.pop()).to.equal(undefined);
  });

  it('does what a sorted array does, for any pushes, pops and removals', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const heap = new Heap<Item>(before);
        const nodes: HeapNode<Item>[] = [];
        let sorted: Item[] = [];
        for (const [order, next] of steps.entries()) {
          if (next.kind === 'push') {
            const item = { key: next.key, order };
            nodes.push(heap.push(item));
            sorted = [...sorted, item].sort((a, b) => a.key - b.key || a.order - b.order);
          } else if (next.kind === 'pop') {
            expect(heap.pop()).to.equal(sorted.shift());
          } else if (nodes.length > 0) {
            // Also nodes that have left the heap before.
            const node = nodes[next.pick % nodes.length]!;
            expect(heap.remove(node)).to.equal(sorted.includes(node.item));
            sorted = sorted.filter((item) => item !== node.item);
          }
          expect(heap.size).to.equal(sorted.length);
          expect(heap.peek()).to.equal(sorted[0]);
        }
        expect(Array.from({ length: heap.size }, () => heap.pop())).to.deep.equal(sorted);
      }),
      { numRuns: 300 },
    );
  });

  it('keeps order when the item that fills a gap belongs above it', () => {
    const heap = new Heap<number>((a, b) => a < b);
    const nodes = [0, 10, 1, 11, 12, 2, 3].map((key) => heap.push(key));
    // 3, the last, takes the place of 11, below 10.
    heap.remove(nodes[3]!);
    expect(Array.from({ length: 6 }, () => heap.pop())).to.deep.equal([0, 1, 2, 3, 10, 12]);
  });

  it('removes no node of another heap', () => {
    const one = new Heap<number>((a, b) => a < b);
    const other = new Heap<number>((a, b) => a < b);
    one.push(1);
    const foreign = other.push(1);
    expect(one.remove(foreign)).to.equal(false);
    expect(one.size).to.equal(1);
    expect(other.remove(foreign)).to.equal(true);
  });

  it('marks a node that has left with index -1', () => {
    const heap = new Heap<number>((a, b) => a < b);
    const popped = heap.push(1);
    const removed = heap.push(2);
    heap.pop();
    heap.remove(removed);
    expect([popped.index, removed.index]).to.deep.equal([-1, -1]);
  });

  for (const count of [1_000, 100_000]) {
    it(`compares as often as the heap is high, and not as it is large: ${count} items`, () => {
      let compared = 0;
      const heap = new Heap<number>((a, b) => {
        compared++;
        return a < b;
      });
      const random = seededRandom(3);
      const most = (times: number, work: () => void): number => {
        let highest = 0;
        for (let i = 0; i < times; i++) {
          compared = 0;
          work();
          highest = Math.max(highest, compared);
        }
        return highest;
      };
      const height = Math.ceil(Math.log2(count));
      expect(most(count, () => heap.push(random()))).to.be.at.most(height);
      const nodes = Array.from({ length: 500 }, () => heap.push(random()));
      expect(most(500, () => heap.remove(nodes.pop()!))).to.be.at.most(2 * height + 2);
      expect(most(500, () => heap.pop())).to.be.at.most(2 * height + 2);
    });
  }
});
