import { expect } from 'chai';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import type { LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';

describe('QuotaRoute', () => {
  const route = (...layers: LayerOptions[]): QuotaRoute => {
    const made = layers.map((options) => new QuotaLayer('m', options, 0, 0));
    return new QuotaRoute(made, new Cooldown({}, () => 0), undefined);
  };

  it('takes a cost for no more than the smallest layer lets through in a minute', () => {
    const limited = route(
      { requestsPerMinute: 6, tokensPerMinute: 900 },
      { requestsPerMinute: 9, tokensPerMinute: 300 },
    );
    expect([limited.most('requests'), limited.most('tokens')]).to.deep.equal([6, 300]);
    const small = { requests: 6, tokens: 300 };
    expect(limited.clamped(small)).to.equal(small);
    expect(limited.clamped({ requests: 7, tokens: 300 })).to.deep.equal(small);
    expect(limited.clamped({ requests: 6, tokens: 301 })).to.deep.equal(small);
    expect(limited.clamped({ requests: 2, tokens: 1000 })).to.deep.equal({ requests: 2, tokens: 300 });
    expect(route({}).clamped({ requests: 1e9, tokens: 1e9 })).to.deep.equal({ requests: 1e9, tokens: 1e9 });
  });

  it('waits for the bucket that has room last, of whichever layer', () => {
    const limited = route(
      { requestsPerMinute: 60, burstRequests: 2 },
      { requestsPerMinute: 30, burstRequests: 2, tokensPerMinute: 600 },
      { tokensPerMinute: 6000 },
    );
    expect(limited.layersWaitMs(0, { requests: 2, tokens: 600 })).to.equal(0);
    for (const bucket of limited.requests) bucket.charge(0, 2);
    expect(limited.layersWaitMs(0, { requests: 1, tokens: 0 })).to.equal(2000);
    for (const bucket of limited.tokens) bucket.charge(0, 600);
    expect(limited.layersWaitMs(0, { requests: 1, tokens: 10 })).to.equal(2000);
    expect(limited.layersWaitMs(0, { requests: 1, tokens: 30 })).to.equal(3000);
    expect(route().layersWaitMs(0, { requests: 9, tokens: 9 })).to.equal(0);
  });
});
