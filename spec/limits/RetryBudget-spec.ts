import { expect } from 'chai';
import fc from 'fast-check';
import { RetryBudget } from '../../lib/limits/RetryBudget.ts';
import type { RetryBudgetOptions } from '../../lib/limits/RetryBudget.ts';
import { thrown } from '../helpers/scripted.ts';

function budgetOf(options: RetryBudgetOptions) {
  const clock = { nowMs: 0, now: () => clock.nowMs };
  return { budget: new RetryBudget(options, clock), clock };
}

/** How many retries of this weight it allows now. */
function allowed(budget: RetryBudget, tokens = 1): number {
  for (let count = 0; ; count++) if (!budget.withdraw(tokens)) return count;
}

describe('RetryBudget', () => {
  it('allows a fifth of recent traffic or one retry a second by default, whichever is more', () => {
    const { budget } = budgetOf({});
    for (let n = 0; n < 100; n++) budget.deposit(1);
    expect(allowed(budget)).to.equal(20);
    const { budget: quiet } = budgetOf({});
    for (let n = 0; n < 10; n++) quiet.deposit(1);
    expect(allowed(quiet)).to.equal(10);
  });

  it('goes on from what was earned and spent when its rules change', () => {
    const { budget, clock } = budgetOf({ ratio: 0.5, minPerSecond: 0 });
    for (let n = 0; n < 100; n++) budget.deposit(1);
    for (let n = 0; n < 30; n++) budget.withdraw(1);
    budget.reload({ ratio: 0.4, minPerSecond: 0 });
    expect(allowed(budget)).to.equal(10);
    budget.reload({ ratio: 0.5, minPerSecond: 0.1, windowMs: 20_000 });
    expect(allowed(budget)).to.equal(10);
    clock.nowMs = 15_000;
    expect(allowed(budget)).to.equal(0);
    budget.reload({ ratio: 0.5, minPerSecond: 0, windowMs: 1000 });
    clock.nowMs = 17_000;
    expect(allowed(budget)).to.equal(0);
    budget.deposit(100);
    expect(allowed(budget)).to.equal(50);
  });

  it('lets nothing grow younger where only the ratio changes', () => {
    const { budget, clock } = budgetOf({ ratio: 0.5, minPerSecond: 0, windowMs: 1000 });
    budget.deposit(100);
    clock.nowMs = 900;
    budget.reload({ ratio: 1, minPerSecond: 0, windowMs: 1000 });
    expect(budget.withdraw(90)).to.be.true;
    clock.nowMs = 1100;
    expect(budget.withdraw(1)).to.be.false;
  });

  it('counts what was spent, and retries of the floor, over a change of the window', () => {
    const { budget } = budgetOf({ ratio: 0.5, minPerSecond: 2, windowMs: 1000 });
    expect(budget.withdraw(5)).to.be.true;
    budget.reload({ ratio: 0.5, minPerSecond: 1, windowMs: 2000 });
    expect(budget.withdraw(5)).to.be.true;
    expect(budget.withdraw(5)).to.be.false;

    budget.deposit(10);
    expect(budget.withdraw(5)).to.be.true;
    budget.reload({ ratio: 0.5, minPerSecond: 0, windowMs: 3000 });
    expect(budget.withdraw(1)).to.be.false;
  });

  it('forgets over a change of the window what was too old before it', () => {
    const { budget, clock } = budgetOf({ ratio: 0.5, minPerSecond: 0 });
    budget.deposit(100);
    clock.nowMs = 11_000;
    budget.reload({ ratio: 0.5, minPerSecond: 0, windowMs: 60_000 });
    expect(allowed(budget)).to.equal(0);
  });

  it('changes nothing where a rule is wrong', () => {
    const { budget } = budgetOf({ ratio: 0.5, minPerSecond: 0 });
    expect(thrown(() => budget.reload({ ratio: 2, windowMs: 1 }))?.code).to.equal('invalid_option');
    budget.deposit(100);
    expect(allowed(budget)).to.equal(50);
  });

  it('follows the ratio', () => {
    const { budget } = budgetOf({ ratio: 0.5, minPerSecond: 0 });
    for (let n = 0; n < 100; n++) budget.deposit(1);
    expect(allowed(budget)).to.equal(50);
  });

  it('allows nothing where both ratio and floor are 0', () => {
    const { budget } = budgetOf({ ratio: 0, minPerSecond: 0 });
    budget.deposit(1000);
    expect(allowed(budget)).to.equal(0);
  });

  it('allows the floor without any traffic, whatever a retry weighs', () => {
    const { budget } = budgetOf({ minPerSecond: 0.5 });
    expect(allowed(budget, 100_000)).to.equal(5);
  });

  it('weighs by tokens', () => {
    const { budget } = budgetOf({ minPerSecond: 0 });
    for (let n = 0; n < 10; n++) budget.deposit(5000);
    expect(budget.withdraw(10_001)).to.be.false;
    expect(budget.withdraw(10_000)).to.be.true;
    expect(budget.withdraw(1)).to.be.false;
  });

  it('counts a retry of no known weight as 1', () => {
    const { budget } = budgetOf({ minPerSecond: 0 });
    for (let n = 0; n < 10; n++) budget.deposit(0);
    expect(allowed(budget, 0)).to.equal(2);
  });

  it('takes nothing when it refuses', () => {
    const { budget } = budgetOf({ minPerSecond: 0 });
    budget.deposit(50);
    expect(budget.withdraw(11)).to.be.false;
    expect(budget.withdraw(10)).to.be.true;
  });

  it('forgets traffic that is older than the window, also when nothing was asked meanwhile', () => {
    const { budget, clock } = budgetOf({ minPerSecond: 0, windowMs: 1000 });
    budget.deposit(1000);
    clock.nowMs = 3_600_000;
    expect(budget.withdraw(1)).to.be.false;
  });

  it('forgets what was spent when it is older than the window', () => {
    const { budget, clock } = budgetOf({ windowMs: 1000 });
    expect(allowed(budget)).to.equal(1);
    clock.nowMs = 899;
    expect(allowed(budget)).to.equal(0);
    clock.nowMs = 1000;
    expect(allowed(budget)).to.equal(1);
  });

  it('does not gain by a clock that stands still', () => {
    const { budget } = budgetOf({ minPerSecond: 2, windowMs: 1000 });
    expect(allowed(budget) + allowed(budget) + allowed(budget)).to.equal(2);
  });

  it('never lets retries exceed their share of the window', () => {
    const step = fc.record({
      waitMs: fc.nat({ max: 700 }),
      op: fc.constantFrom('deposit', 'withdraw', 'withdraw'),
      tokens: fc.integer({ min: 1, max: 50 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.constantFrom(0, 0.2, 1), (steps, share) => {
        const { budget, clock } = budgetOf({ ratio: share, minPerSecond: 1, windowMs: 2000 });
        const deposits: [number, number][] = [];
        const granted: [number, number][] = [];
        const sum = (list: [number, number][], fromMs: number) =>
          list.reduce((total, [atMs, tokens]) => total + (atMs > fromMs ? tokens : 0), 0);
        for (const { waitMs, op, tokens } of steps) {
          clock.nowMs += waitMs;
          if (op === 'deposit') {
            budget.deposit(tokens);
            deposits.push([clock.nowMs, tokens]);
          } else if (budget.withdraw(tokens)) {
            granted.push([clock.nowMs, tokens]);
            // A window's worth of retries was weighed against the window before each. Two came from the floor, of any size.
            const inWindow = granted.filter(([atMs]) => atMs > clock.nowMs - 1800).map(([, weight]) => weight);
            const floor = inWindow.sort((a, b) => b - a).slice(0, 2);
            const byRatio =
              sum(granted, clock.nowMs - 1800) -
              sum(
                floor.map((weight) => [Infinity, weight]),
                0,
              );
            expect(byRatio).to.be.at.most(share * sum(deposits, clock.nowMs - 3800) + 1e-9);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  for (const [name, work, message] of [
    ['a ratio above 1', () => budgetOf({ ratio: 1.5 }), 'ratio must be from 0 to 1, got 1.5'],
    ['a floor below 0', () => budgetOf({ minPerSecond: -1 }), 'minPerSecond must be finite and 0 or more, got -1'],
    ['a window of nothing', () => budgetOf({ windowMs: 0 }), 'windowMs must be finite and above 0, got 0'],
    [
      'tokens that are no number',
      () => budgetOf({}).budget.deposit(NaN),
      'tokens must be finite and 0 or more, got NaN',
    ],
  ] as const) {
    it(`refuses ${name}`, () => {
      expect(thrown(work)).to.include({ code: 'invalid_option', message });
    });
  }
});
