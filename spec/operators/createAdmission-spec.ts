import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceFact } from '../../lib/core/events.ts';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { callNow } from '../helpers/admissionLoad.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const failure = (code: ConstructorParameters<typeof SluiceError>[0], fields = {}): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'it failed', fields),
});
const held = { takesMs: Infinity };

describe('createAdmission', () => {
  it('grants at once what has room, and gives the slot back at the release', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const first = callNow(admission, runtime, { ...held, tenant: 'a' });
    const second = callNow(admission, runtime, held);
    expect([first.startedAtMs, second.startedAtMs]).to.deep.equal([0, undefined]);
    expect(admission.snapshot()).to.deep.include({
      inFlight: 1,
      waiting: 1,
      tenants: { a: { inFlight: 1, waiting: 0 }, '': { inFlight: 0, waiting: 1 } },
    });
    first.admitted?.end(SUCCESS);
    expect(second.startedAtMs).to.equal(undefined);
    first.admitted?.release(SUCCESS);
    expect(second.startedAtMs).to.equal(0);
    second.admitted?.release(SUCCESS);
    second.admitted?.release(SUCCESS);
    expect(admission.snapshot().inFlight).to.equal(0);
    expect(runtime.pending).to.equal(0);
  });

  it('takes other options in place: who has room by them goes in the same tick, and the one timer follows', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ quota: { account: { requestsPerMinute: 1, maxWaitMs: Infinity } } }, runtime);
    callNow(admission, runtime);
    const waiting = [callNow(admission, runtime), callNow(admission, runtime)];
    runtime.advance(1000);
    admission.reload({ quota: { account: { requestsPerMinute: 60, maxWaitMs: Infinity } } });
    expect(waiting.map(({ startedAtMs }) => startedAtMs)).to.deep.equal([undefined, undefined]);
    runtime.advance(1000);
    expect(waiting[0]?.startedAtMs).to.be.within(1900, 2000);
    expect(waiting[1]?.startedAtMs).to.equal(undefined);
    admission.reload({});
    expect(waiting[1]?.startedAtMs).to.equal(2000);
    expect(runtime.pending).to.equal(0);
    expect(() => admission.reload({ maxInFlight: 0 })).to.throw('maxInFlight');
  });

  for (const { named, granted } of [
    { named: 3000, granted: 49 },
    { named: 6000, granted: 49 },
    { named: 1200, granted: 10 },
  ]) {
    it(`grants ${granted} more of a burst of 50 where the provider names ${named} a minute and 3,000 are configured`, () => {
      const runtime = virtualRuntime();
      const account = { requestsPerMinute: 3000, burstRequests: 50, arrivalMarginMs: 0 };
      const admission = createAdmission({ quota: { account } }, runtime);
      const first = callNow(admission, runtime, held).admitted;
      const requests = { limit: named, remaining: 49, resetMs: undefined, windowMs: 60_000 };
      first?.observe(hintsOf({ requests }));
      const calls = Array.from({ length: 60 }, () => callNow(admission, runtime, held));
      expect(calls.filter(({ startedAtMs }) => startedAtMs !== undefined)).to.have.length(granted);
      runtime.run();
    });
  }

  it('keeps no timer for the rate of a tenant that nobody waits for any more', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ tenants: { a: { requestsPerMinute: 1 } } }, runtime);
    const ask = { model: 'm', tenant: 'a', cost: { requests: 1, tokens: 0, explicit: true }, maxWaitMs: Infinity };
    callNow(admission, runtime, { tenant: 'a' });
    runtime.advance(10);
    for (const waiting of [admission.acquire(ask).subscribe(), admission.acquire(ask).subscribe()]) {
      expect(runtime.pending).to.equal(1);
      waiting.unsubscribe();
    }
    expect(runtime.pending).to.equal(0);
  });

  it('takes nothing of the quota while it waits for a slot', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      { quota: { account: { requestsPerMinute: 60, burstRequests: 2 } }, maxInFlight: 1 },
      runtime,
    );
    const first = callNow(admission, runtime, held);
    const second = callNow(admission, runtime);
    runtime.advance(10_000);
    const [layer] = admission.snapshot().models['m']?.deployments[0]?.layers ?? [];
    expect(layer?.requests?.level).to.equal(2);
    first.admitted?.release(SUCCESS);
    expect(second.startedAtMs).to.equal(10_000);
  });

  it('counts refill only from when a request that took long to prepare was sent', () => {
    const startOfThird = (preparedMs: number): number | undefined => {
      const runtime = virtualRuntime();
      const quota = { account: { requestsPerMinute: 600, burstRequests: 2, arrivalMarginMs: 0 } };
      const admission = createAdmission({ quota }, runtime);
      const [first, second, third] = [held, held, held].map((call) => callNow(admission, runtime, call));
      for (const call of [first, second]) call?.admitted?.dispatched();
      runtime.advance(preparedMs);
      for (const call of [first, second]) call?.admitted?.sent?.();
      runtime.advance(1000);
      return third?.startedAtMs;
    };
    expect(startOfThird(0)).to.be.within(100, 101);
    expect(startOfThird(60)).to.be.within(160, 161);
  });

  it('waits for every layer: account, model, deployment and tenant', () => {
    const layers = {
      account: { quota: { account: { requestsPerMinute: 60 } } },
      model: { models: { m: { quota: { requestsPerMinute: 60 } } } },
      deployment: { models: { m: { deployments: [{ quota: { requestsPerMinute: 60 } }] } } },
      tenant: { tenants: { default: { requestsPerMinute: 60 } } },
    };
    for (const [name, options] of Object.entries(layers)) {
      const runtime = virtualRuntime();
      const admission = createAdmission(options, runtime);
      callNow(admission, runtime, { tenant: 't' });
      const second = callNow(admission, runtime, { tenant: 't' });
      runtime.advance(900);
      expect(second.startedAtMs, name).to.equal(undefined);
      runtime.advance(300);
      expect(second.startedAtMs, name).to.be.within(1000, 1200);
    }
  });

  it('draws on the account of the client where it has its own', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      {
        quota: { account: { requestsPerMinute: 60 }, clients: { other: {} } },
        models: { default: { client: 'other' }, n: {} },
      },
      runtime,
    );
    for (let i = 0; i < 5; i++) expect(callNow(admission, runtime).startedAtMs).to.equal(0);
    expect(callNow(admission, runtime, { model: 'n' }).startedAtMs).to.equal(0);
    expect(callNow(admission, runtime, { model: 'n' }).startedAtMs).to.equal(undefined);
  });

  it('bounds each tenant, each priority and each deployment', () => {
    const options = {
      tenant: { tenants: { default: { maxInFlight: 1 } } },
      priority: { priorities: { order: ['interactive', 'batch'], levels: { batch: { maxInFlight: 1 } } } },
      deployment: { models: { m: { concurrency: { limit: 1 } } } },
    };
    for (const [name, bound] of Object.entries(options)) {
      const runtime = virtualRuntime();
      const admission = createAdmission(bound, runtime);
      const call = { ...held, tenant: 'a', priority: 'batch' };
      const first = callNow(admission, runtime, call);
      const second = callNow(admission, runtime, call);
      const other = callNow(admission, runtime, { ...held, tenant: 'b', priority: 'interactive', model: 'n' });
      expect([first.startedAtMs, second.startedAtMs, other.startedAtMs], name).to.deep.equal([0, undefined, 0]);
      first.admitted?.release(SUCCESS);
      expect(second.startedAtMs, name).to.equal(0);
    }
  });

  it('does not bind calls without a tenant by what tenants get', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ tenants: { default: { maxInFlight: 1 } } }, runtime);
    for (let i = 0; i < 3; i++) expect(callNow(admission, runtime, held).startedAtMs).to.equal(0);
  });

  it('refuses on entry what cannot pass in time, and says when it could', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ quota: { account: { requestsPerMinute: 60, maxWaitMs: 1500 } } }, runtime);
    callNow(admission, runtime);
    callNow(admission, runtime);
    const late = callNow(admission, runtime);
    expect(late.error).to.deep.include({ code: 'queue_timeout', limit: 1500, while: 'entry', model: 'm' });
    expect((late.error as SluiceError).retryAfterMs).to.be.above(1500);
    expect(callNow(admission, runtime, { deadlineAtMs: 500 }).error).to.deep.include({ code: 'timeout_deadline' });
    expect(callNow(admission, runtime, { deadlineAtMs: 0 }).error).to.deep.include({ code: 'timeout_deadline' });
    expect(callNow(admission, runtime, { maxWaitMs: Infinity }).error).to.equal(undefined);
  });

  it('refuses those whose wait is over, with a wait to come back after', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    callNow(admission, runtime, held);
    const bounded = callNow(admission, runtime, { maxWaitMs: 200 });
    const dead = callNow(admission, runtime, { deadlineAtMs: 100 });
    runtime.advance(150);
    expect(dead.error).to.deep.include({ code: 'timeout_deadline', while: 'queue' });
    expect(bounded.error).to.equal(undefined);
    runtime.advance(100);
    expect(bounded.error).to.deep.include({ code: 'queue_timeout', limit: 200 });
    expect((bounded.error as SluiceError).retryAfterMs).to.be.above(0);
    expect(admission.snapshot().waiting).to.equal(0);
    expect(runtime.pending).to.equal(0);
  });

  it('refuses at once those whose wait a pause makes hopeless', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const first = callNow(admission, runtime, held);
    const soon = callNow(admission, runtime, { deadlineAtMs: 5000 });
    const patient = callNow(admission, runtime, { maxWaitMs: Infinity });
    first.admitted?.release(failure('rate_limited', { status: 429, retryAfterMs: 20_000 }));
    expect(soon.error).to.deep.include({ code: 'timeout_deadline' });
    expect((soon.error as SluiceError).retryAfterMs).to.be.at.least(20_000);
    runtime.advance(25_000);
    expect(patient.startedAtMs).to.be.within(20_000, 22_000);
  });

  it('bounds the queue, and makes room for what is more urgent', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1, quota: { account: { maxWaiting: 2 } } }, runtime);
    const first = callNow(admission, runtime, held);
    const kept = callNow(admission, runtime, { priority: 'batch' });
    const evicted = callNow(admission, runtime, { priority: 'batch' });
    expect(callNow(admission, runtime, { priority: 'batch' }).error).to.deep.include({ code: 'queue_full', limit: 2 });
    const urgent = callNow(admission, runtime);
    expect(urgent.error).to.equal(undefined);
    expect(evicted.error).to.deep.include({ code: 'queue_full', limit: 2 });
    expect((evicted.error as SluiceError).retryAfterMs).to.be.above(0);
    first.admitted?.release(SUCCESS);
    expect([urgent.startedAtMs, kept.startedAtMs]).to.deep.equal([0, 0]);
  });

  it('passes on what an empty queue of no length has room for', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1, quota: { account: { maxWaiting: 0 } } }, runtime);
    expect(callNow(admission, runtime, held).startedAtMs).to.equal(0);
    expect(callNow(admission, runtime).error).to.deep.include({ code: 'queue_full' });
  });

  it('refuses an explicit cost that can never pass, and clamps a guess', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ quota: { account: { tokensPerMinute: 1000 } } }, runtime);
    expect(callNow(admission, runtime, { tokens: 1001 }).error).to.deep.include({
      code: 'cost_too_large',
      limit: 1000,
      requested: 1001,
      retryAfterMs: undefined,
    });
    expect(callNow(admission, runtime, { tokens: 1001, guessed: true, ...held }).admitted?.reservedTokens).to.equal(
      1000,
    );
  });

  it('refuses a priority that is not in the order', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ priorities: { order: ['now', 'later'] } }, runtime);
    expect(callNow(admission, runtime, { priority: 'batch' }).error).to.deep.include({ code: 'invalid_option' });
    expect(callNow(admission, runtime, { priority: 'later' }).error).to.equal(undefined);
  });

  it('leaves the queue at unsubscribe, from the middle too', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const first = callNow(admission, runtime, held);
    const second = callNow(admission, runtime);
    const third = callNow(admission, runtime);
    second.subscription.unsubscribe();
    expect(admission.snapshot().waiting).to.equal(1);
    first.admitted?.release(SUCCESS);
    expect([second.startedAtMs, third.startedAtMs]).to.deep.equal([undefined, 0]);
  });

  describe('breaker', () => {
    const once = {
      models: { m: { breaker: { consecutiveFailures: 1, openMs: 1000, rampMs: 0 }, concurrency: { limit: 2 } } },
    };

    it('refuses all who wait as it opens, and on entry while it is open', () => {
      const runtime = virtualRuntime();
      const facts: SluiceFact[] = [];
      const admission = createAdmission({ ...once, onFact: (fact) => facts.push(fact) }, runtime);
      const first = callNow(admission, runtime, held);
      callNow(admission, runtime, held);
      const waiting = callNow(admission, runtime, held);
      first.admitted?.release(failure('server_error', { status: 500 }));
      expect(waiting.error).to.deep.include({ code: 'circuit_open', retryAfterMs: 1000, while: 'queue' });
      expect(callNow(admission, runtime).error).to.deep.include({ code: 'circuit_open', while: 'entry' });
      expect(facts).to.deep.equal([
        { type: 'breaker.changed', breaker: 'm', from: 'closed', to: 'open', reason: 'consecutive_failures' },
      ]);
      expect(admission.snapshot()).to.deep.include({ inFlight: 1, waiting: 0 });
      runtime.advance(1000);
      expect(callNow(admission, runtime).startedAtMs).to.equal(1000);
      expect(admission.snapshot().models['m']?.deployments[0]?.breaker.state).to.equal('closed');
    });

    it('lets one probe through while half-open, and refuses the others', () => {
      const runtime = virtualRuntime();
      const admission = createAdmission(once, runtime);
      callNow(admission, runtime, { outcome: failure('connection') });
      runtime.advance(1000);
      const probe = callNow(admission, runtime, held);
      const other = callNow(admission, runtime, held);
      expect(probe.startedAtMs).to.equal(1000);
      expect(other.error).to.deep.include({ code: 'circuit_open' });
    });

    it('takes back what has not been sent', () => {
      const runtime = virtualRuntime();
      const admission = createAdmission(
        { ...once, quota: { account: { requestsPerMinute: 60, burstRequests: 9 } } },
        runtime,
      );
      const first = callNow(admission, runtime, held);
      let revoked: unknown;
      admission.acquire({ model: 'm', cost: { requests: 1, tokens: 0, explicit: true } }).subscribe((admitted) => {
        admitted.onRevoke((refusal) => {
          revoked = refusal;
          admitted.release(DROPPED_UNSENT);
        });
      });
      first.admitted?.release(failure('overloaded', { status: 503 }));
      expect(revoked).to.deep.include({ code: 'circuit_open', retryAfterMs: 1000 });
      const snapshot = admission.snapshot();
      expect(snapshot.inFlight).to.equal(0);
      // Of the one that was sent the request stays taken, of the other one nothing.
      expect(snapshot.models['m']?.deployments[0]?.layers[0]?.requests?.level).to.equal(8);
    });

    it('is none for refusals and cancels', () => {
      const runtime = virtualRuntime();
      const admission = createAdmission(once, runtime);
      callNow(admission, runtime, { outcome: DROPPED_UNSENT });
      callNow(admission, runtime, { outcome: failure('rate_limited', { status: 429 }) });
      expect(admission.snapshot().models['m']?.deployments[0]?.breaker.state).to.equal('closed');
    });
  });

  it('cuts the limit before the slot is given away', () => {
    const runtime = virtualRuntime();
    const facts: SluiceFact[] = [];
    const admission = createAdmission(
      { models: { m: { concurrency: { initial: 4, min: 2, decrease: 0.5 } } }, onFact: (fact) => facts.push(fact) },
      runtime,
    );
    const first = callNow(admission, runtime, held);
    for (let i = 0; i < 3; i++) callNow(admission, runtime, held);
    const waiting = callNow(admission, runtime, held);
    first.admitted?.release(failure('overloaded', { status: 503 }));
    expect(waiting.startedAtMs).to.equal(undefined);
    expect(facts).to.deep.equal([{ type: 'limit.changed', limiter: 'm', from: 4, to: 2, reason: 'rejected' }]);
  });

  describe('deployments', () => {
    const two = {
      m: {
        deployments: [
          { client: 'main', concurrency: { limit: 4 } },
          { client: 'azure', model: 'm-eu', concurrency: { limit: 2 } },
        ],
      },
    };

    it('are chosen by load, as the attempt is sent', () => {
      const runtime = virtualRuntime();
      const admission = createAdmission({ models: two }, runtime);
      const names = Array.from({ length: 6 }, () => callNow(admission, runtime, held).admitted?.deployment.client);
      expect(names.filter((name) => name === 'main')).to.have.length(4);
      expect(names.slice(0, 3)).to.have.members(['main', 'azure', 'main']);
      expect(admission.snapshot().models['m']?.deployments.map(({ name, model }) => [name, model])).to.deep.equal([
        ['m@main', 'm'],
        ['m@azure', 'm-eu'],
      ]);
    });

    it('are left alone while their account has run out', () => {
      const runtime = virtualRuntime();
      const admission = createAdmission({ models: two, quota: { account: { exhaustedMs: 5000 } } }, runtime);
      callNow(admission, runtime, { outcome: failure('quota_exhausted', { status: 429 }) });
      const next = Array.from({ length: 3 }, () => callNow(admission, runtime).admitted?.deployment.name);
      expect(new Set(next)).to.deep.equal(new Set(['m@azure']));
      admission.exhausted('m', 'm@azure', 10_000);
      expect(callNow(admission, runtime).error).to.deep.include({ code: 'circuit_open', retryAfterMs: 5000 });
      runtime.advance(5000);
      expect(callNow(admission, runtime).admitted?.deployment.name).to.equal('m@main');
      expect(() => admission.exhausted('m', 'other', 1))
        .to.throw()
        .with.property('code', 'invalid_option');
    });

    it('stand in for one whose breaker is open, and let it probe', () => {
      const runtime = virtualRuntime();
      const breaker = { consecutiveFailures: 1, openMs: 1000, rampMs: 0 };
      const admission = createAdmission({ models: { m: { breaker, deployments: two.m.deployments } } }, runtime);
      callNow(admission, runtime, { outcome: failure('server_error') });
      expect(callNow(admission, runtime).admitted?.deployment.name).to.equal('m@azure');
      runtime.advance(1000);
      expect(callNow(admission, runtime, held).admitted?.deployment.name).to.equal('m@main');
      expect(callNow(admission, runtime, held).admitted?.deployment.name).to.equal('m@azure');
    });
  });

  it('stops everyone at a hint, and lets the first one back go alone', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({}, runtime);
    let pausedMs: number | undefined;
    callNow(admission, runtime, {
      outcome: failure('rate_limited', { status: 429, retryAfterMs: 2000 }),
      onCooldown: (waitMs) => (pausedMs = waitMs),
    });
    expect(pausedMs).to.equal(2000);
    const calls = [callNow(admission, runtime, held), callNow(admission, runtime, held)];
    runtime.advance(2500);
    expect(calls.map(({ startedAtMs }) => startedAtMs !== undefined)).to.deep.equal([true, false]);
    calls[0]?.admitted?.responded(200);
    runtime.advance(100);
    expect(calls[1]?.startedAtMs).to.be.above(2000);
  });

  it('reports settlements, and charges usage', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ quota: { account: { tokensPerMinute: 6000, settle: 'usage' } } }, runtime);
    let settled: unknown;
    const call = callNow(admission, runtime, {
      tokens: 1000,
      ...held,
      onSettled: (settlement) => (settled = settlement),
    });
    call.admitted?.settle({
      inputTokens: 100,
      outputTokens: 100,
      totalTokens: 200,
      cachedInputTokens: 0,
      reasoningTokens: 0,
    });
    call.admitted?.release(SUCCESS);
    expect(settled).to.deep.equal({ reservedTokens: 1000, usedTokens: 200, refundedTokens: 800 });
  });

  it('serves ten thousand synchronous calls from one loop', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const first = callNow(admission, runtime, held);
    const calls = Array.from({ length: 9999 }, () => callNow(admission, runtime));
    first.admitted?.release(SUCCESS);
    expect(calls.every(({ startedAtMs }) => startedAtMs === 0)).to.equal(true);
  });

  it('refuses wrong options at once', () => {
    const wrong = {
      maxInFlight: { maxInFlight: 0 },
      'priorities.batch.maxInFlight': { priorities: { levels: { batch: { maxInFlight: 0.5 } } } },
      'priorities.order': { priorities: { order: [] } },
      'tenants.a.weight': { tenants: { a: { weight: 0 } } },
      'tenants.default.reservedInFlight': { tenants: { default: { reservedInFlight: -1 } } },
      'tenants.a.requestsPerMinute': { tenants: { a: { requestsPerMinute: 0 } } },
      'models.m.requestsPerMinute': { models: { m: { quota: { requestsPerMinute: NaN } } } },
      'concurrency.limit': { models: { default: { concurrency: { limit: 0 } } } },
      openMs: { models: { m: { breaker: { openMs: -1 } } } },
      'models.m.deployments': { models: { m: { deployments: [] } } },
      ageingMs: { priorities: { ageingMs: -1 } },
      passShare: { quota: { account: { passShare: NaN } } },
      exhaustedMs: { quota: { account: { exhaustedMs: 0 } } },
      maxWaiting: { quota: { account: { maxWaiting: -1 } } },
    };
    for (const [option, options] of Object.entries(wrong)) {
      expect(() => createAdmission(options), option).to.throw(SluiceError, option);
    }
  });
});
