import { expect } from 'chai';
import { createSluice } from '../../lib/client/createSluice.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import { recording } from '../helpers/scripted.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];

describe('createSluice and spend', () => {
  it('counts what each call cost, and refuses a tenant at its cap until the day is over', () => {
    const runtime = virtualRuntime();
    const provider = fakeProvider(runtime);
    // The provider reports 10 tokens of input and 5 of output for each whole answer.
    const price = { inputPerMTok: 100_000, outputPerMTok: 200_000 };
    const policy = { models: { a: { price }, default: {} }, spend: { perTenantPerDay: { default: 3, rich: null } } };
    const sluice = createSluice(provider.source, policy, { runtime });
    const ask = (tenant: string, model = 'a') => {
      const call = recording(sluice.complete({ model, messages }, { tenant }));
      runtime.advance(100);
      return call;
    };
    expect(ask('acme').done).to.equal(true);
    expect(ask('acme', 'free').done).to.equal(true);
    expect(sluice.snapshot().spend.tenants).to.deep.equal({
      acme: { cost: 2, inputTokens: 10, outputTokens: 5, wastedTokens: 0 },
    });
    expect(ask('acme').done).to.equal(true);
    const capped = ask('acme');
    expect(capped.error).to.include({ code: 'spend_capped', limit: 3, requested: 4 });
    expect(capped.error?.retryAfterMs).to.be.within(86_399_000, 86_400_000);
    for (let i = 0; i < 3; i++) expect(ask('rich').done).to.equal(true);
    expect(ask('other').done).to.equal(true);
    expect(Object.keys(sluice.snapshot().spend.models)).to.deep.equal(['a']);
    runtime.stepWall(86_400_000);
    expect(ask('acme').done).to.equal(true);
  });
});
