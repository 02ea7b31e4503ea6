import { expect } from 'chai';
import { layersOf } from '../../lib/limits/layersOf.ts';

describe('layersOf', () => {
  const rates = { requestsPerMinute: 60, burstRequests: 2, tokensPerMinute: 6000, burstTokens: 100 };

  it('makes one layer named account of the rates beside `layers`, before the others', () => {
    expect(layersOf({ ...rates, layers: { b: { tokensPerMinute: 1 }, a: {} }, maxWaiting: 5 })).to.deep.equal([
      ['account', rates],
      ['b', { tokensPerMinute: 1 }],
      ['a', {}],
    ]);
    expect(layersOf(rates)).to.deep.equal([['account', rates]]);
  });

  for (const option of ['requestsPerMinute', 'burstRequests', 'tokensPerMinute', 'burstTokens'] as const) {
    it(`makes that layer for ${option} alone`, () => {
      const none = {
        requestsPerMinute: undefined,
        burstRequests: undefined,
        tokensPerMinute: undefined,
        burstTokens: undefined,
      };
      expect(layersOf({ [option]: 7 })).to.deep.equal([['account', { ...none, [option]: 7 }]]);
    });
  }

  it('makes no layer where `layers` says that none is meant', () => {
    expect(layersOf({ layers: {} })).to.deep.equal([]);
    expect(layersOf({ layers: { model: { requestsPerMinute: 5 } } })).to.deep.equal([
      ['model', { requestsPerMinute: 5 }],
    ]);
  });

  it('refuses options that name no rate at all', () => {
    expect(() => layersOf({ maxWaiting: 5 }))
      .to.throw('requestsPerMinute or tokensPerMinute must be finite and above 0, got NaN')
      .with.property('code', 'invalid_option');
  });
});
