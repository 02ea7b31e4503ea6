import { expect } from 'chai';
import type { Load, Scenario, Upstream } from '../../lib/simulator/index.ts';
import { shortened } from '../../lib/simulator/plan/shortened.ts';

const load: Load = { arrivals: { kind: 'poisson', perMinute: 120 }, model: 'm' };
const upstream: Upstream = { firstTokenMs: 200, tokenMs: 2, tokens: 10 };
const scenario: Scenario = { name: 'a spec', forMs: 120_000, load: [load], upstreams: { main: upstream } };

describe('shortened', () => {
  const day: Scenario = { ...scenario, forMs: 86_400_000 };
  const at = (changes: Partial<Load>, of: Partial<Upstream> = {}, whole = false) => {
    const all = { ...day, load: [{ ...load, ...changes }], upstreams: { main: { ...upstream, ...of } } };
    const { scenario: cut, part } = shortened(all, 6000, whole);
    return { part, forMs: cut.forMs, arrivals: cut.load[0]?.arrivals };
  };

  it('cuts what goes on evenly to the calls that are wanted, but not below ten minutes and ten bursts', () => {
    expect(at({})).to.include({ part: 'first', forMs: 3_000_000 });
    expect(at({ arrivals: { kind: 'constant', perMinute: 12_000 } })).to.include({ part: 'first', forMs: 600_000 });
    expect(at({ arrivals: { kind: 'bursts', size: 9000, everyMs: 3_600_000 } }).forMs).to.equal(36_000_000);
    expect(at({ arrivals: { kind: 'workers', workers: 10, thinkMs: 380 } }).forMs).to.equal(600_000);
  });

  it('leaves the peak of a daily curve, unless all of it matters', () => {
    const curve = { kind: 'daily', perMinute: 600, peak: 2, peakAtMs: 50_000_000 } as const;
    expect(at({ arrivals: curve })).to.deep.equal({
      part: 'peak',
      forMs: 600_000,
      arrivals: { ...curve, peakAtMs: 300_000 },
    });
    expect(at({ arrivals: curve }, {}, true)).to.include({ part: 'all', forMs: day.forMs });
    expect(at({ arrivals: { ...curve, perMinute: 1 } })).to.include({ part: 'all' });
  });

  it('leaves alone what happens at set times, is recorded or counted', () => {
    const outage = { kind: 'error', error: 'overloaded', fromMs: 0, toMs: 1 } as const;
    for (const changes of [
      { outages: [outage] },
      { changes: [{ atMs: 1 }] },
      { script: [{ kind: 'pass' }] },
    ] as const) {
      expect(at({}, changes)).to.include({ part: 'all' });
    }
    expect(at({ arrivals: { kind: 'trace', calls: [{ atMs: 1 }] } })).to.include({ part: 'all' });
    expect(at({ arrivals: { kind: 'workers', workers: 2, calls: 90 } })).to.include({ part: 'all' });
    expect(at({ toMs: 9 })).to.include({ part: 'all' });
    expect(shortened(scenario, 6000, false)).to.deep.equal({ scenario, part: 'all' });
  });
});
