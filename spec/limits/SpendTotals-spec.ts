import { expect } from 'chai';
import { SpendTotals } from '../../lib/limits/SpendTotals.ts';
import type { SpendPart } from '../../lib/limits/SpendTotals.ts';

const part = (cost: number, wasted = false): SpendPart => ({
  usage: {
    inputTokens: 10 * cost,
    outputTokens: cost,
    totalTokens: 11 * cost,
    cachedInputTokens: undefined,
    reasoningTokens: undefined,
  },
  cost,
  wasted,
});
const total = (cost: number, wasted = 0): object => ({
  cost,
  inputTokens: 10 * cost,
  outputTokens: cost,
  wastedTokens: 11 * wasted,
});

describe('SpendTotals', () => {
  it('tells so many names apart, not counting those that are kept', () => {
    const totals = new SpendTotals(1, 'rest');
    totals.add('kept', part(1), true);
    totals.add('a', part(2), false);
    totals.add('b', part(3), false);
    totals.add('late', part(4), true);
    totals.add('a', part(5, true), false);
    expect(totals.snapshot()).to.deep.equal({ kept: total(1), a: total(7, 5), rest: total(3), late: total(4) });
    expect(['a', 'b', 'late', 'nobody'].map((name) => totals.costOf(name))).to.deep.equal([7, 0, 4, 0]);
  });

  it('shows the others together with one that has their name', () => {
    const totals = new SpendTotals(1, 'rest');
    totals.add('rest', part(2, true), false);
    totals.add('b', part(3, true), false);
    expect(totals.snapshot()).to.deep.equal({ rest: total(5, 5) });
    expect(totals.costOf('rest')).to.equal(2);
  });
});
