import { expect } from 'chai';
import { SluiceError } from '../../../lib/core/errors.ts';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import type { Outcome } from '../../../lib/core/outcome.ts';
import type { AdmissionPort } from '../../../lib/core/ports.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import { createAdmission } from '../../../lib/operators/createAdmission.ts';
import { createSharedAdmission } from '../../../lib/operators/shared/createSharedAdmission.ts';
import type { SharedAdmission } from '../../../lib/operators/shared/createSharedAdmission.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { callNow } from '../../helpers/admissionLoad.ts';
import type { LoadCall, Started } from '../../helpers/admissionLoad.ts';
import { FakeStore } from '../../helpers/fakeStore.ts';

const failure = (code: ConstructorParameters<typeof SluiceError>[0], fields = {}): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'it failed', fields),
});
const held = { takesMs: Infinity };

describe('createSharedAdmission', () => {
  let runtime: VirtualRuntime;
  let store: FakeStore;
  let processes: SharedAdmission[];

  function start(options: AdmissionOptions, { count = 2, latencyMs = 1 } = {}): void {
    runtime = virtualRuntime();
    store = new FakeStore(runtime, latencyMs);
    processes = Array.from({ length: count }, () => createSharedAdmission(options, store.connect(), runtime));
  }
  const at = (process: number): SharedAdmission => processes[process] as SharedAdmission;
  const call = (process: number, load: LoadCall = {}): Started => callNow(at(process), runtime, load);
  const startsOf = (calls: readonly Started[]): (number | undefined)[] => calls.map((each) => each.startedAtMs);
  /** How many of the calls had started at a time. */
  const by = (calls: readonly Started[], ms: number): number =>
    calls.filter(({ startedAtMs = Infinity }) => startedAtMs <= ms).length;
  const codeOf = ({ error }: Started): string | undefined => (error as SluiceError | undefined)?.code;
  const nothingLeft = (): void => {
    runtime.run(600_000);
    expect(store.held).to.deep.equal({ grants: 0, places: 0 });
    for (const process of processes) expect(process.snapshot()).to.deep.include({ inFlight: 0, waiting: 0 });
    expect(runtime.pending).to.equal(0);
  };

  describe('quota', () => {
    const quota = { account: { requestsPerMinute: 60, burstRequests: 4, arrivalMarginMs: 0, maxWaitMs: Infinity } };

    it('is one for all processes, in the order in which their calls came', () => {
      start({ quota });
      const calls = Array.from({ length: 8 }, (_, i) => call(i % 2));
      runtime.advance(10);
      expect(by(calls, 10)).to.equal(4);
      runtime.advance(4000);
      expect(startsOf(calls)).to.deep.equal([2, 2, 2, 2, 1002, 2002, 3002, 4002]);
      nothingLeft();
    });

    it('asks once for each call that finds room', () => {
      start({ quota });
      for (let i = 0; i < 4; i++) call(0);
      runtime.advance(10);
      // The pass of the breaker is the other one.
      expect(store.asked).to.equal(8);
    });

    it('goes to whoever is next here, as without a store', () => {
      const options = { quota: { account: { ...quota.account, burstRequests: 1 } } };
      const order = (make: () => AdmissionPort): readonly (string | undefined)[] => {
        const admission = make();
        const started: string[] = [];
        const ask = (tenant: string, priority?: string): void => {
          admission
            .acquire({ model: 'm', tenant, priority, cost: { requests: 1, tokens: 0, explicit: true } })
            .subscribe((each) => {
              started.push(tenant + (priority ?? ''));
              each.release(SUCCESS);
            });
        };
        ask('first');
        runtime.advance(10);
        for (let i = 0; i < 6; i++) ask('flood');
        ask('quiet', 'batch');
        for (const tenant of ['quiet', 'quiet', 'other']) ask(tenant);
        runtime.run(60_000);
        return started;
      };
      start(options, { count: 1 });
      const shared = order(() => at(0));
      const local = order(() => createAdmission(options, (runtime = virtualRuntime())));
      expect(shared).to.deep.equal(local);
      expect(shared).to.have.length(11);
      expect(shared.slice(1, 5)).to.include.members(['flood', 'quiet', 'other']);
      expect(shared.at(-1)).to.equal('quietbatch');
    });

    it('goes back at once where the one that waited has left', () => {
      start({ quota: { account: { ...quota.account, burstRequests: 1 } } });
      call(0);
      const left = call(0);
      const other = call(1);
      runtime.advance(10);
      left.subscription.unsubscribe();
      runtime.advance(1000);
      expect(other.startedAtMs).to.be.within(1001, 1002);
      nothingLeft();
    });

    it('takes the place of one that is granted another one’s turn', () => {
      start({ quota: { account: { ...quota.account, burstRequests: 1 } } }, { count: 1 });
      call(0);
      runtime.advance(5);
      const asked = store.asked;
      const first = call(0, { priority: 'batch' });
      runtime.advance(5);
      const urgent = call(0);
      runtime.advance(2500);
      expect([urgent, first].map(({ startedAtMs = 0 }) => Math.round(startedAtMs / 1000))).to.deep.equal([1, 2]);
      // Two places and two passes: nobody asked anew.
      expect(store.asked - asked).to.equal(4);
    });

    it('never exceeds the tokens, whoever goes by whose place', () => {
      start({
        quota: { account: { tokensPerMinute: 60_000, burstTokens: 3000, arrivalMarginMs: 0, maxWaitMs: Infinity } },
      });
      const sent: { readonly atMs: number; readonly tokens: number }[] = [];
      const calls = Array.from({ length: 60 }, (_, i) => {
        const tokens = 200 + ((i * 7919) % 1500);
        const started = call(i % 2, { tokens, tenant: `t${i % 3}`, guessed: true });
        return { started, tokens };
      });
      runtime.run(600_000);
      for (const { started, tokens } of calls) sent.push({ atMs: started.startedAtMs ?? NaN, tokens });
      sent.sort((a, b) => a.atMs - b.atMs);
      let level = 3000;
      let atMs = 0;
      for (const each of sent) {
        level = Math.min(3000, level + (each.atMs - atMs));
        atMs = each.atMs;
        level -= each.tokens;
        expect(level).to.be.at.least(-1);
      }
      nothingLeft();
    });

    it('refuses what can never pass, and what is known not to pass in time', () => {
      start({
        quota: { account: { requestsPerMinute: 60, burstRequests: 1, tokensPerMinute: 1000, maxWaitMs: 5000 } },
      });
      call(0);
      const large = call(0, { tokens: 2000 });
      const calls = Array.from({ length: 8 }, () => call(1));
      const brief = call(0, { maxWaitMs: 0 });
      const late = call(0, { deadlineAtMs: 500 });
      runtime.advance(10);
      expect([large, brief, late].map(codeOf)).to.deep.equal(['cost_too_large', 'queue_timeout', 'timeout_deadline']);
      expect(calls.filter((each) => codeOf(each) === 'queue_timeout').length).to.be.within(2, 4);
      runtime.run(60_000);
      nothingLeft();
    });

    it('grants a call that may not wait, where there is room', () => {
      start({ quota });
      const calls = Array.from({ length: 5 }, () => call(0, { maxWaitMs: 0 }));
      runtime.advance(300);
      expect(by(calls, 10)).to.equal(4);
      expect(codeOf(calls[4] as Started)).to.equal('queue_timeout');
    });

    it('of a tenant holds over all processes', () => {
      start({ tenants: { acme: { requestsPerMinute: 60, burstRequests: 2 } } });
      const calls = Array.from({ length: 4 }, (_, i) => call(i % 2, { tenant: 'acme' }));
      const other = call(0, { tenant: 'other' });
      runtime.advance(500);
      expect(by(calls, 500)).to.equal(2);
      expect(other.startedAtMs, 'asks the store for its breaker only').to.equal(1);
      nothingLeft();
    });

    it('pauses for all processes where a provider asks for that, and for that deployment only', () => {
      start({ quota, models: { m: {}, n: {} } });
      const told: number[] = [];
      const first = call(0, { ...held, onCooldown: (waitMs) => void told.push(waitMs) });
      runtime.advance(10);
      first.admitted?.release(failure('rate_limited', { retryAfterMs: 3000, status: 429 }));
      runtime.advance(10);
      const paused = [call(0), call(1)];
      const other = call(1, { model: 'n' });
      runtime.advance(2000);
      expect(startsOf(paused)).to.deep.equal([undefined, undefined]);
      expect(other.startedAtMs).to.be.lessThan(100);
      expect(told).to.have.length(1);
      expect(at(0).snapshot().models['m']?.deployments[0]?.cooldownMs).to.be.within(1000, 1400);
      nothingLeft();
    });

    it('settles what was used, and gives back what was not', () => {
      start({
        quota: { account: { tokensPerMinute: 60_000, burstTokens: 1000, arrivalMarginMs: 0, settle: 'usage' } },
      });
      const settled: unknown[] = [];
      const first = call(0, { ...held, tokens: 1000, onSettled: (each) => void settled.push(each) });
      runtime.advance(5);
      first.admitted?.settle({ inputTokens: 100, outputTokens: 100, totalTokens: 200 } as never);
      first.admitted?.release(SUCCESS);
      const next = call(1, { tokens: 800 });
      runtime.advance(10);
      expect(next.startedAtMs).to.be.lessThan(10);
      expect(settled).to.deep.equal([{ reservedTokens: 1000, usedTokens: 200, refundedTokens: 800 }]);
      nothingLeft();
    });
  });

  describe('several deployments', () => {
    const deployments = [
      { client: 'main', quota: { requestsPerMinute: 60, burstRequests: 2, arrivalMarginMs: 0 } },
      { client: 'other', quota: { requestsPerMinute: 60, burstRequests: 2, arrivalMarginMs: 0 } },
    ];
    const where = (calls: readonly Started[]): Record<string, number> => {
      const counts: Record<string, number> = {};
      for (const { admitted } of calls) {
        if (admitted) counts[admitted.deployment.client] = (counts[admitted.deployment.client] ?? 0) + 1;
      }
      return counts;
    };

    it('are asked where the wait is shortest, and a place at another one is given up', () => {
      start({ models: { m: { deployments } }, quota: { account: { maxWaitMs: Infinity } } });
      const calls = Array.from({ length: 12 }, (_, i) => call(i % 2));
      runtime.advance(20);
      expect(by(calls, 20)).to.equal(4);
      expect(where(calls)).to.deep.equal({ main: 2, other: 2 });
      runtime.advance(4100);
      expect(by(calls, 4200)).to.equal(12);
      expect(where(calls)).to.deep.equal({ main: 6, other: 6 });
      nothingLeft();
    });
  });

  describe('breaker', () => {
    const models = { m: { breaker: { consecutiveFailures: 2, openMs: 1000, rampMs: 0 } } };

    it('is one for all processes, and refuses at once', () => {
      start({ models });
      for (let i = 0; i < 2; i++) {
        call(0, { outcome: failure('server_error', { status: 500 }) });
        runtime.advance(5);
      }
      const refused = call(1);
      expect(codeOf(refused)).to.equal('circuit_open');
      expect((refused.error as SluiceError).retryAfterMs).to.be.within(900, 1000);
      expect(at(1).snapshot().models['m']?.deployments[0]?.breaker.state).to.equal('open');
      nothingLeft();
    });

    it('lets nothing be said of settling what nobody was granted, as it refused or the caller left meanwhile', () => {
      start({ models, quota: { account: { requestsPerMinute: 6000, burstRequests: 50 } } }, { latencyMs: 5 });
      const settled: unknown[] = [];
      const ask = {
        model: 'm',
        cost: { requests: 1, tokens: 10, explicit: true },
        onSettled: (each: unknown) => void settled.push(each),
      };
      const leaves = at(0).acquire(ask).subscribe();
      runtime.advance(7);
      expect(at(0).snapshot().inFlight, 'granted, but for the breaker').to.equal(1);
      leaves.unsubscribe();
      runtime.advance(100);
      for (let i = 0; i < 2; i++) call(0, { outcome: failure('server_error', { status: 500 }) });
      runtime.advance(100);
      let code: unknown;
      at(0)
        .acquire(ask)
        .subscribe({ error: (error: SluiceError) => (code = error.code) });
      runtime.advance(100);
      expect([code, settled]).to.deep.equal(['circuit_open', []]);
      nothingLeft();
    });

    it('lets one probe for all, and gives back what its quota had granted to those it refuses', () => {
      start({ models, quota: { account: { requestsPerMinute: 6000 } } });
      for (let i = 0; i < 2; i++) {
        call(0, { outcome: failure('server_error', { status: 500 }) });
        runtime.advance(5);
      }
      runtime.advance(1000);
      const calls = Array.from({ length: 4 }, (_, i) => call(i % 2, held));
      runtime.advance(50);
      expect(calls.filter(({ admitted }) => admitted)).to.have.length(1);
      expect(calls.filter((each) => codeOf(each) === 'circuit_open')).to.have.length(3);
      for (const { admitted } of calls) admitted?.release(SUCCESS);
      nothingLeft();
    });

    it('sends a call on to another deployment', () => {
      start({
        models: {
          m: { ...models.m, deployments: [{ client: 'main' }, { client: 'other' }] },
        },
      });
      const bad = failure('server_error', { status: 500 });
      const deployments: string[] = [];
      for (let i = 0; i < 8; i++) {
        const each = call(0, held);
        runtime.advance(5);
        const { client = '' } = each.admitted?.deployment ?? {};
        deployments.push(client);
        each.admitted?.release(client === 'main' ? bad : SUCCESS);
        runtime.advance(5);
      }
      expect(deployments.filter((client) => client === 'main')).to.have.length(2);
      expect(deployments.slice(-3)).to.deep.equal(['other', 'other', 'other']);
      nothingLeft();
    });

    it('tells a call once that it waits, also where it is sent on to another deployment', () => {
      start({
        quota: { account: { requestsPerMinute: 60, burstRequests: 4, arrivalMarginMs: 0, maxWaitMs: Infinity } },
        models: {
          m: {
            breaker: { ...models.m.breaker, openMs: 100_000 },
            deployments: [{ client: 'main' }, { client: 'other' }],
          },
        },
      });
      const others = Array.from({ length: 4 }, () => call(1, held));
      runtime.advance(10);
      const told = [0, 0, 0, 0];
      const calls = told.map((_, i) => call(0, { ...held, onQueued: () => void (told[i] = (told[i] ?? 0) + 1) }));
      runtime.advance(100);
      // Only now does it break.
      for (const { admitted } of others) {
        const isMain = admitted?.deployment.client === 'main';
        admitted?.release(isMain ? failure('server_error', { status: 500 }) : SUCCESS);
      }
      runtime.advance(20_000);
      expect(calls.map(({ admitted }) => admitted?.deployment.client)).to.deep.equal(Array(4).fill('other'));
      expect(told).to.deep.equal([1, 1, 1, 1]);
      for (const { admitted } of calls) admitted?.release(SUCCESS);
      nothingLeft();
    });
  });

  describe('ceilings', () => {
    for (const [what, options] of [
      ['of all calls', { maxInFlight: 3 }],
      ['of a tenant', { tenants: { acme: { maxInFlight: 3 } } }],
      ['of a priority', { priorities: { order: ['now'], levels: { now: { maxInFlight: 3 } } } }],
      ['of a deployment', { models: { m: { concurrency: { limit: 3 } } } }],
    ] as [string, AdmissionOptions][]) {
      for (const quota of [undefined, { account: { requestsPerMinute: 60_000, maxWaitMs: Infinity } }]) {
        it(`${what} hold over all processes ${quota ? 'with' : 'without'} a quota`, () => {
          start({ ...options, ...(quota && { quota }) }, { count: 3 });
          const calls = Array.from({ length: 9 }, (_, i) => call(i % 3, { tenant: 'acme', takesMs: 1000 }));
          runtime.advance(500);
          expect(calls.filter(({ admitted }) => admitted)).to.have.length(3);
          runtime.advance(1000);
          expect(calls.filter(({ admitted }) => admitted)).to.have.length(6);
          runtime.advance(1000);
          expect(calls.filter(({ admitted }) => admitted)).to.have.length(9);
          nothingLeft();
        });
      }
    }

    it('takes no quota before there is a slot', () => {
      start({ maxInFlight: 1, quota: { account: { requestsPerMinute: 60, burstRequests: 5, maxWaitMs: Infinity } } });
      const first = call(0, held);
      call(0, held);
      runtime.advance(100);
      expect(store.held).to.deep.equal({ grants: 1, places: 0 });
      first.admitted?.release(SUCCESS);
      runtime.advance(10);
      expect(store.held).to.deep.equal({ grants: 1, places: 0 });
    });

    it('adapts a limit that finds its size in each process', () => {
      start({ models: { m: { concurrency: { initial: 2, max: 2, min: 1 } } } });
      const calls = Array.from({ length: 8 }, (_, i) => call(i % 2, held));
      runtime.advance(50);
      expect(calls.filter(({ admitted }) => admitted)).to.have.length(4);
    });
  });

  describe('queued', () => {
    it('is told where the store lets one wait, or a ceiling does, but not for an answer', () => {
      start({ maxInFlight: 2, quota: { account: { requestsPerMinute: 60, burstRequests: 1, arrivalMarginMs: 0 } } });
      const told: [string, number, number | undefined][] = [];
      const onQueued =
        (name: string) =>
        (position: number, waitMs: number | undefined): void =>
          void told.push([name, position, waitMs]);
      call(0, { ...held, onQueued: onQueued('first') });
      call(0, { ...held, onQueued: onQueued('second') });
      call(0, { ...held, onQueued: onQueued('third') });
      runtime.advance(50);
      expect(told.map(([name]) => name).sort()).to.deep.equal(['second', 'third']);
      expect(told.find(([name]) => name === 'second')?.[2]).to.be.within(900, 1000);
    });
  });

  describe('reload', () => {
    it('brings new rates to the store, and those who wait keep their places', () => {
      start({
        quota: { account: { requestsPerMinute: 6, burstRequests: 1, arrivalMarginMs: 0, maxWaitMs: Infinity } },
      });
      call(0);
      runtime.advance(10);
      const calls = [call(0), call(1), call(0)];
      runtime.advance(10);
      for (const process of processes) {
        process.reload({
          quota: { account: { requestsPerMinute: 60, burstRequests: 1, arrivalMarginMs: 0, maxWaitMs: Infinity } },
        });
      }
      runtime.advance(4000);
      const starts = startsOf(calls).map((atMs = Infinity) => atMs);
      expect(starts).to.deep.equal([...starts].sort((a, b) => a - b));
      expect(starts[2]).to.be.lessThan(3100);
      nothingLeft();
    });

    it('asks anew where a quota has come, or is gone', () => {
      start({ quota: { account: { requestsPerMinute: 6, burstRequests: 1, maxWaitMs: Infinity } } }, { count: 1 });
      call(0);
      runtime.advance(10);
      const waiting = call(0, { tokens: 10 });
      runtime.advance(10);
      at(0).reload({ quota: { account: { tokensPerMinute: 60_000, maxWaitMs: Infinity } } });
      runtime.advance(10);
      expect(waiting.startedAtMs).to.be.lessThan(40);
      at(0).reload({});
      const free = call(0);
      runtime.advance(10);
      expect(free.startedAtMs).to.be.lessThan(60);
      nothingLeft();
    });

    it('counts what is in flight already under a ceiling that comes, in the other processes too', () => {
      start({});
      const before = Array.from({ length: 3 }, () => call(0, { ...held, tenant: 'acme' }));
      runtime.advance(10);
      for (const process of processes) process.reload({ tenants: { acme: { maxInFlight: 3 } } });
      runtime.advance(10);
      const after = [call(1, { ...held, tenant: 'acme' }), call(1, { ...held, tenant: 'acme' })];
      runtime.advance(100);
      expect(startsOf(after)).to.deep.equal([undefined, undefined]);
      before[0]?.admitted?.release(SUCCESS);
      runtime.advance(100);
      expect(after.filter(({ admitted }) => admitted)).to.have.length(1);
    });

    it('lets none that wait already go by a ceiling that comes before the store has said so', () => {
      const tenants = { acme: { maxInFlight: 1 } };
      start({ maxInFlight: 1 });
      const first = call(0, held);
      runtime.advance(10);
      const waiting = [call(0, { ...held, tenant: 'acme' }), call(0, { ...held, tenant: 'acme' })];
      at(1).reload({ tenants });
      call(1, { ...held, tenant: 'acme' });
      runtime.advance(10);
      at(0).reload({ tenants });
      runtime.advance(100);
      expect(startsOf(waiting)).to.deep.equal([undefined, undefined]);
      first.admitted?.release(SUCCESS);
      runtime.advance(100);
      expect(startsOf(waiting)).to.deep.equal([undefined, undefined]);
    });

    it('changes nothing where an option is wrong', () => {
      start({ maxInFlight: 2 });
      expect(() => at(0).reload({ maxInFlight: 0 })).to.throw('maxInFlight');
      const calls = Array.from({ length: 3 }, () => call(0, held));
      runtime.advance(10);
      expect(calls.filter(({ admitted }) => admitted)).to.have.length(2);
    });
  });

  it('leaves a deployment alone that has run out', () => {
    start({ models: { m: { deployments: [{ client: 'main' }, { client: 'other' }] } } });
    at(0).exhausted('m', 'm@main', 60_000);
    const calls = [call(0, held), call(0, held)];
    runtime.advance(10);
    expect(calls.map(({ admitted }) => admitted?.deployment.client)).to.deep.equal(['other', 'other']);
  });

  it('gives back what the store has lent when it is closed', () => {
    start({ maxInFlight: 1 });
    const first = call(0);
    runtime.advance(5);
    expect(first.startedAtMs).to.not.equal(undefined);
    at(0).close();
    const other = call(1);
    runtime.advance(5);
    expect(other.startedAtMs).to.not.equal(undefined);
  });
});
