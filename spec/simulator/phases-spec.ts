import { expect } from 'chai';
import { simulate } from '../../lib/simulator/index.ts';
import type { Scenario } from '../../lib/simulator/index.ts';

const call = { arrivals: { kind: 'constant', perMinute: 60 }, model: 'm' } as const;
const scenario: Scenario = {
  name: 'a spec',
  forMs: 10_000,
  load: [call, { ...call, model: 'n', fromMs: 5000, toMs: 8000 }],
  upstreams: {
    main: { firstTokenMs: 200, outages: [{ kind: 'error', error: 'requests', model: 'm', fromMs: 0, toMs: 2500 }] },
  },
  strategies: [{ kind: 'fixed', attempts: 2, delayMs: 1000 }],
};

describe('phases of a scenario', () => {
  it('have figures of the calls that were made in them, or of those at one model', () => {
    const phases = [
      { name: 'down', fromMs: 0, toMs: 3000 },
      { name: 'later', fromMs: 3000, toMs: 10_000 },
      { name: 'n', fromMs: 3000, toMs: 10_000, model: 'n' },
    ];
    const figures = simulate({ ...scenario, phases }).strategies[0]?.phases ?? [];
    expect(figures.map(({ name, calls, answered }) => [name, calls, answered])).to.deep.equal([
      ['down', 3, 1],
      ['later', 10, 10],
      ['n', 3, 3],
    ]);
    expect(figures[0]).to.include({ attempts: 6, attemptsPerCall: 2, rateLimited: 5 });
    expect(figures[0]?.rateLimitedShare).to.be.closeTo(5 / 6, 1e-9);
    expect(figures[1]).to.include({ attempts: 10, rateLimited: 0 });
    expect(figures[1]?.firstContentMs.p95).to.be.closeTo(240, 1);
    expect(figures[0]?.totalMs.p95).to.be.above(1500);
  });

  it('are none where none are named', () => {
    expect(simulate(scenario).best.phases).to.deep.equal([]);
  });

  it('can differ in who asks, as a load may begin later and end earlier', () => {
    const calls = (fromMs: number, toMs: number): number =>
      simulate({ ...scenario, load: [{ ...call, fromMs, toMs }] }).best.calls;
    expect(calls(0, 10_000)).to.equal(10);
    expect(calls(3000, 10_000)).to.equal(7);
    expect(calls(3000, 6000)).to.equal(3);
  });
});
