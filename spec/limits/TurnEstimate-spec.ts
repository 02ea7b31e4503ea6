import { expect } from 'chai';
import { TurnEstimate } from '../../lib/limits/TurnEstimate.ts';

describe('TurnEstimate', () => {
  it('takes a turn to last a second before any has ended', () => {
    expect(new TurnEstimate().untilEnded(0, 0)).to.equal(1000);
    expect(new TurnEstimate().untilEnded(300, 2)).to.equal(2700);
  });

  it('takes the first that ended for all, and each further one for an eighth', () => {
    const estimate = new TurnEstimate();
    estimate.ended(200);
    expect(estimate.untilEnded(0, 0)).to.equal(200);
    estimate.ended(1000);
    expect(estimate.untilEnded(0, 0)).to.equal(300);
    estimate.ended(100);
    expect(estimate.untilEnded(0, 1)).to.equal(550);
  });

  it('takes one that has outlived the others to last as long again', () => {
    const estimate = new TurnEstimate();
    estimate.ended(200);
    expect([199, 200, 500].map((ranMs) => estimate.untilEnded(ranMs, 0))).to.deep.equal([1, 200, 500]);
  });

  it('is whole and above 0', () => {
    const estimate = new TurnEstimate();
    estimate.ended(0);
    expect(estimate.untilEnded(0, 5)).to.equal(1);
    estimate.ended(0.5);
    expect(estimate.untilEnded(0, 30)).to.equal(2);
  });
});
