import { expect } from 'chai';
import { defer, NEVER, of, retry, Subject, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { AcquireRequest, ConcurrencyPort } from '../../lib/core/ports.ts';
import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import type { CreateConcurrencyLimitOptions } from '../../lib/operators/createConcurrencyLimit.ts';
import { RELEASE_WITHIN_MS } from '../../lib/operators/HeldRun.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { guardingOperatorContract, record } from '../contract/guardingOperator.ts';
import { marbles } from '../helpers/marbles.ts';
import { speakingSource } from '../helpers/speakingSource.ts';

const failing = (code: ErrorCode): Observable<never> => throwError(() => new SluiceError(code, 'failed'));

describe('limitConcurrency', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  guardingOperatorContract((contractRuntime) => {
    const limit = createConcurrencyLimit({ limit: 1, maxWaiting: Infinity }, contractRuntime);
    const runtime = contractRuntime;
    return {
      guard: (onEvent) => limitConcurrency(limit, { onEvent, runtime }),
      fill: () => {
        const running = NEVER.pipe(limitConcurrency(limit, { runtime })).subscribe();
        return () => running.unsubscribe();
      },
      held: () => limit.snapshot().inFlight,
      waiting: () => limit.snapshot().waiting,
    };
  });

  it(
    'subscribes to a source as an earlier one ends',
    marbles((m) => {
      const limit = createConcurrencyLimit(1, m.runtime);
      const options = { runtime: m.runtime };
      const first = m.cold('    --a--|       ');
      const firstSubs = '       ^----!       ';
      const second = m.cold('        -b-|    ');
      const secondSubs = '      -----^--!    ';
      const expected = '        ------b-|    ';

      m.expectObservable(first.pipe(limitConcurrency(limit, options))).toBe('--a--|');
      m.expectObservable(second.pipe(limitConcurrency(limit, options))).toBe(expected);
      m.expectSubscriptions(first.subscriptions).toBe(firstSubs);
      m.expectSubscriptions(second.subscriptions).toBe(secondSubs);
    }),
  );

  it('lets a retry of a failed source take the place of it', () => {
    const limit = createConcurrencyLimit({ limit: 1, maxWaiting: 0 }, runtime);
    let sent = 0;
    const source = defer(() => (++sent < 3 ? failing('server_error') : of('ok')));
    const { seen } = record(source.pipe(limitConcurrency(limit, { runtime }), retry(2)));

    expect(seen).to.deep.equal(['ok', '|']);
  });

  it('keeps the slot of a cancelled source until its body reader has settled', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const source = speakingSource(runtime, NEVER, { closesAfterMs: 40 });
    record(source.pipe(limitConcurrency(limit, { runtime }))).subscription.unsubscribe();
    const { seen } = record(of('next').pipe(limitConcurrency(limit, { runtime })));
    runtime.advance(39);
    expect(seen).to.deep.equal([]);

    runtime.advance(1);
    expect(seen).to.deep.equal(['next', '|']);
    expect(runtime.pending).to.equal(0);
  });

  it('and for a second at most', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const source = speakingSource(runtime, NEVER, { closesAfterMs: Infinity });
    record(source.pipe(limitConcurrency(limit, { runtime }))).subscription.unsubscribe();
    const { seen } = record(of('next').pipe(limitConcurrency(limit, { runtime })));
    runtime.advance(RELEASE_WITHIN_MS);

    expect(seen).to.deep.equal(['next', '|']);
  });

  describe('adapts', () => {
    const limitWith = (options: CreateConcurrencyLimitOptions): ConcurrencyPort =>
      createConcurrencyLimit({ growEveryMs: 0, maxOverMeasured: Infinity, ...options }, runtime);

    it('to rejections, once for a burst, before the slot can be had', () => {
      const limit = limitWith({ initial: 10, min: 1 });
      const upstreams = Array.from({ length: 15 }, () => new Subject<never>());
      for (const upstream of upstreams) record(upstream.pipe(limitConcurrency(limit, { runtime })));
      const running = (): number => upstreams.filter((upstream) => upstream.observed).length;
      for (const upstream of upstreams.slice(0, 3)) upstream.error(new SluiceError('rate_limited', 'failed'));
      expect(limit.snapshot()).to.deep.equal({ limit: 7, inFlight: 7, waiting: 5 });
      expect(running()).to.equal(7);

      upstreams[3]!.complete();
      expect(running()).to.equal(7);
      expect(upstreams[10]!.observed).to.be.true;
    });

    it('not to unsubscribes and errors of other kinds, though they come all at once', () => {
      const limit = limitWith({ initial: 10 });
      for (let n = 0; n < 20; n++) {
        record(NEVER.pipe(limitConcurrency(limit, { runtime }))).subscription.unsubscribe();
        record(failing('server_error').pipe(limitConcurrency(limit, { runtime })));
        record(failing('queue_full').pipe(limitConcurrency(limit, { runtime })));
      }
      expect(limit.snapshot().limit).to.equal(10);
    });

    it('to the time from dispatch to the first value, not to the time in the queue', () => {
      const limit = limitWith({ initial: 1, min: 1, max: 4, maxFirstContentMs: 50 });
      const answers = [...Array(8).keys()].map(() => new Subject<number>());
      for (const answer of answers) record(answer.pipe(limitConcurrency(limit, { runtime })));
      for (const answer of answers) {
        runtime.advance(40);
        answer.next(1);
        answer.complete();
      }
      expect(limit.snapshot()).to.include({ inFlight: 0, waiting: 0 });
      expect(limit.snapshot().limit).to.be.above(1);
    });
  });

  describe('asks', () => {
    const asked = (scope: CallScope | undefined, options: Parameters<typeof limitConcurrency>[1]): AcquireRequest => {
      let request: AcquireRequest = {};
      const port: ConcurrencyPort = {
        acquire: (given) => {
          request = given;
          return NEVER;
        },
        snapshot: () => ({ limit: 0, inFlight: 0, waiting: 0 }),
      };
      runInScope(scope, () => record(NEVER.pipe(limitConcurrency(port, { runtime, ...options }))));
      return request;
    };
    const said = { model: 'm', tenant: 't', priority: 'p', conversation: 'v', deadlineAtMs: 70 };

    it('in the name of the call', () => {
      const request = asked(CallScope.start(runtime, { id: 'c', ...said }), {});

      expect(request).to.include({ callId: 'c', ...said });
      expect(request.maxWaitMs).to.be.undefined;
    });

    it('in another, where it was told to, with a wait of its own', () => {
      const request = asked(CallScope.start(runtime, said), { tenant: 't2', priority: 'p2', maxWaitMs: 5 });

      expect(request).to.include({ tenant: 't2', priority: 'p2', maxWaitMs: 5, model: 'm' });
    });
  });

  describe('refuses', () => {
    const full = (options: CreateConcurrencyLimitOptions = {}): ConcurrencyPort => {
      const limit = createConcurrencyLimit({ limit: 1, ...options }, runtime);
      record(NEVER.pipe(limitConcurrency(limit, { runtime })));
      return limit;
    };

    it('after maxWaitMs', () => {
      const { seen } = record(of(1).pipe(limitConcurrency(full(), { runtime, maxWaitMs: 30 })));
      runtime.advance(29);
      expect(seen).to.deep.equal([]);

      runtime.advance(1);
      expect(seen[0]).to.include({ code: 'queue_timeout', source: 'local', retryAfterMs: 1000 });
    });

    it('at the deadline of the call', () => {
      const scope = CallScope.start(runtime, { deadlineAtMs: 20 });
      const limit = full();
      const { seen } = runInScope(scope, () => record(of(1).pipe(limitConcurrency(limit, { runtime, maxWaitMs: 30 }))));
      runtime.advance(20);

      expect(seen[0]).to.include({ code: 'timeout_deadline' });
    });

    it('when the queue is full', () => {
      const { seen } = record(of(1).pipe(limitConcurrency(full({ maxWaiting: 0 }), { runtime })));

      expect(seen[0]).to.include({ code: 'queue_full' });
    });

    it('and reports it', () => {
      const events: SluiceEvent[] = [];
      const limit = full({ maxWaiting: 0 });
      record(of(1).pipe(limitConcurrency(limit, { runtime, onEvent: (event) => events.push(event) })));

      expect(events).to.have.length(1);
      expect(events[0]).to.include({ type: 'refused', code: 'queue_full', retryAfterMs: 1000 });
    });
  });

  it('reports a change of the limit to the call that brought it about', () => {
    const events: SluiceEvent[] = [];
    const limit = createConcurrencyLimit({ initial: 10, name: 'gpt' }, runtime);
    const scope = CallScope.start(runtime, { id: 'c' });
    const onEvent = (event: SluiceEvent): void => void events.push(event);
    runInScope(scope, () => record(failing('overloaded').pipe(limitConcurrency(limit, { runtime, onEvent }))));

    expect(events.map(({ type }) => type)).to.deep.equal(['granted', 'limit.changed']);
    expect(events[1]).to.include({ callId: 'c', limiter: 'gpt', from: 10, to: 7, reason: 'rejected' });
  });

  it('throws for a wrong wait when it is applied', () => {
    const limit = createConcurrencyLimit(1, runtime);
    expect(() => limitConcurrency(limit, { maxWaitMs: NaN })).to.throw('maxWaitMs must be');
    expect(() => limitConcurrency(limit, { maxWaitMs: -1 })).to.throw('maxWaitMs must be');
  });

  describe('public reports', () => {
    it('cancel-propagation-06: aborted work never starts and settles at once', () => {
      const limit = createConcurrencyLimit(1, runtime);
      const started: string[] = [];
      const call = (id: string): ReturnType<typeof record> =>
        record(defer(() => (started.push(id), delayed(100, id))).pipe(limitConcurrency(limit, { runtime })));
      const a = call('A');
      call('B').subscription.unsubscribe();
      const c = call('C');
      runtime.advance(10);
      c.subscription.unsubscribe();
      expect(limit.snapshot().waiting).to.equal(0);
      runtime.run();

      expect(started).to.deep.equal(['A']);
      expect(a.seen).to.deep.equal(['A', '|']);
      expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 0, waiting: 0 });
    });

    it('token-accounting-01: a grant that meets an abort is passed on', () => {
      const limit = createConcurrencyLimit(1, runtime);
      const guard = limitConcurrency<string>(limit, { runtime });
      const a = record(delayed(50, 'A').pipe(guard));
      let abortB = (): void => {};
      const b = record(
        delayed(50, 'B').pipe(
          limitConcurrency(limit, { runtime, onEvent: ({ type }) => type === 'granted' && abortB() }),
        ),
      );
      abortB = () => b.subscription.unsubscribe();
      runtime.advance(60);
      const c = record(delayed(50, 'C').pipe(guard));
      runtime.run();

      expect([a.seen, b.seen, c.seen]).to.deep.equal([['A', '|'], [], ['C', '|']]);
      expect(limit.snapshot().inFlight).to.equal(0);
    });

    it('token-accounting-02: a cancelled waiter leaves at once and never starts', () => {
      const limit = createConcurrencyLimit(1, runtime);
      const started: string[] = [];
      const call = (id: string): ReturnType<typeof record> =>
        record(defer(() => (started.push(id), delayed(100, id))).pipe(limitConcurrency(limit, { runtime })));
      call('A');
      const b = call('B');
      runtime.advance(10);
      b.subscription.unsubscribe();
      runtime.advance(10);
      call('C');
      runtime.advance(10);
      expect(limit.snapshot().waiting).to.equal(1);

      runtime.advance(70);
      expect(started).to.deep.equal(['A', 'C']);
    });

    it('aimd-01: calls that started before the last decrease do not decrease again', () => {
      const limit = createConcurrencyLimit({ initial: 128, min: 1, decrease: 0.5 }, runtime);
      const [bad, good] = [new Subject<never>(), new Subject<never>()];
      for (let n = 0; n < 128; n++) record((n < 20 ? bad : good).pipe(limitConcurrency(limit, { runtime })));
      bad.error(new SluiceError('rate_limited', 'failed'));
      good.complete();

      expect(limit.snapshot()).to.deep.equal({ limit: 64, inFlight: 0, waiting: 0 });
    });

    it('aimd-02: reaching the maximum cuts nothing', () => {
      const limit = createConcurrencyLimit({ initial: 9, min: 1, max: 10 }, runtime);
      const limits = new Set<number>();
      for (let n = 0; n < 500; n++) {
        record(delayed(100, n).pipe(limitConcurrency(limit, { runtime })));
        limits.add(limit.snapshot().limit);
      }
      while (runtime.pending > 0) {
        runtime.advance(100);
        limits.add(limit.snapshot().limit);
      }

      expect([...limits].sort((a, b) => a - b)).to.deep.equal([9, 10]);
      expect(limit.snapshot().limit).to.equal(10);
    });

    it('aimd-05: aborts and client errors are not congestion, and shrinking cancels nothing', () => {
      const limit = createConcurrencyLimit({ initial: 10, min: 1, decrease: 0.5 }, runtime);
      const results = ['400', '400', 'abort', 'abort', '429', ...Array<string>(5).fill('200')];
      const calls = results.map((result) => {
        const source = new Subject<string>();
        return { result, source, call: record(source.pipe(limitConcurrency(limit, { runtime }))) };
      });
      runtime.advance(100);
      for (const { result, source, call } of calls) {
        if (result === '400') source.error(new SluiceError('bad_request', 'failed'));
        if (result === 'abort') call.subscription.unsubscribe();
        if (result === '429') source.error(new SluiceError('rate_limited', 'failed'));
        if (result !== '200') continue;
        source.next('ok');
        source.complete();
      }

      expect(limit.snapshot().limit).to.equal(5);
      expect(calls.slice(5).map(({ call }) => call.seen)).to.deep.equal(Array(5).fill(['ok', '|']));
    });
  });

  /** `value` after `ms`. */
  function delayed<T>(ms: number, value: T): Observable<T> {
    const done = new Subject<T>();
    return defer(() => {
      runtime.scheduler.schedule(() => {
        done.next(value);
        done.complete();
      }, ms);
      return done;
    });
  }
});
