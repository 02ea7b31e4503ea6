import { expect } from 'chai';
import { WaitLine } from '../../lib/limits/WaitLine.ts';
import type { Waiter } from '../../lib/limits/WaitLine.ts';

const waiter = (tokens: number, expiresAtMs = Infinity): Waiter => ({ cost: { requests: 1, tokens }, expiresAtMs });

describe('WaitLine', () => {
  it('knows who came first, whose wait ends first, and what all wait for', () => {
    const line = new WaitLine<Waiter>();
    const [first, second, third] = [waiter(10), waiter(20, 900), waiter(30, 500)];
    for (const one of [first, second, third]) line.join(one);
    expect([line.size, line.head(), line.firstToExpire()]).to.deep.equal([3, first, third]);
    expect(line.cost).to.deep.equal({ requests: 3, tokens: 60 });

    expect(line.leave(third)).to.equal(true);
    expect([line.size, line.head(), line.firstToExpire()]).to.deep.equal([2, first, second]);
    expect(line.cost).to.deep.equal({ requests: 2, tokens: 30 });
    expect(line.leave(third)).to.equal(false);
    expect(line.cost).to.deep.equal({ requests: 2, tokens: 30 });
    line.leave(second);
    expect(line.firstToExpire()).to.equal(undefined);
  });

  it('waits for exactly nothing once it is empty', () => {
    const line = new WaitLine<Waiter>();
    const all = [waiter(0.1), waiter(0.2)];
    for (const one of all) line.join(one);
    for (const one of all) line.leave(one);
    expect(line.cost).to.deep.equal({ requests: 0, tokens: 0 });
  });
});
