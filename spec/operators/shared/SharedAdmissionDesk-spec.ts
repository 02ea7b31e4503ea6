import { expect } from 'chai';
import type { Subscription } from 'rxjs';
import { SluiceError } from '../../../lib/core/errors.ts';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import type { Outcome } from '../../../lib/core/outcome.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import { createSharedAdmission } from '../../../lib/operators/shared/createSharedAdmission.ts';
import type { SharedAdmission } from '../../../lib/operators/shared/createSharedAdmission.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { callNow } from '../../helpers/admissionLoad.ts';
import type { LoadCall, Started } from '../../helpers/admissionLoad.ts';
import { FakeStore } from '../../helpers/fakeStore.ts';
import { hintsOf } from '../../helpers/hintsOf.ts';

const failure = (code: ConstructorParameters<typeof SluiceError>[0], fields = {}): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'it failed', fields),
});
const held = { takesMs: Infinity };
const bad = failure('server_error', { status: 500 });

describe('SharedAdmissionDesk', () => {
  let runtime: VirtualRuntime;
  let store: FakeStore;
  let admission: SharedAdmission;

  function start(options: AdmissionOptions, latencyMs = 1): void {
    runtime = virtualRuntime();
    store = new FakeStore(runtime, latencyMs);
    admission = createSharedAdmission(options, store.connect(), runtime);
  }
  const call = (load: LoadCall = {}): Started => callNow(admission, runtime, load);
  const errorOf = ({ error }: Started): SluiceError | undefined => error as SluiceError | undefined;
  const codeOf = (started: Started): string | undefined => errorOf(started)?.code;

  it('refuses one that has waited for a slot as long as it may', () => {
    start({ maxInFlight: 1 });
    const first = call(held);
    const second = call({ maxWaitMs: 500 });
    runtime.advance(499);
    expect(codeOf(second)).to.equal(undefined);
    runtime.advance(2);
    expect(errorOf(second)).to.include({ code: 'queue_timeout', model: 'm', while: 'queue' });
    expect(store.held).to.deep.equal({ grants: 0, places: 0 });
    first.admitted?.release(SUCCESS);
    runtime.advance(10);
    expect(runtime.pending).to.equal(0);
  });

  it('goes on at once where one that had to make room has left before it could be told', () => {
    start({ maxInFlight: 1, quota: { account: { maxWaiting: 1 } }, priorities: { order: ['urgent', 'batch'] } }, 0);
    const first = call(held);
    // Those who wait for an answer of the store do not count: more than one have room.
    const batch = Array.from({ length: 64 }, () => call({ ...held, priority: 'batch' }));
    const urgent: Started[] = [];
    // Within the tick of a grant, while nobody else can be told of anything.
    const makesRoom = admission
      .acquire({ model: 'm', priority: 'urgent', cost: { requests: 1, tokens: 0, explicit: true } })
      .subscribe((admitted) => {
        urgent.push(call({ ...held, priority: 'urgent' }), call({ ...held, priority: 'urgent' }));
        for (const { subscription } of batch) subscription.unsubscribe();
        admitted.release(SUCCESS);
      });
    first.admitted?.release(SUCCESS);
    expect(makesRoom.closed).to.equal(true);
    expect(urgent[0]?.startedAtMs).to.equal(0);
    expect(batch.map(codeOf).filter((code) => code !== undefined)).to.deep.equal(['queue_full']);
    expect(admission.snapshot()).to.deep.include({ inFlight: 1, waiting: 1 });
  });

  it('takes no notice of a listener that throws', () => {
    start({ models: { m: { concurrency: { initial: 4, min: 1, max: 4 } } } });
    const limits: number[] = [];
    const first = call({
      ...held,
      onFact: (fact) => {
        if (fact.type === 'limit.changed') limits.push(fact.to);
        throw new Error('of the listener');
      },
    });
    runtime.advance(10);
    first.admitted?.release(failure('rate_limited', { status: 429, retryAfterMs: 5 }));
    expect(limits).to.have.length(1);
    expect(admission.snapshot().inFlight).to.equal(0);
  });

  it('gives back what was granted to one that a listener has unsubscribed meanwhile', () => {
    start({ models: { m: { breaker: { consecutiveFailures: 1, openMs: 1000, halfOpenShare: 1 } } } }, 0);
    call({ outcome: bad });
    runtime.advance(1000);
    let leaving: Subscription | undefined;
    const unheard = { next: () => expect.fail('nobody is there to get it') };
    const asked = admission.acquire({
      model: 'm',
      cost: { requests: 1, tokens: 0, explicit: true },
      maxWaitMs: 60_000,
      onFact: (fact) => {
        if (fact.type === 'breaker.changed' && fact.to === 'half_open') leaving?.unsubscribe();
      },
    });
    // A probe is let through only once the one before it is over: it is granted within this subscription.
    admission.acquire({ model: 'n', cost: { requests: 1, tokens: 0, explicit: true } }).subscribe((other) => {
      leaving = asked.subscribe(unheard);
      other.release(SUCCESS);
    });
    expect(leaving?.closed).to.equal(true);
    expect(admission.snapshot()).to.deep.include({ inFlight: 0, waiting: 0 });
    const next = call();
    expect(next.startedAtMs, 'the place of the probe is free').to.equal(1000);
  });

  it('sends one on that a breaker refuses which others probe, and leaves that deployment alone for a while', () => {
    start({
      models: {
        m: {
          breaker: { consecutiveFailures: 1, openMs: 1000, halfOpenShare: 1, halfOpenMaxProbes: 1 },
          deployments: [{ client: 'main' }, { client: 'other' }],
        },
      },
    });
    const where = (started: Started): string | undefined => started.admitted?.deployment.client;
    const calls: Started[] = [];
    const next = (): string | undefined => {
      const started = call(held);
      runtime.advance(5);
      calls.push(started);
      return where(started);
    };
    // As many at both, so that the first one is next.
    expect(next()).to.equal('main');
    calls[0]?.admitted?.release(bad);
    runtime.advance(1000);
    expect(next(), 'a probe').to.equal('main');
    for (const busy of ['other', 'other']) expect(next()).to.equal(busy);
    const { asked } = store;
    expect(next()).to.equal('other');
    expect(store.asked - asked, 'the breaker of the other one only').to.equal(1);
  });

  it('refuses those who wait and those who come where the store is lost and nothing may go', () => {
    start({ maxInFlight: 1 });
    const first = call(held);
    const waiting = call(held);
    runtime.advance(50);
    store.refuse('TIMEOUT');
    expect(errorOf(waiting)).to.include({ code: 'limiter_unavailable', model: 'm', while: 'queue' });
    expect(errorOf(waiting)?.message).to.include('TIMEOUT');
    expect(errorOf(call(held))).to.include({ code: 'limiter_unavailable', model: 'm', while: 'entry' });
    store.refuse(undefined);
    first.admitted?.release(SUCCESS);
    const later = call(held);
    runtime.advance(50);
    expect(later.startedAtMs).to.not.equal(undefined);
  });

  it('says how many tokens are reserved', () => {
    start({ quota: { account: { tokensPerMinute: 6000 } } });
    const one = call({ ...held, tokens: 700 });
    runtime.advance(10);
    expect(one.admitted?.reservedTokens).to.equal(700);
  });

  it('believes the provider in what is left, with a quota in the store and without one', () => {
    const hints = hintsOf({ requests: { limit: 60, remaining: 0, resetMs: 1000, windowMs: 60_000 } });
    start({
      quota: { account: { requestsPerMinute: 60, burstRequests: 10, arrivalMarginMs: 0, maxWaitMs: Infinity } },
    });
    const first = call(held);
    runtime.advance(5);
    first.admitted?.observe(hints);
    const second = call();
    runtime.advance(500);
    expect(second.startedAtMs).to.equal(undefined);
    runtime.advance(700);
    expect(second.startedAtMs).to.be.within(900, 1100);

    start({});
    const free = call(held);
    runtime.advance(5);
    free.admitted?.observe({ ...hints, retryAfterMs: 2000 });
    const paused = call();
    runtime.advance(1900);
    expect(paused.startedAtMs).to.equal(undefined);
    runtime.advance(1000);
    expect(paused.startedAtMs).to.be.within(2000, 2900);
  });

  describe('of many tenants', () => {
    const MANY = 1100;
    const names = Array.from({ length: MANY }, (_, i) => `t${i}`);

    it('keeps the ceilings of those only that have something waiting or in flight', () => {
      const maxInFlight = 1;
      start({ tenants: Object.fromEntries(['busy', 'waits', ...names].map((name) => [name, { maxInFlight }])) }, 0);
      const busy = call({ ...held, tenant: 'busy' });
      call({ ...held, tenant: 'waits' });
      const waits = call({ ...held, tenant: 'waits' });
      for (const tenant of names) expect(call({ tenant }).startedAtMs).to.equal(0);
      expect(store.leases).to.be.within(3, 200);
      const second = call({ ...held, tenant: 'busy' });
      expect([second.startedAtMs, waits.startedAtMs]).to.deep.equal([undefined, undefined]);
      busy.admitted?.release(SUCCESS);
      expect(second.startedAtMs).to.equal(0);
    });

    it('gives back what is lent to a tenant that is forgotten', () => {
      start({ tenants: { acme: { maxInFlight: 1 } }, maxInFlight: 2 }, 0);
      call({ tenant: 'acme' });
      const { leases } = store;
      for (const tenant of names) call({ tenant });
      store.refuse(undefined);
      expect(store.leases).to.equal(leases - 1);
    });

    it('keeps the turn of a tenant that waits for a quota of its own', () => {
      start(
        { tenants: { acme: { requestsPerMinute: 60, burstRequests: 1 } }, quota: { account: { maxWaitMs: Infinity } } },
        0,
      );
      call({ tenant: 'acme' });
      const waiting = [call({ tenant: 'acme' }), call({ tenant: 'acme' })];
      names.forEach((tenant, i) => expect(call({ tenant }).startedAtMs, String(i)).to.equal(0));
      const last = call({ tenant: 'acme' });
      runtime.advance(10_000);
      const seconds = [...waiting, last].map(({ startedAtMs = NaN }) => Math.round(startedAtMs / 1000));
      expect(seconds).to.deep.equal([1, 2, 3]);
      expect(store.held).to.deep.equal({ grants: 0, places: 0 });
    });
  });

  for (const account of [{}, { requestsPerMinute: 60_000, burstRequests: 100 }]) {
    const what = account.requestsPerMinute === undefined ? 'no other quota' : 'a quota of all';
    it(`lets nobody wait behind a tenant that is at a quota of its own, under ${what}`, () => {
      start({
        tenants: {
          acme: { requestsPerMinute: 60, burstRequests: 1 },
          bolt: { requestsPerMinute: 6000, burstRequests: 9 },
        },
        quota: { account: { ...account, maxWaitMs: Infinity, arrivalMarginMs: 0 } },
      });
      call({ tenant: 'acme' });
      runtime.advance(5);
      const own = [call({ tenant: 'acme' }), call({ tenant: 'acme', tokens: 9000 })];
      runtime.advance(95);
      const others = ['bolt', 'corp', 'dune', undefined].map((tenant) => call({ tenant }));
      runtime.advance(10);
      for (const { startedAtMs } of others) expect(startedAtMs).to.be.within(100, 105);
      runtime.advance(3000);
      expect(own.map(({ startedAtMs = NaN }) => Math.round(startedAtMs / 1000))).to.deep.equal([1, 2]);
      expect(store.held).to.deep.equal({ grants: 0, places: 0 });
      expect(runtime.pending).to.equal(0);
    });
  }

  it('takes another ceiling of a tenant, higher, lower or none', () => {
    const tenants = (maxInFlight?: number): AdmissionOptions => ({ tenants: { acme: { maxInFlight } } });
    start(tenants(1));
    const calls = Array.from({ length: 6 }, () => call({ ...held, tenant: 'acme' }));
    const open = (): number => calls.filter(({ admitted }) => admitted).length;
    runtime.advance(50);
    expect(open()).to.equal(1);
    admission.reload(tenants(3));
    runtime.advance(50);
    expect(open()).to.equal(3);
    admission.reload(tenants(2));
    for (const { admitted } of calls.slice(0, 2)) admitted?.release(SUCCESS);
    runtime.advance(50);
    expect(open(), 'one of three is in flight, and one more may be').to.equal(4);
    admission.reload(tenants());
    runtime.advance(50);
    expect(open()).to.equal(6);
    expect(store.leases).to.equal(0);
  });
});
