import { expect } from 'chai';
import fc from 'fast-check';
import { NEVER } from 'rxjs';
import type { Subscription } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';
import { metricObserver } from '../../lib/telemetry/metricObserver.ts';
import { traceCall } from '../../lib/telemetry/traceCall.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { Reply } from '../helpers/fakeProvider.ts';
import { testMetrics } from '../helpers/metricsOf.ts';
import type { Measured } from '../helpers/metricsOf.ts';

const POLICY = {
  deadlineMs: 400,
  maxInFlight: 3,
  quota: { account: { requestsPerMinute: 1_200, burstRequests: 2, maxWaiting: 4, maxWaitMs: 200 } },
  models: {
    a: {
      fallback: ['b'],
      retry: { attempts: 3, baseMs: 5, capMs: 20 },
      breaker: { consecutiveFailures: 3, openMs: 50 },
    },
    default: { retry: { attempts: 2, baseMs: 5, capMs: 20 } },
  },
  conversations: { maxWaiting: 2, maxWaitMs: 100 },
};

const CODES: readonly ErrorCode[] = ['rate_limited', 'overloaded', 'server_error', 'bad_request', 'connection'];
const REPLY: fc.Arbitrary<Reply> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ firstMs: fc.integer({ min: 0, max: 30 }), endMs: fc.integer({ min: 30, max: 80 }) }),
  },
  { weight: 3, arbitrary: fc.constantFrom(...CODES).map((error) => ({ error, fields: { status: 500 } })) },
  { weight: 1, arbitrary: fc.constant({ error: 'stream_truncated' as const, text: 'part' }) },
  { weight: 1, arbitrary: fc.constant({ hangs: true }) },
);
const LIFE = fc.record({
  model: fc.constantFrom('a', 'b', 'c'),
  tenant: fc.constantFrom(undefined, 't1', 't2', 't3'),
  conversation: fc.constantFrom(undefined, 'k1', 'k2'),
  whole: fc.boolean(),
  waitMs: fc.integer({ min: 0, max: 25 }),
  leaveAfterMs: fc.option(fc.integer({ min: 0, max: 120 }), { nil: undefined }),
  abortAfterMs: fc.option(fc.integer({ min: 0, max: 120 }), { nil: undefined, freq: 4 }),
});

