import { expect } from 'chai';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import { AdmissionBench, failure } from '../helpers/admissionBench.ts';

const models = (bench: AdmissionBench): string[] => [...bench.machine.pools.keys()];
/** Someone asks for a model, and leaves at once. */
const visit = (bench: AdmissionBench, ...names: string[]): void => {
  for (const model of names) bench.machine.cancel(bench.join({ model }));
};

describe('AdmissionTargets', () => {
  describe('as memory', () => {
    it('keeps those that are listed, and makes them at once', () => {
      const bench = new AdmissionBench({ models: { default: {}, a: {}, b: {} } });
      expect(models(bench)).to.deep.equal(['a', 'b']);
      visit(bench, 'b', 'a', 'b', 'a');
      expect(models(bench)).to.deep.equal(['a', 'b']);
    });

    it('forgets others when nothing of them would be lost', () => {
      const bench = new AdmissionBench({ models: { default: {} } });
      visit(bench, 'x', 'default', 'y');
      expect(models(bench)).to.deep.equal(['y']);
      const waits = bench.join({ model: 'z' });
      visit(bench, 'u', 'v');
      expect(models(bench)).to.deep.equal(['z', 'v']);
      bench.machine.cancel(waits);
      visit(bench, 'w', 'w');
      expect(models(bench)).to.deep.equal(['w']);
    });

    it('looks at two of them at a time, in turn', () => {
      const bench = new AdmissionBench();
      for (const model of ['a', 'b', 'c', 'd']) bench.join({ model });
      visit(bench, 'x');
      expect(models(bench)).to.include('x');
      visit(bench, 'y');
      expect(models(bench), 'others were looked at').to.include('x');
      visit(bench, 'z', 'u');
      expect(models(bench)).to.not.include('x');
      expect(models(bench)).to.include.members(['a', 'b', 'c', 'd']);
    });

    it('goes by what is listed now', () => {
      const bench = new AdmissionBench({ models: { a: {} } });
      visit(bench, 'b');
      bench.machine.reload({ models: { b: {} } });
      visit(bench, 'c', 'd');
      expect(models(bench)).to.deep.equal(['b', 'd']);
    });
  });

  describe('as options', () => {
    it('refuses what is wrong by its name, for models that nobody has asked for too', () => {
      const rate = { requestsPerMinute: -1 };
      for (const [options, message] of [
        [{ quota: { account: { maxWaiting: 2.5 } } }, 'maxWaiting'],
        [{ quota: { account: { maxWaiting: -1 } } }, 'maxWaiting'],
        [{ quota: { account: { maxWaitMs: -1 } } }, 'maxWaitMs'],
        [{ quota: { account: { exhaustedMs: 0 } } }, 'exhaustedMs'],
        [{ quota: { account: rate } }, 'account.requestsPerMinute'],
        [{ quota: { clients: { azure: rate } } }, 'clients.azure.requestsPerMinute'],
        [{ models: { default: { quota: rate } } }, 'models.default.requestsPerMinute'],
        [{ models: { a: { quota: rate } } }, 'models.a.requestsPerMinute'],
        [{ models: { a: { deployments: [{ quota: rate }] } } }, 'a.requestsPerMinute'],
      ] as const) {
        expect(() => new AdmissionBench(options))
          .to.throw(message)
          .with.property('code', 'invalid_option');
      }
      expect(
        () => new AdmissionBench({ quota: { account: { maxWaiting: Infinity, maxWaitMs: Infinity } } }),
      ).to.not.throw();
    });

    it('takes what is to be waited for from the account', () => {
      const bench = new AdmissionBench({ maxInFlight: 1, quota: { account: { maxWaiting: 1, maxWaitMs: 70 } } });
      bench.take();
      expect(bench.join().expiresAtMs).to.equal(70);
      expect(bench.refusal()).to.include({ code: 'queue_full', limit: 1 });
    });

    it('takes rules of the provider from the deployment, else from its client, else from the account', () => {
      const bench = new AdmissionBench({
        quota: {
          account: { exhaustedMs: 1, settle: 'usage' },
          clients: { azure: { exhaustedMs: 2, settle: undefined } },
        },
        models: {
          a: {},
          b: { client: 'azure' },
          c: { deployments: [{ client: 'azure', quota: { exhaustedMs: 3 } }] },
          d: { deployments: [{ quota: { exhaustedMs: undefined } }] },
        },
      });
      const of = (model: string): unknown[] => [bench.target(model).exhaustedMs, bench.target(model).rules.settle];
      expect(['a', 'b', 'c', 'd'].map(of)).to.deep.equal([
        [1, 'usage'],
        [2, 'reserved'],
        [3, 'reserved'],
        [1, 'usage'],
      ]);
    });

    it('counts for a client with an account of its own on that alone, by its margin', () => {
      for (const [arrivalMarginMs, level] of [
        [0, 1],
        [100, 0],
      ] as const) {
        const bench = new AdmissionBench({
          quota: {
            account: { requestsPerMinute: 60, arrivalMarginMs },
            clients: { azure: { requestsPerMinute: 600, burstRequests: 10 }, none: {} },
          },
          models: { a: { client: 'azure' }, b: { client: 'none' } },
        });
        expect(bench.target('a').layers.map(({ name }) => name)).to.deep.equal(['clients.azure', 'a']);
        expect(bench.target('b').layers.map(({ name }) => name)).to.deep.equal(['b']);
        const [own] = bench.target('a').layers;
        own?.requests?.charge(0, 10);
        expect(own?.requests?.level(100)).to.be.closeTo(level, 0.1);
      }
    });
  });

  describe('as reloading', () => {
    const at = (
      ...deployments: NonNullable<NonNullable<AdmissionOptions['models']>[string]['deployments']>
    ): AdmissionOptions => ({
      models: { m: { deployments } },
    });

    it('knows a deployment by its client and its name there, and twins apart', () => {
      const bench = new AdmissionBench(at({ model: 'a' }, { model: 'b' }, { client: 'azure', model: 'a' }));
      const [a, b, azure] = bench.machine.poolOf('m').targets;
      bench.machine.reload(at({ client: 'azure', model: 'a' }, { model: 'b' }, { model: 'c' }, { model: 'a' }));
      const after = bench.machine.poolOf('m').targets;
      expect([after[0], after[1], after[3]]).to.deep.equal([azure, b, a]);
      expect(after[2]).to.not.be.oneOf([a, b, azure]);

      const twins = new AdmissionBench(at({}, {}));
      const before = twins.machine.poolOf('m').targets;
      expect(before[0]).to.not.equal(before[1]);
      twins.machine.reload(at({}, {}));
      expect(twins.machine.poolOf('m').targets).to.deep.equal(before);
      expect(twins.target('m', 0)).to.not.equal(twins.target('m', 1));
    });

    it('keeps what was learned while the rates are the same, and else goes on with its buckets', () => {
      const bench = new AdmissionBench(at({ quota: { requestsPerMinute: 60, burstRequests: 10 } }));
      const { learned } = bench.target();
      learned.layer.requests?.charge(0, 4);
      bench.machine.reload(at({ quota: { requestsPerMinute: 60, burstRequests: 10 } }));
      expect(bench.target().learned).to.equal(learned);
      expect(learned.layer.requests?.level(0)).to.equal(6);
      bench.machine.reload(at({ quota: { requestsPerMinute: 120, burstRequests: 20 } }));
      expect(bench.target().learned).to.not.equal(learned);
      expect(bench.target().learned.layer.requests).to.include({ perMinute: 120, burst: 20 });
      expect(bench.target().learned.layer.requests?.level(0)).to.equal(6);
    });

    it('begins what comes anew as full as what was there', () => {
      const account: AdmissionOptions = {
        quota: { account: { requestsPerMinute: 60, burstRequests: 10, arrivalMarginMs: 0 } },
      };
      for (const [taken, level] of [
        [4, 12],
        [0, 20],
        [15, 0],
      ] as const) {
        const bench = new AdmissionBench(account);
        bench.target().layers[0]?.requests?.charge(0, taken);
        bench.machine.reload({ models: { m: { quota: { requestsPerMinute: 60, burstRequests: 20 } } } });
        const [layer] = bench.target().layers;
        expect(layer?.name).to.equal('models.m');
        expect(layer?.requests?.level(0)).to.be.closeTo(level, 1e-9);
      }
      const same = new AdmissionBench({ models: { m: {} }, ...account });
      same.target().layers[0]?.requests?.charge(0, 5);
      same.machine.reload({
        models: { m: {} },
        quota: { account: { ...account.quota?.account, tokensPerMinute: 600 } },
      });
      expect(same.target().layers[0]?.requests?.level(0)).to.equal(5);
      expect(same.target().layers[0]?.tokens?.level(0)).to.equal(300);
    });
  });

  describe('as breakers', () => {
    const breaker = { consecutiveFailures: 1, openMs: 10, halfOpenMaxMs: 30, rampMs: 0, steadyProbes: 0 };

    it('tells of a probe that is stuck, at the one where it is', () => {
      const bench = new AdmissionBench({ models: { a: { breaker }, b: { breaker }, c: {} } });
      for (const model of ['a', 'b']) bench.end(bench.take({ model }), failure('server_error', { status: 500 }));
      bench.nowMs = 10;
      bench.take({ model: 'c' });
      bench.join({ model: 'a' });
      const { grant } = bench.granted();
      bench.nowMs = 20;
      bench.join({ model: 'b' });
      const sent = bench.granted().grant;
      sent.dispatched(20);
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: 40 });
      bench.nowMs = 39;
      expect(bench.machine.next().kind).to.equal('wait');
      bench.nowMs = 40;
      const step = bench.machine.next();
      if (step.kind !== 'changed') return expect.fail(step.kind);
      expect(step.changes.map(({ target, revoked }) => [target, revoked])).to.deep.equal([
        [bench.target('a'), [grant]],
      ]);
      expect(step.changes[0]?.breaker).to.deep.equal([{ from: 'half_open', to: 'open', reason: 'probe_stuck' }]);
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: Infinity });
    });

    it('waits for the first of those that could be stuck', () => {
      const bench = new AdmissionBench({ models: { a: { breaker }, b: { breaker } } });
      for (const model of ['a', 'b']) bench.end(bench.take({ model }), failure('server_error', { status: 500 }));
      for (const [model, nowMs] of [
        ['a', 10],
        ['b', 15],
      ] as const) {
        bench.nowMs = nowMs;
        bench.join({ model });
        bench.granted();
      }
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: 40 });
      bench.nowMs = 40;
      expect(bench.machine.next().kind).to.equal('changed');
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: 45 });
    });

    it('passes over models for which nobody waits any more', () => {
      const bench = new AdmissionBench({ models: { m: { breaker }, n: { concurrency: { limit: 1 } } } });
      const grant = bench.take();
      bench.take({ model: 'n' });
      bench.join({ model: 'n', maxWaitMs: 500 });
      bench.machine.end(grant, failure('server_error', { status: 500 }));
      expect(bench.serve()).to.deep.equal({ granted: [], refused: [], untilMs: 500 });
    });
  });

  it('takes the widest margin of its deployments for the model in front of them', () => {
    const bench = new AdmissionBench({
      models: {
        m: {
          quota: { requestsPerMinute: 600, burstRequests: 10 },
          deployments: [{ quota: { arrivalMarginMs: 100 } }, { quota: { arrivalMarginMs: 0 } }],
        },
      },
    });
    const [layer] = bench.target().layers;
    for (let i = 0; i < 10; i++) layer?.requests?.charge(0, 1);
    expect(layer?.requests?.level(100)).to.be.closeTo(0, 0.1);
  });
});
