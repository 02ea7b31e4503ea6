import { metrics } from '@opentelemetry/api';
import { expect } from 'chai';
import type { SluiceEvent, SluiceFact } from '../../lib/core/events.ts';
import { metricObserver } from '../../lib/telemetry/metricObserver.ts';
import type { MetricObserverOptions } from '../../lib/telemetry/metricObserver.ts';
import { testMetrics } from '../helpers/metricsOf.ts';
import type { Measured, TestMetrics } from '../helpers/metricsOf.ts';

type Of<T extends SluiceFact['type']> = Omit<Extract<SluiceFact, { readonly type: T }>, 'type'>;

const ENDED: Of<'attempt.ended'> = {
  outcome: 'success',
  code: undefined,
  status: 200,
  durationMs: 1_500,
  usage: undefined,
  finishReasons: [],
  contentChunks: 0,
  contentMs: 0,
} as never;

describe('metricObserver', () => {
  let test: TestMetrics;
  beforeEach(() => {
    test = testMetrics();
  });

  function told(options: MetricObserverOptions = {}): (type: string, more?: object) => void {
    const { onEvent } = metricObserver({ meterProvider: test.provider, ...options });
    return (type, more = {}) =>
      onEvent?.({
        callId: 'c',
        attempt: 1,
        model: 'm',
        tenant: 't',
        conversation: 'k',
        atMs: 0,
        type,
        ...more,
      } as SluiceEvent);
  }

  describe('counts', () => {
    it('calls by model and outcome, failures also by their code', async () => {
      const tell = told();
      const ended = { attempts: 1, durationMs: 10 };
      tell('call.ended', { ...ended, outcome: 'success' });
      tell('call.ended', { ...ended, outcome: 'success' });
      tell('call.ended', { ...ended, outcome: 'failure', code: 'overloaded' });
      tell('call.ended', { ...ended, outcome: 'failure' });
      tell('call.ended', { ...ended, outcome: 'dropped', model: undefined });

      expect((await test.collect()).numbers('sluice.calls')).to.deep.equal({
        'gen_ai.request.model=m,sluice.outcome=success': 2,
        'error.type=overloaded,gen_ai.request.model=m,sluice.outcome=failure': 1,
        'error.type=_OTHER,gen_ai.request.model=m,sluice.outcome=failure': 1,
        'sluice.outcome=cancelled': 1,
      });
    });

    it('a call that its caller aborted, or replaced, as cancelled', async () => {
      const tell = told();
      for (const code of ['aborted', 'superseded']) {
        tell('call.ended', { outcome: 'failure', code, attempts: 1, durationMs: 10 });
      }
      const measured = await test.collect();
      expect(measured.numbers('sluice.calls')).to.deep.equal({
        'gen_ai.request.model=m,sluice.outcome=cancelled': 2,
      });
      expect(measured.points('sluice.refusals')).to.deep.equal([]);
    });

    it('attempts by model, status and outcome, and measures how long they took, in seconds', async () => {
      const tell = told();
      tell('attempt.ended', ENDED);
      tell('attempt.ended', { ...ENDED, outcome: 'failure', status: 429, code: 'rate_limited', durationMs: 500 });
      tell('attempt.ended', { ...ENDED, outcome: 'failure', status: undefined, code: 'connection' });
      tell('attempt.ended', { ...ENDED, outcome: 'dropped', status: undefined });

      const measured = await test.collect();
      const expected = {
        'gen_ai.request.model=m,http.response.status_code=200,sluice.outcome=success': 1,
        'error.type=rate_limited,gen_ai.request.model=m,http.response.status_code=429,sluice.outcome=failure': 1,
        'error.type=connection,gen_ai.request.model=m,sluice.outcome=failure': 1,
        'gen_ai.request.model=m,sluice.outcome=cancelled': 1,
      };
      expect(measured.numbers('sluice.requests')).to.deep.equal(expected);
      expect(measured.numbers('sluice.attempt.duration')).to.deep.equal(expected);
      expect(measured.sum('sluice.attempt.duration', { 'error.type': 'rate_limited' })).to.equal(0.5);
    });

    it('attempts of a call, where there was any', async () => {
      const tell = told();
      for (const attempts of [0, 1, 3]) tell('call.ended', { outcome: 'success', attempts, durationMs: 1 });
      const measured = await test.collect();
      expect(measured.numbers('sluice.call.attempts')).to.deep.equal({ 'gen_ai.request.model=m': 2 });
      expect(measured.sum('sluice.call.attempts')).to.equal(4);
    });

    it('retries, cooldowns and fallbacks by the error that was met', async () => {
      const tell = told();
      tell('retry.scheduled', { code: 'overloaded', waitMs: 1, waitSource: 'backoff' });
      tell('cooldown', { reason: 'rate_limited', waitMs: 1 });
      tell('fallback', { from: 'm', to: 'n', code: 'circuit_open' });
      tell('fallback', { from: undefined, to: 'n', code: 'circuit_open' });
      const measured = await test.collect();
      expect(measured.numbers('sluice.retries')).to.deep.equal({ 'error.type=overloaded,gen_ai.request.model=m': 1 });
      expect(measured.numbers('sluice.cooldowns')).to.deep.equal({
        'error.type=rate_limited,gen_ai.request.model=m': 1,
      });
      expect(measured.numbers('sluice.fallbacks')).to.deep.equal({
        'error.type=circuit_open,sluice.from=m,sluice.to=n': 1,
        'error.type=circuit_open,sluice.to=n': 1,
      });
    });

    it('refusals by their code, those that end a call only once', async () => {
      const { onCall, onEvent } = metricObserver({ meterProvider: test.provider });
      const tell = (callId: string, type: string, code: string): void =>
        onEvent?.({
          callId,
          attempt: 1,
          model: 'm',
          type,
          code,
          outcome: 'failure',
          attempts: 0,
          durationMs: 1,
        } as never);
      for (const callId of 'abcd') onCall?.({ callId, api: 'chat', model: 'm', attributes: {} } as never);
      tell('a', 'refused', 'queue_timeout');
      tell('a', 'call.ended', 'queue_timeout');
      tell('b', 'call.ended', 'spend_capped');
      tell('c', 'refused', 'circuit_open');
      tell('c', 'call.ended', 'timeout_deadline');
      tell('d', 'call.ended', 'overloaded');
      expect((await test.collect()).numbers('sluice.refusals')).to.deep.equal({
        'error.type=queue_timeout,gen_ai.request.model=m': 1,
        'error.type=spend_capped,gen_ai.request.model=m': 1,
        'error.type=circuit_open,gen_ai.request.model=m': 1,
        'error.type=timeout_deadline,gen_ai.request.model=m': 1,
      });
    });

    it('tokens that were reserved, used, and wasted', async () => {
      const tell = told();
      const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };
      tell('settled', { reservedTokens: 100, usedTokens: 15, refundedTokens: 85 });
      tell('attempt.ended', { ...ENDED, usage });
      tell('attempt.ended', { ...ENDED, usage, outcome: 'failure', code: 'stream_truncated' });
      tell('attempt.ended', { ...ENDED, usage: undefined, estimatedUsage: usage, outcome: 'dropped' });
      const measured = await test.collect();
      expect(measured.total('sluice.tokens.reserved')).to.equal(100);
      expect(measured.total('sluice.tokens.used', { 'gen_ai.request.model': 'm' })).to.equal(45);
      expect(measured.total('sluice.tokens.wasted', { 'gen_ai.request.model': 'm' })).to.equal(30);
    });

    it('what calls cost, by the model that was asked and by tenant', async () => {
      const tell = told();
      const ended = { outcome: 'success', attempts: 1, durationMs: 1 };
      tell('call.ended', { ...ended, cost: 0.25 });
      tell('call.ended', { ...ended, cost: 0.5, outcome: 'failure', code: 'overloaded' });
      tell('call.ended', { ...ended, cost: 1, tenant: undefined });
      tell('call.ended', { ...ended, cost: undefined, model: 'n' });
      expect((await test.collect()).numbers('sluice.cost')).to.deep.equal({
        'gen_ai.request.model=m,sluice.tenant=t': 0.75,
        'gen_ai.request.model=m': 1,
      });
    });

    it('changes of a breaker, and shows its state', async () => {
      const tell = told();
      const states = ['closed', 'open', 'half_open', 'ramping', 'closed'];
      const seen: number[] = [];
      for (let at = 1; at < states.length; at++) {
        tell('breaker.changed', { breaker: 'm', from: states[at - 1], to: states[at], reason: 'x' });
        seen.push((await test.collect()).total('sluice.breaker.state', { 'sluice.breaker': 'm' }));
      }
      expect(seen).to.deep.equal([2, 1, 1, 0]);
      expect((await test.collect()).numbers('sluice.breaker.transitions')).to.deep.equal({
        'sluice.breaker=m,sluice.from=closed,sluice.to=open': 1,
        'sluice.breaker=m,sluice.from=open,sluice.to=half_open': 1,
        'sluice.breaker=m,sluice.from=half_open,sluice.to=ramping': 1,
        'sluice.breaker=m,sluice.from=ramping,sluice.to=closed': 1,
      });
    });

    it('shows what a limiter lets through since it last changed', async () => {
      const tell = told();
      tell('limit.changed', { limiter: 'm', from: 16, to: 11, reason: 'rejected' });
      tell('limit.changed', { limiter: 'm', from: 11, to: 12, reason: 'grown' });
      expect((await test.collect()).numbers('sluice.concurrency.limit')).to.deep.equal({ 'sluice.limiter=m': 12 });
    });

    it('waits of what was granted, in seconds; one that did not wait is none', async () => {
      const tell = told();
      tell('granted', { where: 'quota', waitedMs: 0 });
      tell('granted', { where: 'quota', waitedMs: 250 });
      tell('granted', { where: 'lane', waitedMs: 1_000, tenant: undefined });
      const measured = await test.collect();
      expect(measured.numbers('sluice.queue.wait')).to.deep.equal({
        'gen_ai.request.model=m,sluice.queue=quota,sluice.tenant=t': 1,
        'gen_ai.request.model=m,sluice.queue=lane': 1,
      });
      expect(measured.sum('sluice.queue.wait', { 'sluice.queue': 'quota' })).to.equal(0.25);
    });
  });

  describe('keeps gauges that come back to 0', () => {
    const size = async (where: string): Promise<number> =>
      (await test.collect()).total('sluice.queue.size', { 'sluice.queue': where, 'sluice.tenant': 't' });
    const inflight = async (): Promise<number> =>
      (await test.collect()).total('sluice.inflight', { 'sluice.tenant': 't', 'gen_ai.request.model': 'm' });

    for (const [name, end, more] of [
      ['is granted', 'granted', { where: 'quota', waitedMs: 5 }],
      ['is refused', 'refused', { code: 'queue_full' }],
      ['leaves', 'left', { where: 'quota' }],
      ['belongs to a call that ends', 'call.ended', { outcome: 'dropped', attempts: 0, durationMs: 1 }],
    ] as const) {
      it(`for what waits, when it ${name}, and not twice`, async () => {
        const tell = told();
        tell('queued', { where: 'quota', position: 1 });
        tell('queued', { where: 'quota', position: 1 });
        tell('queued', { callId: 'd', where: 'quota', position: 2 });
        expect(await size('quota')).to.equal(2);
        tell(end, more);
        expect(await size('quota')).to.equal(1);
        tell(end, more);
        expect(await size('quota')).to.equal(1);
        tell(end, { ...more, callId: 'd' });
        expect(await size('quota')).to.equal(0);
      });
    }

    for (const [name, end, more] of [
      ['ends', 'attempt.ended', ENDED],
      ['belongs to a call that ends', 'call.ended', { outcome: 'dropped', attempts: 1, durationMs: 1 }],
    ] as const) {
      it(`for what is in flight, when it ${name}, and not twice`, async () => {
        const tell = told();
        tell('attempt.started');
        tell('attempt.started', { callId: 'd' });
        expect(await inflight()).to.equal(2);
        tell(end, more);
        tell(end, more);
        expect(await inflight()).to.equal(1);
        tell(end, { ...more, callId: 'd' });
        expect(await inflight()).to.equal(0);
      });
    }

    it('for two attempts of one call at once', async () => {
      const tell = told();
      tell('attempt.started');
      tell('attempt.started', { attempt: 2 });
      tell('attempt.ended', { ...ENDED, attempt: 2 });
      expect(await inflight()).to.equal(1);
      tell('refused', { attempt: 1, code: 'circuit_open' });
      expect(await inflight()).to.equal(1);
      tell('attempt.ended', ENDED);
      expect(await inflight()).to.equal(0);
    });

    it('and never below it, where the beginning was not heard', async () => {
      const tell = told();
      tell('attempt.ended', ENDED);
      tell('left', { where: 'quota' });
      const measured = await test.collect();
      expect(measured.total('sluice.inflight')).to.equal(0);
      expect(measured.total('sluice.queue.size')).to.equal(0);
    });
  });

  describe('bounds', () => {
    const tenants = (measured: Measured): unknown[] =>
      measured.points('sluice.inflight').map(({ attributes }) => attributes['sluice.tenant']);
    const models = (measured: Measured): unknown[] =>
      measured.points('sluice.retries').map(({ attributes }) => attributes['gen_ai.request.model']);

    it('tenants to 50, or to maxTenants; all others are one', async () => {
      for (const [options, expected] of [
        [{}, 51],
        [{ maxTenants: 3 }, 4],
      ] as const) {
        test = testMetrics();
        const tell = told(options);
        for (let n = 0; n < 100; n++) tell('attempt.started', { callId: `c${n}`, tenant: `t${n}` });
        const measured = await test.collect();
        expect(tenants(measured)).to.have.length(expected);
        expect(measured.total('sluice.inflight')).to.equal(100);
        expect(measured.total('sluice.inflight', { 'sluice.tenant': 'other' })).to.equal(101 - expected);
        expect(measured.total('sluice.inflight', { 'sluice.tenant': 't0' })).to.equal(1);
      }
    });

    it('models to 20, or to maxModels, and breakers and limiters with them', async () => {
      for (const [options, expected] of [
        [{}, 21],
        [{ maxModels: 3 }, 4],
      ] as const) {
        test = testMetrics();
        const tell = told(options);
        for (let n = 0; n < 100; n++) {
          tell('retry.scheduled', { model: `m${n}`, code: 'overloaded' });
          tell('breaker.changed', { breaker: `b${n}`, from: 'closed', to: 'open' });
          tell('limit.changed', { limiter: `l${n}`, from: 1, to: 2 });
        }
        const measured = await test.collect();
        expect(models(measured)).to.have.length(expected).and.include('other');
        expect(measured.points('sluice.breaker.state')).to.have.length(expected);
        expect(measured.points('sluice.concurrency.limit')).to.have.length(expected);
      }
    });

    it('refuses wrong options', () => {
      for (const options of [{ maxTenants: 0 }, { maxModels: 1.5 }, { semconv: 'old' as never }]) {
        expect(() => metricObserver(options))
          .to.throw()
          .with.property('code', 'invalid_option');
      }
    });
  });

  describe('finds its meter provider', () => {
    afterEach(() => metrics.disable());

    it('as soon as one is registered', async () => {
      const { onEvent } = metricObserver();
      const event = { type: 'retry.scheduled', callId: 'c', attempt: 1, model: 'm', code: 'overloaded' } as never;
      onEvent?.(event);
      metrics.setGlobalMeterProvider(test.provider);
      onEvent?.(event);
      expect((await test.collect()).total('sluice.retries')).to.equal(1);
    });

    it('again, where another takes its place', async () => {
      const { onEvent } = metricObserver();
      const event = { type: 'retry.scheduled', callId: 'c', attempt: 1, model: 'm', code: 'overloaded' } as never;
      metrics.setGlobalMeterProvider(testMetrics().provider);
      onEvent?.(event);
      metrics.disable();
      metrics.setGlobalMeterProvider(test.provider);
      onEvent?.(event);
      expect((await test.collect()).total('sluice.retries')).to.equal(1);
    });

    it('in its options, whatever is registered', async () => {
      metrics.setGlobalMeterProvider(testMetrics().provider);
      const tell = told();
      tell('retry.scheduled', { code: 'overloaded' });
      expect((await test.collect()).total('sluice.retries')).to.equal(1);
    });

    it('and adds to the numbers of others with the same one', async () => {
      for (const tell of [told(), told()]) {
        tell('attempt.started');
        tell('retry.scheduled', { code: 'overloaded' });
        tell('attempt.ended', ENDED);
      }
      const measured = await test.collect();
      expect(measured.numbers('sluice.retries')).to.deep.equal({ 'error.type=overloaded,gen_ai.request.model=m': 2 });
      expect(measured.total('sluice.attempt.duration')).to.equal(2);
      expect(measured.total('sluice.inflight')).to.equal(0);
    });
  });
});
