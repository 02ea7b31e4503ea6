import { expect } from 'chai';
import { sizeClassOf, workOf } from '../../lib/limits/work.ts';

describe('workOf', () => {
  it('is the tokens of a request, and at least 1', () => {
    expect([0, 0.5, 1, 2, 1e9].map(workOf)).to.deep.equal([1, 1, 1, 2, 1e9]);
  });
});

describe('sizeClassOf', () => {
  it('is one class for each factor of 4, and one for requests that name no tokens', () => {
    const classes = [0, 0.9, 1, 3.9, 4, 15, 16, 63, 64, 4 ** 9 - 1, 4 ** 9].map(sizeClassOf);
    expect(classes).to.deep.equal([0, 0, 1, 1, 2, 2, 3, 3, 4, 9, 10]);
  });
});
