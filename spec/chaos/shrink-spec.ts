import { expect } from 'chai';
import { invariants } from './invariants/invariants.ts';
import type { ChaosPlan } from './plan/ChaosPlan.ts';
import { drawPlan } from './plan/drawPlan.ts';
import { runPlan } from './run/runPlan.ts';
import { losesAChunk } from './sabotage/sabotages.ts';
import { shrink, sizeOf } from './shrink.ts';

describe('chaos: shrink', () => {
  it('leaves what a failure needs, and nothing else', async () => {
    const needed = (plan: ChaosPlan): boolean =>
      plan.calls.some(({ tenant }) => tenant === 'bolt') && plan.policy.maxInFlight !== undefined;
    const plan = { ...drawPlan(7, 'virtual'), policy: { ...drawPlan(7, 'virtual').policy, maxInFlight: 3 } };
    const [first, ...others] = plan.calls;
    const failing: ChaosPlan = {
      ...plan,
      calls: [...others.slice(0, 20), { ...first, tenant: 'bolt' } as never, ...others.slice(20)],
    };
    const smallest = await shrink(failing, (smaller) => Promise.resolve(needed(smaller)));
    expect(smallest.calls).to.deep.equal([{ tenant: 'bolt' }]);
    expect(smallest.policy).to.deep.equal({ maxInFlight: 3 });
    expect(smallest.shocks).to.deep.equal([]);
  });

  it('makes one call of a plan with hundreds, for a client that loses a piece of text', async () => {
    const watching = {
      invariants: invariants.filter(({ name }) => name === 'textArrivesOnceAndWhole'),
      sabotage: losesAChunk,
    };
    const fails = async (smaller: ChaosPlan): Promise<boolean> => {
      try {
        return (await runPlan(smaller, watching)).violations.length > 0;
      } catch {
        return false;
      }
    };
    const plan = drawPlan(1, 'virtual');
    expect(await fails(plan), 'fails at all').to.equal(true);
    const smallest = await shrink(plan, fails);
    expect(await fails(smallest)).to.equal(true);
    expect(smallest.calls).to.have.length(1);
    expect(sizeOf(smallest)).to.be.below(sizeOf(plan) / 10);
  });

  it('stops when it is told to', async () => {
    const plan = drawPlan(7, 'virtual');
    let runs = 0;
    const smallest = await shrink(
      plan,
      () => Promise.resolve(++runs > 0),
      () => runs >= 3,
    );
    expect(runs).to.equal(3);
    expect(sizeOf(smallest)).to.be.below(sizeOf(plan));
  });
});
