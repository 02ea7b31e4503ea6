import { expect } from 'chai';
import { concat, defer, NEVER, Observable, of, retry, Subject, throwError, timer } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import { startTimer } from '../../lib/core/runtime.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { QuotaPort, QuotaRequest } from '../../lib/core/ports.ts';
import { createQuota } from '../../lib/operators/createQuota.ts';
import type { QuotaOptions } from '../../lib/operators/createQuota.ts';
import { throttleByBucket } from '../../lib/operators/throttleByBucket.ts';
import type { CostOption } from '../../lib/operators/throttleByBucket.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { estimateCost } from '../../lib/wire/estimate.ts';
import { guardingOperatorContract, record } from '../contract/guardingOperator.ts';
import { marbles } from '../helpers/marbles.ts';
import { speakingSource } from '../helpers/speakingSource.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

/** A burst of 2, then one every 5 ms. */
const twoThenOnePer5ms: QuotaOptions = { requestsPerMinute: 12_000, burstRequests: 2, arrivalMarginMs: 0 };
const noHints = hintsOf();

describe('throttleByBucket', () => {
  guardingOperatorContract((runtime) => {
    const burst = 20_000;
    const quota = createQuota({ requestsPerMinute: 60_000, burstRequests: burst, maxWaiting: Infinity }, runtime);
    return {
      guard: (onEvent) => throttleByBucket(quota, { runtime, onEvent }),
      waiting: () => quota.snapshot().waiting,
      fill() {
        quota.acquire({ cost: { requests: burst, tokens: 0, explicit: true } }).subscribe();
        return (waiters) => runtime.advance(waiters + 1000);
      },
    };
  });

  it(
    'lets a burst through at once, then one per refill',
    marbles((m) => {
      const quota = createQuota(twoThenOnePer5ms, m.runtime);
      const throttle = throttleByBucket<string>(quota, { runtime: m.runtime });

      m.expectObservable(m.cold('(a|)').pipe(throttle)).toBe('(a|)');
      m.expectObservable(m.cold('(b|)').pipe(throttle)).toBe('(b|)');
      m.expectObservable(m.cold('(c|)').pipe(throttle)).toBe('-----(c|)');
      m.expectObservable(m.cold('(d|)').pipe(throttle)).toBe('----------(d|)');
    }),
  );

  it(
    'subscribes to the source when granted, and not before',
    marbles((m) => {
      const quota = createQuota({ ...twoThenOnePer5ms, burstRequests: 1 }, m.runtime);
      const throttle = throttleByBucket<string>(quota, { runtime: m.runtime });
      const first = m.cold(' --a--|');
      const second = m.cold('--b--|');

      m.expectObservable(first.pipe(throttle)).toBe(' --a--|');
      m.expectObservable(second.pipe(throttle)).toBe('-------b--|');
      m.expectSubscriptions(second.subscriptions).toBe('-----^----!');
    }),
  );

  it(
    'moves the next one up when a waiting one is unsubscribed',
    marbles((m) => {
      const quota = createQuota({ ...twoThenOnePer5ms, burstRequests: 1 }, m.runtime);
      const throttle = throttleByBucket<string>(quota, { runtime: m.runtime });

      m.expectObservable(m.cold('(a|)').pipe(throttle)).toBe('(a|)');
      m.expectObservable(m.cold('(b|)').pipe(throttle), '--!').toBe('');
      m.expectObservable(m.cold('(c|)').pipe(throttle)).toBe('-----(c|)');
    }),
  );

  describe('in virtual time', () => {
    let runtime: VirtualRuntime;
    let requests: QuotaRequest[];

    beforeEach(() => {
      runtime = virtualRuntime();
      requests = [];
    });

    /** A quota that remembers what it was asked for. */
    const spied = (quota: QuotaPort): QuotaPort => ({
      ...quota,
      acquire(request) {
        requests.push(request);
        return quota.acquire(request);
      },
    });
    const costOf = (cost: CostOption | (() => CostOption) | undefined) => {
      const quota = spied(createQuota({ requestsPerMinute: 60_000 }, runtime));
      of(1).pipe(throttleByBucket(quota, { cost, runtime })).subscribe();
      return requests.at(-1)?.cost;
    };

    it('takes one request and no tokens unless told otherwise', () => {
      expect(costOf(undefined)).to.deep.equal({ requests: 1, tokens: 0, explicit: true });
    });

    it('takes a number as tokens that were named', () => {
      expect(costOf(1200)).to.deep.equal({ requests: 1, tokens: 1200, explicit: true });
      expect(costOf({ requests: 3, tokens: 5 })).to.deep.equal({ requests: 3, tokens: 5, explicit: true });
    });

    it('takes an estimate as a guess', () => {
      const estimate = estimateCost({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(4000) }] });

      expect(costOf(estimate)).to.deep.equal({ requests: 1, tokens: estimate.tokens, explicit: false });
    });

    it('asks a cost function for each subscription', () => {
      const quota = spied(createQuota({ requestsPerMinute: 60_000, burstRequests: 50 }, runtime));
      let tokens = 0;
      const throttled = of(1).pipe(throttleByBucket(quota, { cost: () => ++tokens, runtime }));
      throttled.subscribe();
      throttled.subscribe();

      expect(requests.map(({ cost }) => cost.tokens)).to.deep.equal([1, 2]);
    });

    it('emits what a cost function throws, and what is wrong with its answer', () => {
      const quota = createQuota({ requestsPerMinute: 60 }, runtime);
      const error = new Error('no cost');
      const failing = throttleByBucket<number>(quota, {
        runtime,
        cost: () => {
          throw error;
        },
      });

      expect(record(of(1).pipe(failing)).seen).to.deep.equal([error]);
      const [wrong] = record(of(1).pipe(throttleByBucket(quota, { runtime, cost: () => NaN }))).seen;
      expect(wrong).to.include({ code: 'invalid_option' });
      expect(record(of(1).pipe(throttleByBucket(quota, { runtime }))).seen).to.deep.equal([1, '|']);
    });

    it('refuses wrong options at creation', () => {
      const quota = createQuota({ requestsPerMinute: 60 }, runtime);
      for (const [options, name] of [
        [{ cost: -1 }, 'cost'],
        [{ cost: NaN }, 'cost'],
        [{ cost: { tokens: Infinity } }, 'cost.tokens'],
        [{ cost: { requests: -1 } }, 'cost.requests'],
        [{ maxWaitMs: NaN }, 'maxWaitMs'],
        [{ tenant: '' }, 'tenant'],
        [{ priority: '' }, 'priority'],
      ] as const) {
        expect(() => throttleByBucket(quota, options))
          .to.throw(`${name} must be`)
          .with.property('code', 'invalid_option');
      }
    });

    it('asks in the name of the call, unless told otherwise', () => {
      const quota = spied(createQuota({ requestsPerMinute: 60_000, burstRequests: 50 }, runtime));
      const scope = CallScope.start(runtime, {
        id: 'call-1',
        model: 'm',
        tenant: 'acme',
        priority: 'batch',
        conversation: 'c',
        deadlineAtMs: 5000,
      });
      runInScope(scope, () => of(1).pipe(throttleByBucket(quota, { runtime })).subscribe());
      runInScope(scope, () =>
        of(1)
          .pipe(throttleByBucket(quota, { runtime, tenant: 'other', priority: 'high', maxWaitMs: 7 }))
          .subscribe(),
      );

      expect(requests[0]).to.include({
        callId: 'call-1',
        model: 'm',
        tenant: 'acme',
        priority: 'batch',
        conversation: 'c',
        deadlineAtMs: 5000,
      });
      expect(requests[1]).to.include({ tenant: 'other', priority: 'high', maxWaitMs: 7 });
    });

    it('takes its cost again for every retry', () => {
      const quota = createQuota({ requestsPerMinute: 60, burstRequests: 2 }, runtime);
      const startedMs: number[] = [];
      const failing = defer(() => {
        startedMs.push(runtime.clock.now());
        return throwError(() => new SluiceError('bad_request', 'no'));
      });
      failing.pipe(throttleByBucket(quota, { runtime }), retry(2)).subscribe({ error: () => {} });
      runtime.run();

      expect(startedMs.slice(0, 2)).to.deep.equal([0, 0]);
      expect(startedMs[2]).to.be.within(1100, 1103);
    });

    it('refuses a named cost above one minute at once and lets the next pass', () => {
      const quota = createQuota({ tokensPerMinute: 40_000, burstTokens: 667 }, runtime);
      let subscribed = false;
      const source = defer(() => of((subscribed = true)));

      const [error] = record(source.pipe(throttleByBucket(quota, { cost: 60_000, runtime }))).seen;
      expect(error).to.include({ code: 'cost_too_large', limit: 40_000, requested: 60_000, source: 'local' });
      expect((error as SluiceError).message).to.equal(
        'a cost of 60000 tokens can never pass: the quota is 40000 tokens a minute',
      );
      expect(subscribed).to.be.false;
      expect(record(of('small').pipe(throttleByBucket(quota, { cost: 10, runtime }))).seen).to.deep.equal([
        'small',
        '|',
      ]);
    });

    it('refuses at once, and takes nothing, where the wait does not fit before the deadline', () => {
      const quota = createQuota({ requestsPerMinute: 1, burstRequests: 1, arrivalMarginMs: 0 }, runtime);
      of(1).pipe(throttleByBucket(quota, { runtime })).subscribe();
      const scope = CallScope.start(runtime, { deadlineAtMs: 200 });

      const [error] = runInScope(scope, () => record(of(2).pipe(throttleByBucket(quota, { runtime })))).seen;
      expect(error).to.include({ code: 'timeout_deadline', while: 'queue', retryAfterMs: 60_000 });
      expect(quota.snapshot().layers[0]?.requests?.level).to.equal(0);
      expect(runtime.pending).to.equal(0);
    });

    it('refuses after maxWaitMs where the wait could not be foreseen', () => {
      const quota = createQuota({ tokensPerMinute: 6000, settle: 'usage' }, runtime);
      record(NEVER.pipe(throttleByBucket(quota, { cost: 6000, runtime })));
      const { seen } = record(of(1).pipe(throttleByBucket(quota, { cost: 6000, maxWaitMs: 500, runtime })));

      runtime.advance(499);
      expect(seen).to.deep.equal([]);
      runtime.advance(1);
      expect(seen[0]).to.include({ code: 'queue_timeout', while: 'queue', limit: 500 });
      expect((seen[0] as SluiceError).retryAfterMs).to.be.above(0);
      expect(runtime.pending).to.equal(0);
    });

    it('does not count what was unsubscribed before it was sent', () => {
      const quota = createQuota({ requestsPerMinute: 60, burstRequests: 5, tokensPerMinute: 600 }, runtime);
      // A source behind another gate: it has been subscribed to, and has not been sent.
      const gated = new Observable<never>(() => currentScope()?.gateClosed());
      const { subscription } = record(gated.pipe(throttleByBucket(quota, { cost: 100, runtime })));
      expect(quota.snapshot().layers[0]?.tokens?.level).to.equal(500);

      subscription.unsubscribe();
      expect(quota.snapshot().layers[0]).to.deep.include({
        requests: { level: 5, burst: 5, perMinute: 60 },
        tokens: { level: 600, burst: 600, perMinute: 600 },
      });
    });

    it('counts what was unsubscribed after it was sent', () => {
      const quota = createQuota({ requestsPerMinute: 60, burstRequests: 5 }, runtime);
      record(speakingSource(runtime, NEVER).pipe(throttleByBucket(quota, { runtime }))).subscription.unsubscribe();

      expect(quota.snapshot().layers[0]?.requests?.level).to.equal(4);
    });

    it('gives tokens back for a server error, and nothing for a 429', () => {
      const fail = (code: 'server_error' | 'rate_limited', status: number) => {
        const quota = createQuota({ requestsPerMinute: 60, burstRequests: 5, tokensPerMinute: 600 }, runtime);
        record(
          throwError(() => new SluiceError(code, code, { status })).pipe(
            throttleByBucket(quota, { cost: 100, runtime }),
          ),
        );
        const [{ requests, tokens } = {}] = quota.snapshot().layers;
        return [requests?.level, tokens?.level];
      };

      expect(fail('server_error', 500)).to.deep.equal([4, 600]);
      expect(fail('rate_limited', 429)).to.deep.equal([4, 500]);
    });

    it('hears from the source what it used, what is left and how long to wait', () => {
      const quota = createQuota({ requestsPerMinute: 600, tokensPerMinute: 6000, settle: 'usage' }, runtime);
      const events: SluiceEvent[] = [];
      const source = new Observable<string>((subscriber) => {
        const scope = currentScope();
        scope?.dispatched(runtime.clock.now());
        scope?.responded(429);
        const requestsLeft = { limit: 600, remaining: 3, resetMs: undefined, windowMs: 60_000 };
        scope?.hints({ ...noHints, retryAfterMs: 2000, requests: requestsLeft });
        scope?.usage({
          inputTokens: 20,
          outputTokens: 30,
          totalTokens: 50,
          cachedInputTokens: undefined,
          reasoningTokens: undefined,
        });
        scope?.closed();
        subscriber.complete();
      });
      source.pipe(throttleByBucket(quota, { cost: 1000, runtime, onEvent: (e) => events.push(e) })).subscribe();

      const { layers, cooldownMs } = quota.snapshot();
      expect(layers[0]?.requests?.level).to.equal(3);
      expect(layers[0]?.tokens?.level).to.equal(5950);
      expect(cooldownMs).to.be.within(2000, 2200);
      expect(events.map(({ type }) => type)).to.deep.equal(['granted', 'cooldown', 'settled']);
      expect(events[1]).to.include({ waitMs: 2000, reason: 'rate_limited' });
      expect(events[2]).to.include({ reservedTokens: 1000, usedTokens: 50, refundedTokens: 950 });
    });

    it('counts refill only from when a request that took long to prepare was sent', () => {
      const startsOf = (preparedMs: number): number[] => {
        const clocked = virtualRuntime();
        const quota = createQuota({ requestsPerMinute: 600, burstRequests: 2, arrivalMarginMs: 0 }, clocked);
        const starts: number[] = [];
        const slow = new Observable<string>(() => {
          const scope = currentScope();
          starts.push(clocked.clock.now());
          scope?.dispatched(clocked.clock.now());
          return startTimer(clocked, preparedMs, () => scope?.sent(clocked.clock.now()));
        });
        for (let i = 0; i < 3; i++) slow.pipe(throttleByBucket(quota, { runtime: clocked })).subscribe();
        clocked.advance(1000);
        return starts;
      };
      expect(startsOf(0)[2]).to.be.within(100, 101);
      expect(startsOf(60)[2]).to.be.within(160, 161);
    });

    it('grants nothing for the time in which a request that says so is handed over', () => {
      const startsOf = (sentFollows: boolean, ends: 'sent' | 'responded' | 'cancelled' = 'sent'): number[] => {
        const clocked = virtualRuntime();
        const quota = createQuota({ requestsPerMinute: 600, burstRequests: 2, arrivalMarginMs: 0 }, clocked);
        const starts: number[] = [];
        const slow = new Observable<string>((subscriber) => {
          const scope = currentScope();
          starts.push(clocked.clock.now());
          scope?.dispatched(clocked.clock.now(), sentFollows);
          return startTimer(clocked, 1000, () => {
            if (ends === 'sent') scope?.sent(clocked.clock.now());
            if (ends === 'responded') scope?.responded(200);
            if (ends === 'cancelled') subscriber.complete();
          });
        });
        for (let i = 0; i < 4; i++) slow.pipe(throttleByBucket(quota, { runtime: clocked })).subscribe();
        clocked.advance(1300);
        return starts;
      };
      expect(startsOf(false)).to.deep.equal([0, 0, 100, 200]);
      expect(startsOf(true)).to.deep.equal([0, 0, 1100, 1200]);
      for (const ends of ['responded', 'cancelled'] as const) {
        expect(startsOf(true, ends)[2], ends).to.be.within(1000, 1100);
      }
    });

    it('tells why the quota pauses', () => {
      const quota = createQuota({ requestsPerMinute: 600 }, runtime);
      const events: SluiceEvent[] = [];
      const busy = new SluiceError('overloaded', 'busy', { status: 503, retryAfterMs: 3000 });
      record(throwError(() => busy).pipe(throttleByBucket(quota, { runtime, onEvent: (event) => events.push(event) })));

      expect(events.at(-1)).to.include({ type: 'cooldown', waitMs: 3000, reason: 'overloaded' });
    });

    it('tells of a refusal', () => {
      const quota = createQuota({ requestsPerMinute: 20, maxWaiting: 0 }, runtime);
      const events: SluiceEvent[] = [];
      const throttle = throttleByBucket<number>(quota, { runtime, onEvent: (event) => events.push(event) });
      record(of(1).pipe(throttle));
      record(of(2).pipe(throttle));

      expect(events.at(-1)).to.include({ type: 'refused', code: 'queue_full' });
    });

    it('brings 20 callers that got the same hint back at 20 instants, none early, the first one alone', () => {
      const quota = createQuota({ requestsPerMinute: 60_000, burstRequests: 1000, maxWaitMs: Infinity }, runtime);
      const startedMs: number[] = [];
      let answers = new Subject<void>();
      const source = defer(() => {
        startedMs.push(runtime.clock.now());
        const scope = currentScope();
        scope?.dispatched(runtime.clock.now());
        if (runtime.clock.now() > 0) {
          runtime.scheduler.schedule(() => scope?.responded(200), 250);
          return NEVER;
        }
        return concat(
          answers,
          defer(() => {
            scope?.responded(429);
            scope?.hints({ ...noHints, retryAfterMs: 600_000 });
            return throwError(() => new SluiceError('rate_limited', 'wait', { status: 429, retryAfterMs: 600_000 }));
          }),
        );
      });
      for (let n = 0; n < 20; n++) {
        source.pipe(throttleByBucket(quota, { runtime }), retry(1)).subscribe();
      }
      expect(startedMs).to.have.length(20);
      runtime.advance(40);
      answers.complete();
      answers = new Subject();
      runtime.advance(700_000);

      const again = startedMs.slice(20);
      expect(again).to.have.length(20);
      expect(new Set(again).size).to.equal(20);
      expect(Math.min(...again)).to.be.at.least(600_040);
      expect(again[1]! - again[0]!).to.be.above(250);
    });

    it('leaves no timer when nobody waits', () => {
      const quota = createQuota({ requestsPerMinute: 60 }, runtime);
      const throttle = throttleByBucket<number>(quota, { runtime });
      record(of(1).pipe(throttle));
      expect(runtime.pending).to.equal(0);

      record(of(2).pipe(throttle));
      record(of(3).pipe(throttle));
      expect(runtime.pending).to.equal(1);
      runtime.run();
      expect(runtime.pending).to.equal(0);
    });

    it('works on a port that is not ours', () => {
      const seen: string[] = [];
      const foreign: QuotaPort = {
        acquire: () =>
          timer(0).pipe(() =>
            of({
              waitedMs: 0,
              reservedTokens: 0,
              dispatched: () => seen.push('dispatched'),
              observe: () => {},
              settle: () => {},
              release: ({ kind }: { kind: string }) => seen.push(kind),
            }),
          ),
        observe: () => {},
        snapshot: () => ({ waiting: 0, cooldownMs: 0, layers: [] }),
      };
      record(of(1).pipe(throttleByBucket(foreign, { runtime })));

      expect(seen).to.deep.equal(['dispatched', 'success']);
    });
  });
});
