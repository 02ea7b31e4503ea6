import { expect } from 'chai';
import { combineLatest, throwError } from 'rxjs';
import type { SluiceError } from '../../lib/core/errors.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Grant, QuotaPort, QuotaRequest } from '../../lib/core/ports.ts';
import { createQuota } from '../../lib/operators/createQuota.ts';
import type { QuotaOptions } from '../../lib/operators/createQuota.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { usage } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const one = { requests: 1, tokens: 0, explicit: true };
const noHints = hintsOf();

/** What those are told who ask a quota of this process. */
describe('QuotaDesk', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  const quotaOf = (options: QuotaOptions): QuotaPort => createQuota({ arrivalMarginMs: 0, ...options }, runtime);
  const ask = (quota: QuotaPort, request: Partial<QuotaRequest> = {}) => {
    const asked: { grant?: Grant; atMs?: number; error?: SluiceError } = {};
    quota.acquire({ cost: one, ...request }).subscribe({
      next: (grant) => Object.assign(asked, { grant, atMs: runtime.clock.now() }),
      error: (error: SluiceError) => (asked.error = error),
    });
    return asked;
  };

  describe('refuses', () => {
    it('a cost above a minute, at the entry', () => {
      const { error } = ask(quotaOf({ tokensPerMinute: 600 }), { cost: { ...one, tokens: 601 } });
      expect(error?.message).to.equal('a cost of 601 tokens can never pass: the quota is 600 tokens a minute');
      expect(error).to.include({ code: 'cost_too_large', while: 'entry', limit: 600, requested: 601 });
    });

    it('one more than may wait', () => {
      const quota = quotaOf({ requestsPerMinute: 60, maxWaiting: 1 });
      const { error } = [ask(quota), ask(quota), ask(quota)][2]!;
      expect(error?.message).to.equal('1 requests are waiting for the quota already, and no more may');
      expect(error).to.include({ code: 'queue_full', while: 'queue', limit: 1, requested: undefined });
    });

    it('a wait that is too long', () => {
      const quota = quotaOf({ requestsPerMinute: 60, maxWaitMs: 500 });
      ask(quota);
      const { error } = ask(quota);
      expect(error?.message).to.equal('the quota has no room within 500 ms');
      expect(error).to.include({ code: 'queue_timeout', while: 'queue', limit: 500, retryAfterMs: 1000 });
    });

    it('a wait beyond the deadline', () => {
      const quota = quotaOf({ requestsPerMinute: 60 });
      ask(quota);
      const { error } = ask(quota, { deadlineAtMs: 500 });
      expect(error?.message).to.equal('the quota has no room before the deadline in 500 ms');
      expect(error).to.include({ code: 'timeout_deadline', while: 'queue' });
    });

    for (const [request, message] of [
      [{ cost: { ...one, requests: -1 } }, 'cost.requests must be finite and 0 or more, got -1'],
      [{ cost: { ...one, tokens: NaN } }, 'cost.tokens must be finite and 0 or more, got NaN'],
      [{ maxWaitMs: -5 }, 'maxWaitMs must be 0 or more, or Infinity, got -5'],
      [{ maxWaitMs: -7, cost: { ...one, requests: 61 } }, 'maxWaitMs must be 0 or more, or Infinity, got -7'],
    ] as const) {
      it(`what is wrong: ${message}`, () => {
        expect(ask(quotaOf({ requestsPerMinute: 60 }), request).error?.message).to.equal(message);
      });
    }
  });

  it('tells how long one has waited, whenever it came', () => {
    const quota = quotaOf({ requestsPerMinute: 60 });
    runtime.advance(5000);
    const asked = [ask(quota), ask(quota)];
    runtime.run();
    expect(asked.map(({ grant }) => grant?.waitedMs)).to.deep.equal([0, 1000]);
  });

  it('hands out one after the other, also what is asked for as another is granted', () => {
    const quota = quotaOf({ requestsPerMinute: 60, burstRequests: 2 });
    const heard: string[] = [];
    quota.acquire({ cost: one }).subscribe((grant) => {
      quota.acquire({ cost: one }).subscribe(() => heard.push('b'));
      grant.release(SUCCESS);
      heard.push('a');
    });
    expect(heard).to.deep.equal(['a', 'b']);
  });

  it('tells nobody that it waits who has left before it could be told', () => {
    const quota = quotaOf({ requestsPerMinute: 60 });
    const told: number[] = [];
    quota.acquire({ cost: one }).subscribe(() => {
      quota
        .acquire({ cost: one, onQueued: (position) => void told.push(position) })
        .subscribe()
        .unsubscribe();
    });
    expect([told, quota.snapshot().waiting]).to.deep.equal([[], 0]);
  });

  it('takes nothing for one that has gone before it asked', () => {
    const quota = quotaOf({ requestsPerMinute: 60 });
    const failed = throwError(() => new Error('failed'));
    combineLatest([failed, quota.acquire({ cost: one })]).subscribe({ error: () => {} });
    expect(quota.snapshot().waiting).to.equal(0);
    expect(ask(quota).atMs).to.equal(0);
  });

  describe('a grant', () => {
    it('counts as handed over when it was dispatched, unless it was told otherwise', () => {
      const quota = quotaOf({ requestsPerMinute: 60 });
      ask(quota).grant?.dispatched();
      const next = ask(quota);
      runtime.run(5000);
      expect(next.atMs).to.equal(1000);
    });

    for (const [status, reason] of [
      [429, 'rate_limited'],
      [503, 'overloaded'],
      [529, 'overloaded'],
      [500, 'rate_limited'],
    ] as const) {
      it(`says after a ${status} that the quota pauses for being ${reason}`, () => {
        const told: unknown[] = [];
        const quota = quotaOf({ requestsPerMinute: 60, cooldown: { jitter: 0 } });
        const { grant } = ask(quota, { onCooldown: (waitMs, why) => told.push([waitMs, why]) });
        grant?.dispatched();
        grant?.responded?.(status);
        grant?.observe({ ...noHints, retryAfterMs: 700 });
        expect(told).to.deep.equal([[700, reason]]);
      });
    }
  });

  it('lets those who wait know at once what comes back, and that their wait cannot end in time', () => {
    const quota = quotaOf({ tokensPerMinute: 600, settle: 'usage' });
    const tokens = (count: number): Partial<QuotaRequest> => ({ cost: { ...one, tokens: count } });
    const [first, second, third] = [tokens(600), tokens(300), { ...tokens(600), maxWaitMs: 70_000 }].map((request) =>
      ask(quota, request),
    );
    expect(second?.atMs).to.equal(undefined);
    first?.grant?.dispatched();
    first?.grant?.settle(usage(300));
    expect(second?.atMs).to.equal(0);
    first?.grant?.observe({ ...noHints, retryAfterMs: 80_000 });
    expect(third?.error?.code).to.equal('queue_timeout');
  });

  it('takes a report without a wait for no pause', () => {
    const quota = quotaOf({ requestsPerMinute: 60 });
    quota.observe(noHints);
    expect(quota.snapshot().cooldownMs).to.equal(0);
    expect(ask(quota).atMs).to.equal(0);
    quota.observe({ ...noHints, retryAfterMs: 700 });
    quota.observe(noHints);
    expect(quota.snapshot().cooldownMs).to.be.at.least(700);
  });

  it('changes the rate of the layer that was named', () => {
    const quota = createQuota(
      { layers: { account: { requestsPerMinute: 600 }, model: { requestsPerMinute: 300 } } },
      runtime,
    );
    quota.setRate('model', { requestsPerMinute: 120 });
    expect(quota.snapshot().layers.map(({ requests }) => requests?.perMinute)).to.deep.equal([600, 120]);
  });
});
