import { expect } from 'chai';
import { concat, defer, NEVER, of, retry, Subject, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { BreakerPort } from '../../lib/core/ports.ts';
import { circuitBreak } from '../../lib/operators/circuitBreak.ts';
import { createBreaker } from '../../lib/operators/createBreaker.ts';
import type { CreateBreakerOptions } from '../../lib/operators/createBreaker.ts';
import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { guardingOperatorContract, record } from '../contract/guardingOperator.ts';
import { marbles } from '../helpers/marbles.ts';
import { speakingSource } from '../helpers/speakingSource.ts';

const failing = (code: ErrorCode = 'server_error'): Observable<never> =>
  throwError(() => new SluiceError(code, 'failed'));

/** Opens at the first failure, for 50 ms; lets one probe. */
const brittle = { consecutiveFailures: 1, openMs: 50, halfOpenMaxProbes: 1, rampMs: 0 };

describe('circuitBreak', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  /** Runs `source` through a breaker; `'|'` or the code it ended with, `undefined` while it runs. */
  const endOf = (breaker: BreakerPort, source: Observable<unknown>): string | undefined => {
    const end = record(source.pipe(circuitBreak(breaker, { runtime }))).seen.at(-1);
    return end instanceof SluiceError ? end.code : end === '|' ? end : undefined;
  };

  const breakerWith = (options: CreateBreakerOptions = brittle): BreakerPort => createBreaker(options, runtime);

  const halfOpen = (options: CreateBreakerOptions = {}): BreakerPort => {
    const breaker = breakerWith({ ...brittle, ...options });
    endOf(breaker, failing());
    runtime.advance(50);
    return breaker;
  };

  guardingOperatorContract((contractRuntime) => {
    const breaker = createBreaker({}, contractRuntime);
    return { guard: (onEvent) => circuitBreak(breaker, { onEvent, runtime: contractRuntime }) };
  });

  it(
    'passes values on as they come while closed, and refuses without subscribing while open',
    marbles((m) => {
      const breaker = createBreaker({ consecutiveFailures: 1, openMs: 10 }, m.runtime);
      const error = new SluiceError('server_error', 'failed');
      const source = m.cold('  -a-#  ', undefined, error);
      const subs = '           ^--!  ';
      const expected = '       -a-#  ';
      m.expectObservable(source.pipe(circuitBreak(breaker, { runtime: m.runtime }))).toBe(expected, undefined, error);
      m.expectSubscriptions(source.subscriptions).toBe(subs);
      m.flush();

      const { seen } = record(source.pipe(circuitBreak(breaker, { runtime: m.runtime })));
      expect(seen[0]).to.include({ code: 'circuit_open', retryAfterMs: 10 });
    }),
  );

  it('says how long to wait, which gets shorter', () => {
    const breaker = breakerWith();
    endOf(breaker, failing());
    runtime.advance(20);
    const [refusal] = record(of(1).pipe(circuitBreak(breaker, { runtime }))).seen;

    expect(refusal).to.include({ code: 'circuit_open', source: 'local', retryAfterMs: 30 });
  });

  it('counts a failure after the first value', () => {
    const breaker = breakerWith();
    endOf(breaker, concat(of('part'), failing('stream_truncated')));

    expect(breaker.snapshot().state).to.equal('open');
  });

  it('is not fed by refusals from above', () => {
    const breaker = breakerWith({ ...brittle, errorRatio: 0.1, minCalls: 1 });
    const codes: ErrorCode[] = ['queue_full', 'queue_timeout', 'cost_too_large', 'timeout_deadline', 'circuit_open'];
    for (const code of codes) endOf(breaker, failing(code));

    expect(breaker.snapshot()).to.include({ state: 'closed', calls: 0 });
  });

  describe('when it opens', () => {
    it('ends those that still wait above it with circuit_open, holding nothing and never sent', () => {
      const breaker = breakerWith();
      const limit = createConcurrencyLimit(1, runtime);
      const sent: string[] = [];
      const running = new Subject<never>();
      const ask = (name: string, body: Observable<unknown>): unknown[] =>
        record(
          speakingSource(
            runtime,
            defer(() => (sent.push(name), body)),
          ).pipe(limitConcurrency(limit, { runtime }), circuitBreak(breaker, { runtime })),
        ).seen;
      ask('running', running);
      const queued = Array.from({ length: 50 }, (_, n) => ask(`queued ${n}`, of(n)));
      endOf(breaker, failing());

      for (const seen of queued) expect(seen[0]).to.include({ code: 'circuit_open', retryAfterMs: 50, while: 'queue' });
      expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 0 });
      running.complete();
      expect(sent).to.deep.equal(['running']);
    });

    it('lets go on what has been sent, whether its source speaks or not', () => {
      const breaker = breakerWith();
      const silent = new Subject<number>();
      const speaking = new Subject<number>();
      const seen = [silent, speakingSource(runtime, speaking)].map(
        (source) => record(source.pipe(circuitBreak(breaker, { runtime }))).seen,
      );
      endOf(breaker, failing());
      silent.next(1);
      silent.complete();
      speaking.next(1);
      speaking.complete();

      expect(seen).to.deep.equal([
        [1, '|'],
        [1, '|'],
      ]);
      expect(breaker.snapshot().state).to.equal('open');
    });

    it('stops the retries that stand below it', () => {
      const breaker = breakerWith({ consecutiveFailures: 2, openMs: 50 });
      let sent = 0;
      const { seen } = record(defer(() => (sent++, failing())).pipe(circuitBreak(breaker, { runtime }), retry(3)));

      expect(sent).to.equal(2);
      expect(seen[0]).to.include({ code: 'circuit_open' });
    });
  });

  describe('while half-open', () => {
    it('takes the first value for a sign of life, so that a long answer is not stuck', () => {
      const breaker = halfOpen({ halfOpenMaxMs: 200 });
      const answer = new Subject<number>();
      record(answer.pipe(circuitBreak(breaker, { runtime })));
      answer.next(1);
      runtime.advance(60_000);
      expect(breaker.snapshot().state).to.equal('half_open');

      answer.complete();
      expect(breaker.snapshot().state).to.equal('closed');
    });

    it('takes a probe for stuck that has been silent for halfOpenMaxMs, and opens for longer', () => {
      const breaker = halfOpen({ halfOpenMaxMs: 200 });
      endOf(breaker, NEVER);
      runtime.advance(200);
      const [refusal] = record(of(1).pipe(circuitBreak(breaker, { runtime }))).seen;

      expect(refusal).to.include({ code: 'circuit_open', retryAfterMs: 100 });
    });

    it('ends a stuck probe that has not been sent yet', () => {
      const breaker = halfOpen({ halfOpenMaxMs: 200 });
      const limit = createConcurrencyLimit(1, runtime);
      record(NEVER.pipe(limitConcurrency(limit, { runtime })));
      const guarded = of(1).pipe(limitConcurrency(limit, { runtime }), circuitBreak(breaker, { runtime }));
      const { seen } = record(guarded);
      runtime.advance(200);

      expect(seen[0]).to.include({ code: 'circuit_open', while: 'queue' });
      expect(limit.snapshot().waiting).to.equal(0);
      expect(runtime.pending).to.equal(0);
    });
  });

  it('tells its listener and those of the call of refusals and of changes that the call brought about', () => {
    const events: SluiceEvent[] = [];
    const ofCall: string[] = [];
    const breaker = breakerWith({ ...brittle, name: 'gpt' });
    const scope = CallScope.start(runtime, { id: 'c', model: 'm', onEvent: ({ type }) => ofCall.push(type) });
    runtime.advance(7);
    const guard = circuitBreak(breaker, { runtime, onEvent: (event) => events.push(event) });
    runInScope(scope, () => record(failing().pipe(guard)));
    runInScope(scope, () => record(of(1).pipe(guard)));

    const context = { callId: 'c', attempt: 1, model: 'm', tenant: undefined, conversation: undefined, atMs: 7 };
    const reason = 'consecutive_failures';
    expect(events).to.deep.equal([
      { ...context, type: 'breaker.changed', breaker: 'gpt', from: 'closed', to: 'open', reason },
      { ...context, type: 'refused', code: 'circuit_open', retryAfterMs: 50 },
    ]);
    expect(ofCall).to.deep.equal(['breaker.changed', 'refused']);
  });

  it('works in real time by default', () => {
    const breaker = createBreaker(brittle);
    record(failing().pipe(circuitBreak(breaker)));
    const [refusal] = record(of(1).pipe(circuitBreak(breaker))).seen;

    expect((refusal as SluiceError).retryAfterMs).to.be.within(1, 50);
  });

  describe('public reports', () => {
    const cancelled = (breaker: BreakerPort): void =>
      record(NEVER.pipe(circuitBreak(breaker, { runtime }))).subscription.unsubscribe();

    it("breaker-count-01: the caller's own timeouts and aborts are neutral", () => {
      const breaker = breakerWith({ consecutiveFailures: 5 });
      for (let n = 0; n < 6; n++) cancelled(breaker);
      for (let n = 0; n < 6; n++) endOf(breaker, failing('aborted'));

      expect(breaker.snapshot().state).to.equal('closed');
    });

    it('breaker-count-02: there is a minimum volume before ratios count', () => {
      const breaker = breakerWith({ errorRatio: 0.5, minCalls: 5 });
      endOf(breaker, failing('overloaded'));

      expect(breaker.snapshot().state).to.equal('closed');
    });

    it("breaker-count-03: the client's mistakes are not evidence against the service", () => {
      const breaker = breakerWith({ consecutiveFailures: 3 });
      const codes: ErrorCode[] = ['bad_request', 'auth', 'not_found', 'bad_request', 'aborted', 'bad_request'];
      for (const code of codes) endOf(breaker, failing(code));

      expect(breaker.snapshot()).to.include({ state: 'closed', calls: 0 });
    });

    it('breaker-count-04: 429 opens it only if it was told so', () => {
      const [breaker, strict] = [false, true].map((countRateLimited) =>
        breakerWith({ consecutiveFailures: 3, countRateLimited }),
      );
      for (let n = 0; n < 5; n++) {
        endOf(breaker!, failing('rate_limited'));
        endOf(strict!, failing('rate_limited'));
      }

      expect(breaker!.snapshot().state).to.equal('closed');
      expect(strict!.snapshot().state).to.equal('open');
    });

    it('breaker-count-05: attempts are counted, and the retries of running calls stop when it opens', () => {
      const breaker = breakerWith({ consecutiveFailures: 5 });
      let requests = 0;
      const call = defer(() => (requests++, failing('overloaded'))).pipe(circuitBreak(breaker, { runtime }), retry(2));
      const ends = [record(call), record(call)].map(({ seen }) => (seen[0] as SluiceError).code);

      expect(requests).to.equal(5);
      expect(breaker.snapshot().state).to.equal('open');
      expect(ends).to.deep.equal(['overloaded', 'circuit_open']);
    });

    it('breaker-halfopen-01: a neutral outcome frees the place of the probe', () => {
      const breaker = halfOpen();

      expect(endOf(breaker, failing('bad_request'))).to.equal('bad_request');
      expect(endOf(breaker, of('ok'))).to.equal('|');
      expect(breaker.snapshot().state).to.equal('closed');
    });

    it('breaker-halfopen-02: only as many probe as may', () => {
      const breaker = halfOpen();
      const upstream = new Subject<never>();
      const ends = Array.from({ length: 20 }, () => record(upstream.pipe(circuitBreak(breaker, { runtime }))).seen);
      upstream.error(new SluiceError('overloaded', 'failed'));
      const codes = ends.map(([end]) => (end as SluiceError).code);

      expect(codes.filter((code) => code === 'overloaded')).to.have.length(1);
      expect(codes.filter((code) => code === 'circuit_open')).to.have.length(19);
      expect(breaker.snapshot().state).to.equal('open');
    });

    for (const id of ['breaker-halfopen-03', 'breaker-halfopen-04']) {
      it(`${id}: a cancelled probe is unsubscribed from and frees its place for the next`, () => {
        const breaker = halfOpen();
        const upstream = new Subject();
        record(upstream.pipe(circuitBreak(breaker, { runtime }))).subscription.unsubscribe();
        expect(upstream.observed).to.be.false;

        if (id === 'breaker-halfopen-04') runtime.advance(60);
        expect(endOf(breaker, of('ok'))).to.equal('|');
        expect(breaker.snapshot().state).to.equal('closed');
      });
    }

    it('breaker-halfopen-09: no probes is a wrong option', () => {
      expect(() => breakerWith({ halfOpenMaxProbes: 0 })).to.throw('halfOpenMaxProbes must be');
      expect(() => breakerWith({ halfOpenShare: 0 })).to.throw('halfOpenShare must be');
    });
  });
});
