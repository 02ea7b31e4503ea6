import { expect } from 'chai';
import type { LimitStore, SharedSlots } from '../../../lib/limits/LimitStore.ts';
import { Ceiling } from '../../../lib/operators/shared/Ceiling.ts';

describe('Ceiling', () => {
  let told: string[];
  let ceiling: Ceiling;

  beforeEach(() => {
    told = [];
    const slots = (name: string, limit: number): SharedSlots => {
      told.push(`${name} of ${limit}`);
      return {
        have: limit,
        refusing: undefined,
        onChange: undefined,
        use: (taken, wanted) => void told.push(`${taken} taken, ${wanted} wanted`),
        reload: (next) => void told.push(`of ${next}`),
        close: () => void told.push('closed'),
      };
    };
    ceiling = new Ceiling('calls', { slots } as LimitStore, () => {});
  });

  it('keeps no place for calls in flight once it is lifted, as nobody would tell of their end', () => {
    ceiling.reload(5);
    ceiling.use(3, 1);
    ceiling.reload(Infinity);
    expect(told.slice(-3)).to.deep.equal(['3 taken, 1 wanted', '0 taken, 0 wanted', 'closed']);
    expect(ceiling.have).to.equal(Infinity);
    ceiling.use(2, 0);
    expect(told.at(-1)).to.equal('closed');
  });

  it('counts them again where there is one again', () => {
    ceiling.reload(5);
    ceiling.use(3, 1);
    ceiling.reload(Infinity);
    ceiling.reload(7);
    expect(told.slice(-2)).to.deep.equal(['calls of 7', '3 taken, 1 wanted']);
    ceiling.reload(8);
    expect(told.at(-1)).to.equal('of 8');
  });

  it('gives everything back when it is closed, once', () => {
    ceiling.reload(5);
    ceiling.use(3, 1);
    ceiling.close();
    ceiling.close();
    expect(told.slice(-2)).to.deep.equal(['0 taken, 0 wanted', 'closed']);
    expect(told.filter((one) => one === 'closed')).to.have.length(1);
  });

  it('tells the store of each change of what is taken or wanted, and of nothing twice', () => {
    ceiling.reload(5);
    told.length = 0;
    for (const [taken, wanted] of [
      [1, 0],
      [1, 0],
      [2, 0],
      [2, 1],
      [2, 1],
      [3, 2],
    ] as const) {
      ceiling.use(taken, wanted);
    }
    expect(told).to.deep.equal(['1 taken, 0 wanted', '2 taken, 0 wanted', '2 taken, 1 wanted', '3 taken, 2 wanted']);
  });

  it('takes nothing and wants nothing before it is used', () => {
    ceiling.reload(5);
    expect(told).to.deep.equal(['calls of 5', '0 taken, 0 wanted']);
  });

  it('says why nobody may have any, if the store does', () => {
    expect(ceiling.refusing).to.equal(undefined);
    const slots = (): SharedSlots => ({ refusing: 'lost', use: () => {} }) as unknown as SharedSlots;
    const refusing = new Ceiling('calls', { slots } as unknown as LimitStore, () => {});
    refusing.reload(5);
    expect(refusing.refusing).to.equal('lost');
  });
});
