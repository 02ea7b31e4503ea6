import { expect } from 'chai';
import { SlidingCounts } from '../../../lib/http/live/SlidingCounts.ts';

describe('SlidingCounts', () => {
  it('names the most frequent first, and at most as many as wanted', () => {
    const counts = new SlidingCounts(30_000);
    for (const name of ['a', 'b', 'c', 'b', 'c', 'c']) counts.add(0, name);
    expect(counts.top(0, 2)).to.deep.equal([
      ['c', 3],
      ['b', 2],
    ]);
  });

  it('forgets what is older than the window, step by step and after a silence', () => {
    const counts = new SlidingCounts(30_000);
    counts.add(0, 'a');
    counts.add(10_000, 'a');
    expect(counts.top(29_999, 9)).to.deep.equal([['a', 2]]);
    expect(counts.top(30_000, 9)).to.deep.equal([['a', 1]]);
    expect(counts.top(500_000, 9)).to.deep.equal([]);
    for (let at = 500_000; at < 600_000; at += 1_000) counts.add(at, 'b');
    expect(counts.top(599_999, 9)).to.deep.equal([['b', 30]]);
  });
});
