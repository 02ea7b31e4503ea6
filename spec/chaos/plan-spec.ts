import { expect } from 'chai';
import { FakeProvider } from '../../lib/emulator/model/FakeProvider.ts';
import { parsePolicy } from '../../lib/index.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { CallerKind, ChaosPlan, PlannedCall } from './plan/ChaosPlan.ts';
import { drawPlan, worldOf } from './plan/drawPlan.ts';
import { rotation } from './rotation.ts';
import { runPlan } from './run/runPlan.ts';

const seeds = Array.from({ length: 200 }, (_, i) => i + 1);

describe('chaos: plans', () => {
  it('are the same for the same seed, and others for others', () => {
    const texts = seeds.map((seed) => JSON.stringify(drawPlan(seed)));
    expect(new Set(texts).size).to.equal(seeds.length);
    expect(seeds.map((seed) => JSON.stringify(drawPlan(seed)))).to.deep.equal(texts);
  });

  it('are plain data, of policies and providers that there can be', () => {
    for (const seed of seeds) {
      const plan = drawPlan(seed);
      expect(JSON.parse(JSON.stringify(plan))).to.deep.equal(plan);
      const clients = Object.keys(plan.providers);
      parsePolicy(plan.policy, { clients });
      for (const shock of plan.shocks) if (shock.kind === 'reload') parsePolicy(shock.policy, { clients });
      for (const { options } of Object.values(plan.providers)) new FakeProvider(options, virtualRuntime().clock);
    }
  });

  it('are played in three worlds: of 1,000 in a row 910, 80 and 10', () => {
    const counts: Record<string, number> = {};
    for (let seed = 5_001; seed <= 6_000; seed++) counts[worldOf(seed)] = (counts[worldOf(seed)] ?? 0) + 1;
    expect(counts).to.deep.equal({ virtual: 910, http: 80, redis: 10 });
  });

  it('come to the same end each time in virtual time', async () => {
    for (const seed of [2, 3, 5, 12]) {
      const plan = drawPlan(seed, 'virtual');
      expect(await runPlan(plan)).to.deep.equal(await runPlan(plan));
    }
  });

  it('hold everything there is: shocks, faults, cancels, tenants, conversations, priorities, deadlines', () => {
    const plans = seeds.map((seed) => drawPlan(seed));
    const all = plans.map((plan) => JSON.stringify(plan)).join('\n');
    for (const kind of ['reload', 'limits', 'wall', 'stall', 'store']) expect(all).to.include(`"kind":"${kind}"`);
    const stores = [100, 200, 300, 400, 500].flatMap((seed) => drawPlan(seed).shocks);
    for (const what of ['flush', 'restart', 'pause']) {
      expect(stores.some((shock) => shock.kind === 'store' && shock.what === what)).to.equal(true);
    }
    const some = (holds: (plan: ChaosPlan) => boolean): void => {
      expect(plans.filter(holds).length).to.be.at.least(10);
    };
    some(({ calls }) => calls.some(({ leaves }) => leaves?.how === 'abort'));
    some(({ calls }) => calls.some(({ leaves }) => leaves !== undefined && 'atValue' in leaves));
    some(({ calls }) => calls.some(({ tenant }) => tenant !== undefined));
    some(({ calls }) => calls.some(({ conversation }) => conversation !== undefined));
    some(({ calls }) => calls.some(({ priority }) => priority === 'batch'));
    some(({ calls }) => calls.some(({ deadlineMs }) => deadlineMs !== undefined));
    some(({ providers }) => Object.values(providers).some(({ options }) => options.outages !== undefined));
    some(({ close }) => close !== undefined);
  });

  it('are others every day, and never those of the first thousand', () => {
    const today = rotation(50, Date.UTC(2026, 4, 1, 23, 59));
    const tomorrow = rotation(50, Date.UTC(2026, 4, 2));
    expect(today).to.deep.equal(rotation(50, Date.UTC(2026, 4, 1)));
    expect(tomorrow[0]).to.equal(today[1] + 1);
    expect(rotation(50, 0)[0]).to.be.above(1_000);
  });

  it('makes calls over HTTP in every way there is, which leave unsaid what cannot be said there', () => {
    const plans = Array.from({ length: 24 }, (_, seed) => drawPlan(seed, 'http'));
    const drawn = plans.flatMap(({ calls }) => calls);
    const made = (by: CallerKind | undefined): PlannedCall[] => drawn.filter((call) => call.by === by);
    for (const by of [undefined, 'gateway', 'fetch', 'call'] as const) {
      expect(made(by).length, by).to.be.above(0.1 * drawn.length);
    }
    for (const call of made('gateway')) expect(call).to.not.have.any.keys('restarts', 'attempts');
    for (const call of made('fetch')) expect(call).to.not.have.any.keys('restarts', 'attempts', 'midStream');
    for (const call of made('call')) expect(call).to.not.have.any.keys('restarts', 'midStream');
    expect(made('call').some(({ fallback = [] }) => fallback.length > 0)).to.equal(true);
    const modes = new Set(made('gateway').map(({ midStream }) => midStream));
    expect(modes).to.deep.equal(new Set([undefined, 'fail', 'restart', 'continue', 'buffer']));
    expect(plans.some(({ policy }) => policy.gateway?.midStream === 'buffer')).to.equal(true);
  });

  it('makes calls in virtual time by SDKs too, in one of five plans', () => {
    const plans = seeds.map((seed) => drawPlan(seed, 'virtual')).filter(({ calls }) => calls.some(({ by }) => by));
    expect(plans.length / seeds.length).to.be.within(0.1, 0.3);
    const ways = new Set(plans.flatMap(({ calls }) => calls.map(({ by }) => by)));
    expect(ways).to.deep.equal(new Set([undefined, 'fetch', 'call']));
  });
});
