import { expect } from 'chai';
import { combineLatest, throwError } from 'rxjs';
import type { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { Admitted, AdmissionRequest } from '../../lib/core/ports.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import type { LocalAdmission } from '../../lib/operators/createAdmission.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { usage } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';
import { failed } from '../helpers/scripted.ts';

const failure = (error: SluiceError): Outcome => ({ kind: 'failure', error });
const cost = { requests: 1, tokens: 0, explicit: true };

/** What an admission of this process tells those who ask, and those whom it has let pass. */
describe('createAdmission tells', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  interface Asked {
    admitted?: Admitted;
    error?: SluiceError;
    done?: true;
    queued: [number, number | undefined][];
  }
  const ask = (admission: LocalAdmission, request: Partial<AdmissionRequest> = {}): Asked => {
    const asked: Asked = { queued: [] };
    admission
      .acquire({ model: 'm', cost, onQueued: (position, waitMs) => asked.queued.push([position, waitMs]), ...request })
      .subscribe({
        next: (admitted) => (asked.admitted = admitted),
        error: (error: SluiceError) => (asked.error = error),
        complete: () => (asked.done = true),
      });
    return asked;
  };
  const account = { requestsPerMinute: 60, burstRequests: 1, arrivalMarginMs: 0 };
  const once = { models: { m: { breaker: { consecutiveFailures: 1, openMs: 1000, halfOpenMaxMs: 500 } } } };

  it('how long one has waited, whenever it came, and that there is no more to come', () => {
    const admission = createAdmission({ quota: { account } }, runtime);
    runtime.advance(5000);
    const asked = [ask(admission), ask(admission)];
    runtime.run();
    expect(asked.map(({ admitted, done }) => [admitted?.waitedMs, done])).to.deep.equal([
      [0, true],
      [1000, true],
    ]);
  });

  it('how long those will wait at least, where that can be foreseen', () => {
    const admission = createAdmission({ quota: { account } }, runtime);
    ask(admission);
    const asked = [ask(admission), ask(admission), ask(admission)];
    expect(asked.map(({ queued }) => queued)).to.deep.equal([[[1, 1000]], [[2, 2000]], [[3, 3000]]]);
    const slots = createAdmission({ maxInFlight: 1 }, runtime);
    ask(slots);
    expect([ask(slots), ask(slots)].map(({ queued }) => queued)).to.deep.equal([[[1, undefined]], [[2, undefined]]]);
  });

  it('at once what comes back, and that a wait cannot end in time any more', () => {
    const admission = createAdmission({ quota: { account: { tokensPerMinute: 600, settle: 'usage' } } }, runtime);
    const tokens = (count: number): Partial<AdmissionRequest> => ({ cost: { ...cost, tokens: count } });
    const [first, second, third] = [tokens(600), tokens(300), { ...tokens(600), maxWaitMs: 70_000 }].map((request) =>
      ask(admission, request),
    );
    expect(second?.admitted).to.equal(undefined);
    first?.admitted?.dispatched();
    first?.admitted?.settle(usage(300));
    expect(second?.admitted?.waitedMs).to.equal(0);
    first?.admitted?.observe(hintsOf({ retryAfterMs: 80_000 }));
    expect(third?.error?.code).to.equal('queue_timeout');
  });

  it('at once that one may go for what an attempt gives back at its end, before all of it is over', () => {
    const admission = createAdmission({ quota: { account: { tokensPerMinute: 600 } } }, runtime);
    const all: Partial<AdmissionRequest> = { cost: { ...cost, tokens: 600 }, maxWaitMs: 70_000 };
    const [first, second] = [ask(admission, all), ask(admission, all)];
    expect(second.admitted).to.equal(undefined);
    first.admitted?.end(DROPPED_UNSENT);
    expect(second.admitted?.waitedMs).to.equal(0);
  });

  it('nobody to go for one that has gone before it asked', () => {
    const quota = { account: { ...account, maxWaiting: 1 } };
    const admission = createAdmission({ quota, priorities: { order: ['urgent', 'batch'] } }, runtime);
    ask(admission);
    const waiting = ask(admission, { priority: 'batch' });
    const failing = throwError(() => new Error('failed'));
    combineLatest([failing, admission.acquire({ model: 'm', cost, priority: 'urgent' })]).subscribe({
      error: () => {},
    });
    expect(waiting.error).to.equal(undefined);
    runtime.run();
    expect(waiting.admitted?.waitedMs).to.equal(1000);
  });

  describe('why it refuses:', () => {
    const refusal = (options: Parameters<typeof createAdmission>[0], ...requests: Partial<AdmissionRequest>[]) => {
      const admission = createAdmission(options, runtime);
      return requests.map((request) => ask(admission, request).error).at(-1);
    };
    const tokens = (count: number) => ({ cost: { requests: 1, tokens: count, explicit: true } });

    it('a cost above a minute', () => {
      const error = refusal({ quota: { account: { tokensPerMinute: 600 } } }, tokens(601));
      expect(error?.message).to.equal('a cost of 601 tokens can never pass: the quota is 600 tokens a minute');
      expect(error).to.include({ code: 'cost_too_large', while: 'entry', limit: 600, requested: 601, model: 'm' });
    });

    it('one more than may wait', () => {
      const error = refusal({ quota: { account: { ...account, maxWaiting: 1 } } }, {}, {}, {});
      expect(error?.message).to.equal('1 requests are waiting already, and no more may');
      expect(error).to.include({ code: 'queue_full', limit: 1 });
    });

    it('a wait that is too long', () => {
      const error = refusal({ quota: { account } }, {}, { maxWaitMs: 500 });
      expect(error?.message).to.equal('there is no room within 500 ms');
      expect(error).to.include({ code: 'queue_timeout', limit: 500, retryAfterMs: 1000 });
    });

    it('a wait beyond the deadline', () => {
      const error = refusal({ quota: { account } }, {}, { deadlineAtMs: 500 });
      expect(error?.message).to.equal('there is no room before the deadline in 500 ms');
      expect(error).to.include({ code: 'timeout_deadline', limit: 500 });
    });

    it('a breaker that is open', () => {
      const admission = createAdmission(once, runtime);
      ask(admission).admitted?.release(failure(failed('server_error')));
      const { error } = ask(admission);
      expect(error?.message).to.equal('no deployment of the model can be asked now');
      expect(error).to.include({ code: 'circuit_open', while: 'entry', limit: undefined, retryAfterMs: 1000 });
    });
  });

  describe('when the breaker opens,', () => {
    const revoking = (admission: LocalAdmission) => {
      const { admitted } = ask(admission);
      const told: SluiceError[] = [];
      return { admitted, told, listen: () => admitted?.onRevoke((refusal) => told.push(refusal)) };
    };
    const open = (admission: LocalAdmission): void => ask(admission).admitted?.release(failure(failed('server_error')));

    it('those that have not been sent', () => {
      const admission = createAdmission(once, runtime);
      const one = revoking(admission);
      one.listen();
      open(admission);
      expect(one.told.map(({ message }) => message)).to.deep.equal(['the circuit breaker m is open']);
      expect(one.told[0]).to.include({ code: 'circuit_open', while: 'queue', retryAfterMs: 1000 });
    });

    it('those that only say later what to do then', () => {
      const admission = createAdmission(once, runtime);
      const late = revoking(admission);
      open(admission);
      late.listen();
      expect(late.told.map(({ code }) => code)).to.deep.equal(['circuit_open']);
    });

    it('nobody that has been sent, or has ended', () => {
      const admission = createAdmission(once, runtime);
      const [sent, ended] = [revoking(admission), revoking(admission)];
      for (const { listen } of [sent, ended]) listen();
      sent.admitted?.dispatched();
      ended.admitted?.end(DROPPED_UNSENT);
      open(admission);
      expect([sent.told, ended.told]).to.deep.equal([[], []]);
    });

    it('nobody that a listener has ended as it heard of it', () => {
      const admission = createAdmission(once, runtime);
      const ending = revoking(admission);
      ending.listen();
      const onFact = (): void => ending.admitted?.release(DROPPED_UNSENT);
      ask(admission, { onFact }).admitted?.release(failure(failed('server_error')));
      expect(ending.told).to.deep.equal([]);
    });
  });

  it('the breaker that a probe has content, so that it is not stuck', () => {
    const admission = createAdmission(once, runtime);
    ask(admission).admitted?.release(failure(failed('server_error')));
    runtime.advance(1000);
    const { admitted } = ask(admission);
    admitted?.dispatched();
    admitted?.firstContent();
    runtime.advance(500);
    admitted?.release(SUCCESS);
    expect(admission.snapshot().models['m']?.deployments[0]?.breaker.state).to.equal('ramping');
  });

  it('the breaker that a probe is on its way: nobody has to take it back', () => {
    const admission = createAdmission(once, runtime);
    ask(admission).admitted?.release(failure(failed('server_error')));
    runtime.advance(1000);
    const { admitted } = ask(admission);
    expect(runtime.pending).to.equal(1);
    admitted?.dispatched();
    runtime.advance(500);
    expect(runtime.pending).to.equal(0);
    expect(admission.snapshot().models['m']?.deployments[0]?.breaker.state).to.equal('half_open');
  });

  it('for what reason it pauses', () => {
    const told: unknown[] = [];
    const admission = createAdmission({}, runtime);
    const { admitted } = ask(admission, { onCooldown: (waitMs, reason) => told.push([waitMs, reason]) });
    admitted?.dispatched();
    admitted?.responded(429);
    admitted?.release(failure(failed('overloaded', { status: 503, retryAfterMs: 2000 })));
    expect(told).to.deep.equal([[2000, 'overloaded']]);
  });

  it('those who wait for a deployment at once that its account has run out', () => {
    const deployments = [{ client: 'main', concurrency: { limit: 1 } }];
    const admission = createAdmission({ models: { m: { deployments } } }, runtime);
    ask(admission);
    const waiting = ask(admission);
    expect(() => admission.exhausted('m', 'other', 1)).to.throw('deployment must be one of m');
    admission.exhausted('m', 'm', 5000);
    expect(waiting.error).to.include({ code: 'circuit_open', retryAfterMs: 5000 });
  });

  it('how many tenants it remembers', () => {
    const admission = createAdmission({}, runtime);
    expect(admission.remembered).to.equal(0);
    ask(admission, { tenant: 'acme' });
    expect(admission.remembered).to.equal(1);
  });
});
