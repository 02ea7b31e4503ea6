import { expect } from 'chai';
import { account, AdmissionBench, failure } from '../helpers/admissionBench.ts';

const oneASecond = { requestsPerMinute: 60 };

describe('Admission', () => {
  describe('as refusals on entry', () => {
    it('refuses what can never pass, at no deployment and not for the tenant', () => {
      const bench = new AdmissionBench({
        quota: { account: { requestsPerMinute: 90 } },
        models: { m: { deployments: [{ quota: { tokensPerMinute: 500 } }, { quota: { tokensPerMinute: 800 } }] } },
        tenants: { small: { requestsPerMinute: 6, tokensPerMinute: 40 } },
      });
      const refused = { kind: 'refused', code: 'cost_too_large', retryAfterMs: undefined };
      expect(bench.refusal({ tokens: 801 })).to.deep.equal({ ...refused, limit: 800, requested: 801, unit: 'tokens' });
      expect(bench.refusal({ requests: 91 })).to.deep.equal({ ...refused, limit: 90, requested: 91, unit: 'requests' });
      const small = { tenant: 'small' };
      expect(bench.refusal({ ...small, tokens: 41 })).to.include({ limit: 40, requested: 41 });
      expect(bench.refusal({ ...small, requests: 7 })).to.include({ limit: 6, requested: 7 });
      expect(bench.ask({ tokens: 800 })).to.include({ kind: 'ticket' });
      expect(bench.ask({ ...small, requests: 6, tokens: 40 })).to.include({ kind: 'ticket' });
      expect(bench.ask({ tokens: 1e9, guessed: true })).to.include({ kind: 'ticket' });
    });

    it('refuses while no deployment can be asked, until one can', () => {
      const breaker = { consecutiveFailures: 1, openMs: 500 };
      const bench = new AdmissionBench({ models: { m: { breaker } } });
      bench.end(bench.take(), failure('server_error', { status: 500 }));
      expect(bench.refusal()).to.deep.equal({
        kind: 'refused',
        code: 'circuit_open',
        retryAfterMs: 500,
        limit: undefined,
        requested: undefined,
        unit: 'ms',
      });
      bench.nowMs = 500;
      expect(bench.ask()).to.include({ kind: 'ticket' });
    });

    it('refuses a wait that is known not to end in time, and says when it could', () => {
      const bench = account(oneASecond);
      bench.take();
      const refused = { kind: 'refused', requested: undefined, unit: 'ms', retryAfterMs: 1000 };
      expect(bench.refusal({ maxWaitMs: 999 })).to.deep.equal({ ...refused, code: 'queue_timeout', limit: 999 });
      expect(bench.refusal({ deadlineAtMs: 999 })).to.deep.equal({ ...refused, code: 'timeout_deadline', limit: 999 });
      expect(bench.refusal({ deadlineAtMs: 999, maxWaitMs: 999 }).code).to.equal('timeout_deadline');
      expect(bench.refusal({ deadlineAtMs: 1000, maxWaitMs: 999 }).code).to.equal('queue_timeout');
      expect(bench.ask({ maxWaitMs: 1000 })).to.include({ kind: 'ticket', foreseenMs: 1000, position: 1 });
      expect(bench.ask({ maxWaitMs: 2000 })).to.include({ kind: 'ticket', foreseenMs: 2000, position: 2 });
      expect(bench.refusal({ maxWaitMs: 2999 }).code).to.equal('queue_timeout');
    });

    it('refuses what comes at its deadline or after, though there is room', () => {
      const bench = new AdmissionBench();
      bench.nowMs = 50;
      for (const deadlineAtMs of [50, 10]) {
        expect(bench.refusal({ deadlineAtMs })).to.deep.equal({
          kind: 'refused',
          code: 'timeout_deadline',
          retryAfterMs: 1,
          limit: 0,
          requested: undefined,
          unit: 'ms',
        });
      }
      expect(bench.ask({ deadlineAtMs: 51 })).to.include({ kind: 'ticket', expiresAtMs: 51 });
    });

    it('foresees the rates of the tenant, behind those of its own that cost as much', () => {
      const bench = new AdmissionBench({ tenants: { a: { requestsPerMinute: 60, tokensPerMinute: 600 } } });
      bench.take({ tenant: 'a' });
      expect(bench.join({ tenant: 'a' }).foreseenMs).to.equal(1000);
      expect(bench.join({ tenant: 'a' }).foreseenMs).to.equal(2000);
      expect(bench.join({ tenant: 'a', priority: 'batch' }).foreseenMs).to.equal(1000);
      expect(bench.join({ tenant: 'b' }).foreseenMs).to.equal(0);
      expect(bench.join({ tenant: 'a', tokens: 1e9, guessed: true }).foreseenMs).to.equal(1000);
    });

    it('counts on tokens of the tenant that may come back', () => {
      const bench = new AdmissionBench({ tenants: { a: { tokensPerMinute: 600 } } });
      bench.take({ tenant: 'a', tokens: 600 });
      expect(bench.join({ tenant: 'a', tokens: 300 }).foreseenMs).to.equal(0);
    });

    it('lets one that may not wait go ahead of nobody', () => {
      const bench = account({ tokensPerMinute: 6000, burstTokens: 1000 });
      bench.take({ tokens: 500 });
      bench.join({ tokens: 800 });
      expect(bench.refusal({ tokens: 10, maxWaitMs: 0 }).code).to.equal('queue_timeout');
      expect(bench.ask({ tokens: 10, maxWaitMs: 0, model: 'n' })).to.include({ kind: 'ticket' });
    });

    for (const [name, options, prepare] of [
      ['a call waits already', { maxInFlight: 1 }, (bench: AdmissionBench) => [bench.take(), bench.join()]],
      ['all slots are taken', { maxInFlight: 1 }, (bench: AdmissionBench) => bench.take({ model: 'n' })],
      [
        'its priority is at its ceiling',
        { priorities: { levels: { interactive: { maxInFlight: 1 } } } },
        (bench: AdmissionBench) => bench.take({ model: 'n' }),
      ],
      [
        'its tenant is',
        { tenants: { a: { maxInFlight: 1 } } },
        (bench: AdmissionBench) => bench.take({ tenant: 'a', model: 'n' }),
      ],
      ['its deployment is', { models: { m: { concurrency: { limit: 1 } } } }, (bench: AdmissionBench) => bench.take()],
    ] as const) {
      it(`refuses one that may not wait where ${name}`, () => {
        const bench = new AdmissionBench(options);
        expect(bench.ask({ tenant: 'a', maxWaitMs: 0, model: 'other' })).to.include({ kind: 'ticket' });
        bench.machine.cancel([...bench.machine.pools.values()].flatMap((pool) => pool.oldest() ?? [])[0] as never);
        prepare(bench);
        expect(bench.refusal({ tenant: 'a', maxWaitMs: 0 })).to.include({ code: 'queue_timeout', limit: 0 });
        expect(bench.refusal({ tenant: 'a', maxWaitMs: 0 }).retryAfterMs).to.be.at.least(1);
      });
    }

    it('refuses wrong fields by their names', () => {
      const bench = new AdmissionBench();
      for (const [ask, name] of [
        [{ requests: -1 }, 'cost.requests'],
        [{ tokens: NaN }, 'cost.tokens'],
        [{ maxWaitMs: -1 }, 'maxWaitMs'],
        [{ model: '' }, 'model'],
        [{ priority: 'never' }, 'priority'],
      ] as const) {
        expect(() => bench.ask(ask))
          .to.throw(name)
          .with.property('code', 'invalid_option');
      }
      expect([bench.machine.waiting, bench.machine.inFlight]).to.deep.equal([0, 0]);
    });
  });

  describe('as a bounded queue', () => {
    const full = (): AdmissionBench => account({ maxWaiting: 2 }, { maxInFlight: 1 });

    it('refuses those that come when too many wait', () => {
      const bench = full();
      bench.take();
      bench.join();
      bench.join({ model: 'n' });
      expect(bench.refusal()).to.deep.equal({
        kind: 'refused',
        code: 'queue_full',
        retryAfterMs: 60_000,
        limit: 2,
        requested: undefined,
        unit: 'requests',
      });
    });

    it('takes what has room at once, however many wait', () => {
      const bench = account({ maxWaiting: 1 }, { models: { n: { concurrency: { limit: 1 } } } });
      bench.take({ model: 'n' });
      bench.join({ model: 'n' });
      expect(bench.refusal({ model: 'n' }).code).to.equal('queue_full');
      expect(bench.ask()).to.include({ kind: 'ticket' });
    });

    it('makes room for what is more urgent: the youngest of the least urgent goes', () => {
      const bench = account({ maxWaiting: 3 }, { maxInFlight: 1, priorities: { order: ['high', 'middle', 'low'] } });
      bench.take();
      const [middle, low, younger] = [
        bench.join({ priority: 'middle' }),
        bench.join({ priority: 'low' }),
        bench.join({ priority: 'low', model: 'n' }),
      ];
      expect(bench.refusal({ priority: 'low' }).code).to.equal('queue_full');
      bench.join({ priority: 'high' });
      expect(bench.machine.waiting).to.equal(3);
      // Of each model the youngest; the first model that has one.
      const { refused } = bench.serve();
      expect(refused).to.deep.equal([[low, 'queue_full']]);
      bench.join({ priority: 'high' });
      expect(bench.serve().refused).to.deep.equal([[younger, 'queue_full']]);
      bench.join({ priority: 'high' });
      expect(bench.serve().refused).to.deep.equal([[middle, 'queue_full']]);
      expect(bench.refusal({ priority: 'high' }).code).to.equal('queue_full');
      expect(bench.machine.waiting).to.equal(3);
    });

    it('says how long to stay away to one that made room', () => {
      const bench = account({ maxWaiting: 1 }, { maxInFlight: 1 });
      bench.take();
      bench.join({ priority: 'batch' });
      bench.join();
      const step = bench.machine.next();
      if (step.kind !== 'refused') return expect.fail(step.kind);
      expect(step.refusal).to.include({ code: 'queue_full', limit: 1, retryAfterMs: 60_000 });
      expect(step.changes).to.deep.equal([]);
    });
  });
});