describe('metrics of the calls of a client', () => {
  it('agree with what happened, at every moment and at the end, whatever happens to calls', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(LIFE, { minLength: 1, maxLength: 15 }),
        fc.array(REPLY, { minLength: 1, maxLength: 12 }),
        async (lives, replies) => {
          const runtime = virtualRuntime();
          const test = testMetrics();
          const provider = fakeProvider(runtime, (_model, index) => replies[index % replies.length] as Reply);
          const telemetry = metricObserver({ meterProvider: test.provider, maxTenants: 2 });
          const sluice = createSluice(provider.source, POLICY, { runtime, telemetry });
          const ends = { success: 0, failure: 0, cancelled: 0 };

          const begin = ({
            model,
            tenant,
            conversation,
            whole,
            leaveAfterMs,
            abortAfterMs,
          }: (typeof lives)[0]): void => {
            const aborter = new AbortController();
            const request = { model, messages: [{ role: 'user' as const, content: 'Hello' }] };
            const options = { tenant, conversation, signal: aborter.signal };
            let over = false;
            const end = (how: keyof typeof ends): void => {
              if (!over) ends[how]++;
              over = true;
            };
            const call$ = whole ? sluice.complete(request, options) : sluice.chat(request, options);
            const call: Subscription = (call$ as ReturnType<typeof sluice.chat>).subscribe({
              complete: () => end('success'),
              error: ({ code }: { code: ErrorCode }) => end(code === 'aborted' ? 'cancelled' : 'failure'),
            });
            if (leaveAfterMs !== undefined) {
              runtime.scheduler.schedule(() => {
                call.unsubscribe();
                end('cancelled');
              }, leaveAfterMs);
            }
            if (abortAfterMs !== undefined) runtime.scheduler.schedule(() => aborter.abort(), abortAfterMs);
          };

          for (const life of lives) {
            begin(life);
            runtime.advance(life.waitMs);
            agree(await test.collect(), sluice.snapshot(), provider.open);
          }
          runtime.advance(5_000);

          const measured = await test.collect();
          agree(measured, sluice.snapshot(), 0);
          for (const [outcome, number] of Object.entries(ends)) {
            expect(measured.total('sluice.calls', { 'sluice.outcome': outcome }), outcome).to.equal(number);
          }
          expect(measured.total('sluice.calls')).to.equal(lives.length);
          expect(measured.total('sluice.requests')).to.equal(provider.seen.length);
          expect(measured.total('sluice.attempt.duration')).to.equal(provider.seen.length);
          expect(measured.sum('sluice.call.attempts') || 0).to.equal(provider.seen.length);
          for (const model of ['a', 'b', 'c']) {
            const sent = provider.seen.filter((attempt) => attempt.model === model).length;
            expect(measured.total('sluice.requests', { 'gen_ai.request.model': model }), model).to.equal(sent);
          }
          expect(measured.total('gen_ai.client.operation.duration')).to.equal(ends.success + ends.failure);
          expect(measured.total('gen_ai.client.token.usage', { 'gen_ai.token.type': 'output' })).to.equal(ends.success);
          for (const name of ['sluice.inflight', 'sluice.queue.size']) {
            for (const { value } of measured.points(name)) expect(value, name).to.equal(0);
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  it('count a call of a client within a traced pipe once, whoever observes it', async () => {
    for (const shared of [true, false]) {
      const runtime = virtualRuntime();
      const { provider: meterProvider, collect } = testMetrics();
      const provider = fakeProvider(runtime, (_model, index) => (index === 0 ? { error: 'overloaded' } : {}));
      const outer = metricObserver({ meterProvider });
      const telemetry = shared ? outer : metricObserver({ meterProvider });
      const sluice = createSluice(provider.source, POLICY, { runtime, telemetry });
      const request = { model: 'a', messages: [{ role: 'user' as const, content: 'Hello' }] };
      sluice
        .chat(request)
        .pipe(traceCall({ telemetry: outer, runtime }))
        .subscribe();
      runtime.advance(1_000);

      const measured = await collect();
      expect(measured.total('sluice.calls', { 'sluice.outcome': 'success' })).to.equal(1);
      expect(measured.total('sluice.requests')).to.equal(2);
      expect(measured.total('sluice.retries')).to.equal(1);
      expect(measured.total('gen_ai.client.operation.duration')).to.equal(1);
      expect(measured.total('sluice.inflight')).to.equal(0);
    }
  });

  it('come back to 0 for a pipe by hand that only listens, also where its consumer leaves a queue', async () => {
    const runtime = virtualRuntime();
    const { provider: meterProvider, collect } = testMetrics();
    const { onEvent } = metricObserver({ meterProvider });
    const limit = createConcurrencyLimit({ limit: 1 }, runtime);
    const subscribe = () => NEVER.pipe(limitConcurrency(limit, { onEvent, runtime })).subscribe();
    const [holds, waits, alsoWaits] = [subscribe(), subscribe(), subscribe()];
    const waiting = async (): Promise<number> =>
      (await collect()).total('sluice.queue.size', { 'sluice.queue': 'concurrency' });

    expect(await waiting()).to.equal(2);
    waits.unsubscribe();
    expect(await waiting()).to.equal(1);
    holds.unsubscribe();
    expect(await waiting()).to.equal(0);
    alsoWaits.unsubscribe();
    expect(await waiting()).to.equal(0);
  });
});

function agree(
  measured: Measured,
  { admission, conversations }: ReturnType<ReturnType<typeof createSluice>['snapshot']>,
  open: number,
): void {
  expect(measured.total('sluice.inflight')).to.equal(open);
  expect(measured.total('sluice.queue.size', { 'sluice.queue': 'quota' })).to.equal(admission.waiting);
  expect(measured.total('sluice.queue.size', { 'sluice.queue': 'lane' })).to.equal(conversations.waiting);
}
