import { expect } from 'chai';
import { FallbackChain, fallbackMap } from '../../lib/operators/FallbackChain.ts';
import type { FallbackMap, FallbackRules } from '../../lib/operators/FallbackChain.ts';
import { thrown } from '../helpers/scripted.ts';

describe('FallbackChain', () => {
  const chainOf = (map: FallbackMap, rules: Partial<FallbackRules> = {}): FallbackChain =>
    new FallbackChain(map, { onlyOn: undefined, except: undefined, mayAsk: () => true, ...rules });

  const nextOf = (chain: FallbackChain, code: Parameters<FallbackChain['next']>[0] = 'overloaded') => {
    const passedOver: string[] = [];
    return { model: chain.next(code, (model) => passedOver.push(model)), passedOver };
  };

  it('gives each model once, in order', () => {
    const chain = chainOf({ overloaded: ['a', 'b', 'c'] });
    const models = [nextOf(chain).model, nextOf(chain, 'connection').model, nextOf(chain, 'connection').model];
    expect(models).to.deep.equal(['a', 'b', 'c']);
    expect(chain.leads('connection')).to.be.false;
  });

  it('names those that it passed over, and none behind the one it gives', () => {
    const chain = chainOf({ default: ['a', 'b', 'c', 'd'] }, { mayAsk: (model) => model === 'c' });
    expect(nextOf(chain)).to.deep.equal({ model: 'c', passedOver: ['a', 'b'] });
    expect(nextOf(chainOf({ default: ['a', 'b'] }))).to.deep.equal({ model: 'a', passedOver: [] });
  });

  it('passes over all where none may be asked, and has not moved on', () => {
    const chain = chainOf({ default: ['a', 'b'] }, { mayAsk: () => false });
    expect(nextOf(chain)).to.deep.equal({ model: undefined, passedOver: ['a', 'b'] });

    let open = false;
    const later = chainOf({ default: ['a', 'b'] }, { mayAsk: () => open });
    nextOf(later);
    open = true;
    expect(later.leads('bad_request')).to.be.false;
    expect(nextOf(later).model).to.equal('a');
  });

  it('goes nowhere by an empty list, whatever an earlier failure left', () => {
    const chain = chainOf({ overloaded: [], default: ['a', 'b'] });
    expect(nextOf(chain, 'connection').model).to.equal('a');
    expect(chain.leads('overloaded')).to.be.false;
    expect(chain.leads('connection')).to.be.true;
  });

  it('takes a request for wrong in itself until one model has been asked in place of another', () => {
    const chain = chainOf({ default: ['a', 'b'] });
    expect(chain.leads('bad_request')).to.be.false;
    nextOf(chain);
    expect(chain.leads('bad_request')).to.be.true;
    for (const code of ['content_filtered', 'invalid_request', 'spend_capped'] as const) {
      expect(chain.leads(code)).to.be.false;
    }
  });

  it('refuses a code that ends the call', () => {
    expect(thrown(() => fallbackMap({ closed: ['a'] })).message).to.equal(
      'models must be without codes that end the call, got a string of 6 characters',
    );
  });
});
