import { expect } from 'chai';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { AdmissionOptions, DeploymentOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTarget, TargetGate } from '../../lib/limits/AdmissionTarget.ts';
import { AdmissionBench, failure, left } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const served = (deployment: DeploymentOptions, rest: AdmissionOptions = {}): AdmissionBench =>
  new AdmissionBench({ ...rest, models: { m: { deployments: [deployment] } } });
const ONE = { requests: 1, tokens: 0 };
const NOTHING = { requests: 0, tokens: 0 };
const gate = (part: Partial<TargetGate>): TargetGate => ({
  closedMs: 0,
  places: Infinity,
  decides: () => false,
  lets: () => true,
  waitsAlone: () => false,
  ...part,
});

describe('AdmissionTarget', () => {
  describe('as room', () => {
    it('is full at its limit, or at what this process may have of it', () => {
      const bench = served({ concurrency: { limit: 2 } });
      const target = bench.target();
      expect([target.limit, target.full]).to.deep.equal([2, false]);
      bench.take();
      expect(target.full).to.equal(false);
      target.gate = gate({ places: 1 });
      expect(target.full).to.equal(true);
      target.gate = gate({ places: 9 });
      expect(target.full).to.equal(false);
      bench.take();
      expect([target.full, target.inFlight]).to.deep.equal([true, 2]);
      target.gate = undefined;
      expect(target.full).to.equal(true);
      expect(served({}).target().limit).to.equal(Infinity);
      expect(served({ concurrency: { initial: 7, min: 1, max: 9 } }).target().limit).to.equal(7);
    });

    it('is loaded as much as what it has least of', () => {
      const quota = { requestsPerMinute: 60, burstRequests: 10, tokensPerMinute: 1000 };
      const bench = served({ concurrency: { limit: 4 }, quota });
      const target = bench.target();
      expect(target.load(0)).to.equal(0);
      const first = bench.take();
      expect(target.load(0)).to.equal(0.25);
      bench.end(first, SUCCESS);
      expect(target.load(0)).to.be.closeTo(0.1, 1e-9);
      bench.end(bench.take({ tokens: 600 }), SUCCESS);
      expect(target.load(0)).to.be.closeTo(0.6, 1e-9);
      const free = served({});
      free.take();
      expect(free.target().load(0)).to.be.closeTo(0, 1e-6);
    });

    it('is out of reach for as long as its breaker, its account and the others say', () => {
      const bench = served({ breaker: { consecutiveFailures: 1, openMs: 500 } });
      const target = bench.target();
      expect(target.unavailableMs(0)).to.equal(0);
      target.exhausted(300.5);
      target.exhausted(200);
      expect([target.unavailableMs(0), target.unavailableMs(300), target.unavailableMs(301)]).to.deep.equal([
        301, 1, 0,
      ]);
      target.gate = gate({ closedMs: 400 });
      expect(target.unavailableMs(0)).to.equal(400);
      bench.end(bench.machine.poolOf('m') && take(bench), failure('server_error', { status: 500 }));
      expect(target.unavailableMs(0)).to.equal(500);
    });

    it('takes a guess for no more than a minute of the least layer', () => {
      const target = served(
        { quota: { requestsPerMinute: 60, tokensPerMinute: 1000 } },
        { quota: { account: { requestsPerMinute: 30, tokensPerMinute: 5000 } } },
      ).target();
      const cost = { requests: 5, tokens: 50 };
      expect(target.costOf(cost)).to.equal(cost);
      expect(target.costOf({ requests: 31, tokens: 50 })).to.deep.equal({ requests: 30, tokens: 50 });
      expect(target.costOf({ requests: 5, tokens: 1001 })).to.deep.equal({ requests: 5, tokens: 1000 });
      expect([target.most('requests'), target.most('tokens')]).to.deep.equal([30, 1000]);
    });
  });

  describe('as waits', () => {
    const quota = { requestsPerMinute: 60, burstRequests: 1, tokensPerMinute: 6000 };

    it('waits for quota and for pauses', () => {
      const bench = served({ quota });
      const target = bench.target();
      expect(target.waitMs(0, ONE)).to.equal(0);
      bench.take();
      expect(target.waitMs(0, ONE)).to.equal(1000);
      target.cooldown.hint(0, 700);
      expect(target.waitMs(0, ONE)).to.equal(1000);
      target.cooldown.hint(0, 1500);
      expect(target.waitMs(0, ONE)).to.equal(1500);
    });

    it('looks again after a while where a rate is being learned', () => {
      const bench = served({ quota: { requestsPerMinute: 6, burstRequests: 1 } });
      bench.take().observe(0, hintsOf({ requests: { ...left(0), limit: 6 } }));
      expect(bench.target().waitMs(0, ONE)).to.equal(10_000);
      const grown = new AdmissionBench({ models: { m: {} } });
      grown.end(grown.take(), failure('rate_limited', { retryAfterMs: 0 }));
      expect(grown.target().waitMs(0, { requests: 60, tokens: 0 })).to.equal(250);
    });

    it('foresees the wait behind those who cannot go elsewhere', () => {
      const bench = served({ quota });
      bench.take();
      const ahead = { requests: 2, tokens: 0 };
      expect(bench.target().foreseenMs(0, ahead, ONE, true)).to.equal(3000);
      expect(bench.target().foreseenMs(0, ahead, ONE, false)).to.equal(1000);
      expect(bench.target().foreseenMs(0, NOTHING, { requests: 1000, tokens: 0 }, true)).to.equal(1000);
    });

    it('counts on tokens that may come back only where usage counts', () => {
      for (const [settle, waitMs] of [
        ['usage', 1000],
        ['reserved', 40_000],
      ] as const) {
        const bench = served({ quota: { ...quota, settle } });
        bench.take({ tokens: 6000 });
        expect(bench.target().foreseenMs(0, NOTHING, { requests: 1, tokens: 4000 }, true)).to.equal(waitMs);
      }
    });
  });

  describe('as what is decided elsewhere', () => {
    it('lets those go that were granted there, and all whom it does not decide for', () => {
      const target = served({}).target();
      expect(target.lets('a', ONE)).to.equal(true);
      const asked: unknown[] = [];
      target.gate = gate({
        decides: (tenant) => tenant === 'a',
        lets: (tenant, cost) => asked.push([tenant, cost]) > 1,
      });
      expect(target.lets('b', ONE)).to.equal(true);
      expect(asked).to.deep.equal([]);
      expect(target.lets('a', ONE)).to.equal(false);
      expect(target.lets('a', ONE)).to.equal(true);
      expect(asked).to.deep.equal([
        ['a', ONE],
        ['a', ONE],
      ]);
    });

    it('goes through no layer and no pause of its own there', () => {
      const target = served({ quota: { requestsPerMinute: 60 } }).target();
      const tenant = { name: 'a', layer: undefined, routes: new WeakMap() };
      const own = target.routeFor(tenant);
      expect(own.layers).to.deep.equal(target.layers);
      expect(own.cooldown).to.equal(target.cooldown);
      target.gate = gate({ decides: (name) => name === 'a' });
      const route = target.routeFor(tenant);
      expect(route.layers).to.deep.equal([]);
      expect(route.cooldown).to.not.equal(target.cooldown);
      expect(target.routeFor({ ...tenant, name: 'b' })).to.equal(own);
    });

    it('goes through the layer of the tenant as well, by the same way each time', () => {
      const bench = served({}, { tenants: { a: { requestsPerMinute: 60 }, b: {} } });
      const target = bench.target();
      bench.take({ tenant: 'a' });
      const tenant = bench.machine.tenants.find('a');
      if (tenant === undefined) return expect.fail('no tenant');
      const route = target.routeFor(tenant);
      expect(route.layers).to.deep.equal([...target.layers, tenant.layer]);
      expect(target.routeFor(tenant)).to.equal(route);
      expect(route.cooldown).to.equal(target.cooldown);
      expect(tenant.layer?.requests?.level(0)).to.equal(0);
    });
  });

  describe('as it is shown', () => {
    it('shows its layers, its own by its name, and no rate that limits nothing', () => {
      const bench = served({}, { quota: { account: { requestsPerMinute: 60 } } });
      expect(bench.target().snapshotLayers(0)).to.deep.equal([
        { layer: 'account', requests: { level: 1, burst: 1, perMinute: 60 }, tokens: undefined },
        { layer: 'm', requests: undefined, tokens: undefined },
      ]);
    });
  });

  describe('as memory', () => {
    const forgettable = (bench: AdmissionBench): [boolean, boolean] => {
      const target = bench.target();
      return [target.forgettable(bench.nowMs, false), target.forgettable(bench.nowMs, true)];
    };

    it('can be forgotten while nothing of it would be lost', () => {
      const bench = served({ quota: { requestsPerMinute: 60 }, concurrency: { min: 1, max: 9 } });
      expect(forgettable(bench)).to.deep.equal([true, true]);
      const grant = bench.take();
      bench.nowMs = 10_000;
      expect(forgettable(bench), 'in flight').to.deep.equal([false, false]);
      bench.end(grant, SUCCESS);
      bench.machine.next();
      bench.nowMs = 1e6;
      expect(forgettable(bench)).to.deep.equal([true, true]);
      bench.take();
    });

    for (const [name, change, expected] of [
      ['nothing else', () => undefined, [true, true]],
      ['an account that has run out', (target: AdmissionTarget) => target.exhausted(1), [false, false]],
      ['a pause', (target: AdmissionTarget) => target.cooldown.hint(0, 5), [false, false]],
      ['what was taken', (target: AdmissionTarget) => target.learned.layer.requests?.charge(0, 1), [false, false]],
      ['what has not been sent', (target: AdmissionTarget) => target.unsent.add({}), [false, false]],
      [
        'a trial',
        (target: AdmissionTarget) => [target.cooldown.hint(-9, 9), target.cooldown.passed(0)],
        [false, false],
      ],
      [
        'a ramp',
        (target: AdmissionTarget) => {
          target.cooldown.hint(-9, 9);
          target.cooldown.answered(0, target.cooldown.passed(0));
          target.cooldown.waitMs(0);
          target.cooldown.passed(0);
          target.cooldown.reload({ staggerMs: 0 });
          target.cooldown.answered(0, undefined);
        },
        [false, false],
      ],
      [
        'a failure that the breaker counts',
        (target: AdmissionTarget) => {
          const decision = target.breaker.ask();
          if (decision.kind === 'pass') target.breaker.settle(decision.ticket, failure('server_error'));
        },
        [false, true],
      ],
      [
        'an adaptive limit that has grown or shrunk',
        (target: AdmissionTarget) => {
          const mark = target.takeSlot();
          target.judge(mark, 0, failure('rate_limited'), undefined);
          target.freeSlot();
        },
        [false, true],
      ],
      [
        'an adaptive limit that one brought down which took its place when there was none',
        (target: AdmissionTarget) => {
          target.takeSlot();
          expect(target.judge(undefined, 0, failure('rate_limited'), undefined)).to.include({
            kind: 'changed',
            from: 4,
          });
          target.freeSlot();
        },
        [false, true],
      ],
      [
        'a rate of tokens that was named',
        (target: AdmissionTarget) => target.learned.reported(0, hintsOf({ tokens: { ...left(undefined), limit: 30 } })),
        [false, true],
      ],
    ] as const) {
      it(`keeps ${name}`, () => {
        const bench = served({
          quota: { requestsPerMinute: 60, tokensPerMinute: 60 },
          concurrency: { initial: 4, min: 1, max: 9 },
        });
        change(bench.target());
        expect(forgettable(bench)).to.deep.equal(expected);
      });
    }

    it('can be forgotten where nothing limits it', () => {
      expect(forgettable(served({}))).to.deep.equal([true, true]);
    });

    it('keeps a rate of requests that was named', () => {
      const bench = served({ quota: { requestsPerMinute: 60 } });
      bench.target().learned.reported(0, hintsOf({ requests: { ...left(undefined), limit: 30 } }));
      bench.nowMs = 10_000;
      expect(forgettable(bench)).to.deep.equal([false, true]);
    });
  });

  it('tells when an adaptive limit was cut, and leaves a fixed one alone', () => {
    const bench = served({ concurrency: { initial: 8, min: 1, max: 9, decrease: 0.5 } });
    const grant = bench.take();
    expect(bench.end(grant, failure('rate_limited'))?.limit).to.deep.include({ kind: 'changed', from: 8, to: 4 });
    expect(bench.target().limit).to.equal(4);
    const fixed = served({ concurrency: { limit: 8 } });
    expect(fixed.end(fixed.take(), failure('rate_limited'))?.limit).to.equal(undefined);
    expect(fixed.target().limit).to.equal(8);
  });

  describe('as other rules', () => {
    const reload = (bench: AdmissionBench, deployment: DeploymentOptions): AdmissionTarget => {
      bench.machine.reload({ models: { m: { deployments: [deployment] } } });
      return bench.target();
    };

    it('adapts from then on, or stands still', () => {
      const bench = served({ concurrency: { limit: 3 } });
      const grant = bench.take();
      expect(reload(bench, { concurrency: { initial: 8, min: 1, max: 9, decrease: 0.5 } }).limit).to.equal(8);
      expect(bench.end(grant, failure('rate_limited'))?.limit).to.deep.include({ kind: 'changed', to: 4 });
      expect(reload(bench, { concurrency: { limit: 5 } }).limit).to.equal(5);
      expect(reload(bench, {}).limit).to.equal(Infinity);
    });

    it('pauses by the new rules', () => {
      const bench = served({});
      const target = reload(bench, { quota: { cooldown: { unhintedMs: 70 } } });
      target.cooldown.rejected(0, 0);
      expect(target.cooldown.waitMs(0)).to.equal(70);
    });
  });

  it('refuses a wrong limit', () => {
    expect(() => served({ concurrency: { limit: 0 } })).to.throw('concurrency.limit');
  });
});

/** One that is in flight although others say that the deployment is closed. */
function take(bench: AdmissionBench): ReturnType<AdmissionBench['take']> {
  const target = bench.target();
  const { gate: before } = target;
  target.gate = undefined;
  bench.nowMs = 301;
  const grant = bench.take();
  bench.nowMs = 0;
  target.gate = before;
  return grant;
}
