import { expect } from 'chai';
import { EMPTY, NEVER, Observable, of, range, Subject, take, throwError } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { createRetryBudget } from '../../lib/operators/createRetryBudget.ts';
import { RETRY_DEFAULTS } from '../../lib/operators/RetryWithJitterOptions.ts';
import type { RetryWithJitterOptions } from '../../lib/operators/RetryWithJitterOptions.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { classifyResponse } from '../../lib/wire/classify.ts';
import { marbles } from '../helpers/marbles.ts';
import { failed, recording, scripted, speaking, thrown } from '../helpers/scripted.ts';
import type { Step } from '../helpers/scripted.ts';

describe('retryWithJitter', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  const withoutJitter = { baseMs: 100, jitter: 'none' } as const;

  function run(options: RetryWithJitterOptions<string> & { restarts?: false }, ...steps: Step[]) {
    const script = scripted(runtime, ...steps);
    const seen = recording(script.source.pipe(retryWithJitter({ runtime, ...options })));
    return { script, seen };
  }

  it(
    'subscribes again after a failure, with a wait in between',
    marbles((m) => {
      const sources = [m.cold('--#', undefined, failed('overloaded')), m.cold('-a-b-|')];
      let taken = 0;
      const source = new Observable<string>((subscriber) => sources[taken++]!.subscribe(subscriber));
      const expected = '------a-b-|';

      m.expectObservable(source.pipe(retryWithJitter({ baseMs: 3, jitter: 'none', runtime: m.runtime }))).toBe(
        expected,
      );
      m.expectSubscriptions(sources[0]!.subscriptions).toBe('^-!');
      m.expectSubscriptions(sources[1]!.subscriptions).toBe('-----^----!');
    }),
  );

  it('passes on sources that are empty, silent, of one value and of many', () => {
    const operator = () => retryWithJitter<number>({ runtime });
    expect(recording(EMPTY.pipe(operator()))).to.include({ done: true });
    expect(recording(NEVER.pipe(operator()))).to.deep.include({ done: false, values: [] });
    expect(recording(of(1).pipe(operator()))).to.deep.include({ done: true, values: [1] });
    expect(recording(range(0, 100).pipe(operator())).values).to.have.length(100);
    expect(runtime.pending).to.equal(0);
  });

  it('stops a synchronous source as soon as the one downstream has had enough', () => {
    let made = 0;
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && made < 1000) subscriber.next(made++);
    });
    expect(recording(endless.pipe(retryWithJitter({ runtime }), take(3))).values).to.deep.equal([0, 1, 2]);
    expect(made).to.equal(3);
  });

  it('tears an attempt down before it waits for the next', () => {
    const { script, seen } = run(
      withoutJitter,
      { error: failed('overloaded') },
      { afterMs: 5, error: failed('connection') },
      { values: ['ok'] },
    );
    expect(script.log).to.deep.equal(['subscribe', 'teardown']);
    runtime.run();

    expect(script.log).to.deep.equal(['subscribe', 'teardown', 'subscribe', 'teardown', 'subscribe', 'teardown']);
    expect(seen).to.deep.include({ values: ['ok'], done: true });
  });

  describe('waits', () => {
    it('doubles from baseMs up to capMs', () => {
      const { script } = run({ ...withoutJitter, attempts: 5, capMs: 300 }, { error: failed('overloaded') });
      runtime.run();
      expect(script.startsMs).to.deep.equal([0, 100, 300, 600, 900]);
    });

    it('draws a full jitter by default', () => {
      const { script } = run({}, { error: failed('overloaded') });
      runtime.run();
      const waits = script.startsMs.slice(1).map((atMs, n) => atMs - script.startsMs[n]!);
      waits.forEach((waitMs, n) => expect(waitMs).to.be.within(0, RETRY_DEFAULTS.baseMs * 2 ** n));
      expect(new Set(waits).size).to.equal(4);
    });

    it('hands a decorrelated jitter the wait before', () => {
      const seeded = virtualRuntime({ seed: 3 });
      const script = scripted(seeded, { error: failed('overloaded') });
      const steady = { ...seeded, random: () => 1 - Number.EPSILON };
      recording(script.source.pipe(retryWithJitter({ baseMs: 100, jitter: 'decorrelated', runtime: steady })));
      seeded.run();
      expect(script.startsMs.map(Math.round)).to.deep.equal([0, 300, 1200, 3900, 11_900]);
    });

    it('keeps fifty callers of one failing provider apart', () => {
      const starts = Array.from({ length: 50 }, () => {
        const { script } = run({ baseMs: 1000, attempts: 2 }, { error: failed('overloaded') }, { values: ['ok'] });
        return script;
      });
      runtime.run();
      expect(new Set(starts.map(({ startsMs }) => startsMs[1])).size).to.equal(50);
    });

    it('makes 2,000 attempts of a synchronous source without a wait, and keeps the stack flat', () => {
      const { script, seen } = run({ baseMs: 0, attempts: 2000 }, { error: failed('overloaded') });
      runtime.run();
      expect(script.startsMs).to.have.length(2000);
      expect(seen.error).to.include({ code: 'overloaded' });
      expect(seen.error?.attempts).to.have.length(2000);
    });
  });

  describe('attempts', () => {
    it('makes five by default, then passes on the last failure', () => {
      const { script, seen } = run(
        {},
        { error: failed('overloaded') },
        { error: failed('server_error', { status: 500 }) },
      );
      runtime.run();
      expect(script.startsMs).to.have.length(5);
      expect(seen.error).to.include({ code: 'server_error', status: 500 });
      expect(seen.error?.attempts.map(({ attempt, code }) => [attempt, code])).to.deep.equal([
        [1, 'overloaded'],
        [2, 'server_error'],
        [3, 'server_error'],
        [4, 'server_error'],
        [5, 'server_error'],
      ]);
    });

    it('makes as many as it is told', () => {
      const { script } = run({ attempts: 1 }, { error: failed('overloaded') });
      runtime.run();
      expect(script.startsMs).to.have.length(1);
    });

    it('counts those that other models have had towards maxAttempts', () => {
      const scope = CallScope.start(runtime);
      scope.call.dispatched = 2;
      const script = scripted(runtime, { error: failed('overloaded') });
      recording(script.source.pipe(retryWithJitter({ maxAttempts: 4, runtime })), scope);
      runtime.run();
      expect(script.startsMs).to.have.length(2);
    });

    it('starts afresh for each subscription of one assembled observable', () => {
      const script = scripted(runtime, { error: failed('overloaded') });
      const assembled = script.source.pipe(retryWithJitter({ attempts: 3, runtime }));
      for (let n = 1; n <= 3; n++) {
        const { error } = recording(assembled);
        expect(error).to.equal(undefined);
        runtime.run();
        expect(script.startsMs).to.have.length(3 * n);
      }
    });

    it('numbers the frames of its attempts, and leaves alone what a source has recorded', () => {
      const scope = CallScope.start(runtime, { model: 'm1' });
      const script = scripted(runtime, { error: failed('rate_limited', { status: 429 }) });
      const seen = recording(
        speaking(runtime, 'm1', script.source).pipe(retryWithJitter({ attempts: 3, runtime })),
        scope,
      );
      runtime.run();

      expect(script.scopes.map((frame) => frame?.attempt)).to.deep.equal([1, 2, 3]);
      expect(script.scopes.map((frame) => frame?.callId)).to.deep.equal(Array(3).fill(scope.callId));
      expect(seen.error?.attempts.map(({ attempt, model }) => [attempt, model])).to.deep.equal([
        [1, 'm1'],
        [2, 'm1'],
        [3, 'm1'],
      ]);
      expect(seen.error).to.include({ attempt: 3, model: 'm1' });
      expect(scope.call.dispatched).to.equal(3);
    });

    it('counts the attempts of a source that does not speak to the scope', () => {
      const scope = CallScope.start(runtime);
      const script = scripted(runtime, { afterMs: 20, error: failed('connection') });
      recording(script.source.pipe(retryWithJitter({ attempts: 2, model: 'm7', runtime })), scope);
      runtime.run();

      expect(script.scopes.map((frame) => frame?.attempt)).to.deep.equal([1, 2]);
      expect(scope.call.dispatched).to.equal(2);
      expect(scope.call.failed[1]).to.deep.equal({
        attempt: 2,
        model: 'm7',
        code: 'connection',
        status: undefined,
        requestId: undefined,
        retryAfterMs: undefined,
        durationMs: 20,
      });
    });
  });

  describe('what is retried', () => {
    for (const code of ['rate_limited', 'overloaded', 'server_error', 'conflict', 'connection', 'timeout'] as const) {
      it(`retries ${code}`, () => {
        const { seen } = run({}, { error: failed(code) }, { values: ['ok'] });
        runtime.run();
        expect(seen.values).to.deep.equal(['ok']);
      });
    }

    for (const code of [
      'quota_exhausted',
      'request_too_large',
      'context_too_long',
      'content_filtered',
      'bad_request',
      'auth',
      'not_found',
      'circuit_open',
      'queue_full',
      'queue_timeout',
      'cost_too_large',
      'limiter_unavailable',
      'timeout_deadline',
      'aborted',
      'superseded',
      'closed',
    ] as const) {
      it(`passes ${code} on at once`, () => {
        const { script, seen } = run({}, { error: failed(code, { retryAfterMs: 5 }) });
        expect(seen.error).to.include({ code });
        expect(script.startsMs).to.have.length(1);
        expect(runtime.pending).to.equal(0);
      });
    }

    it('follows what the provider said of retrying over the code', () => {
      expect(run({}, { error: failed('overloaded', { retryable: false }) }).seen.error?.code).to.equal('overloaded');
      const { seen } = run({}, { error: failed('bad_request', { retryable: true }) }, { values: ['ok'] });
      runtime.run();
      expect(seen.values).to.deep.equal(['ok']);
    });

    it('never retries a local refusal, whatever shouldRetry or the error says', () => {
      const { script } = run({ shouldRetry: () => true }, { error: failed('circuit_open', { retryable: true }) });
      runtime.run();
      expect(script.startsMs).to.have.length(1);
    });

    it('asks shouldRetry about failures of a provider', () => {
      const { script } = run(
        { shouldRetry: ({ code }) => code === 'auth' },
        { error: failed('auth') },
        {
          error: failed('overloaded'),
        },
      );
      runtime.run();
      expect(script.startsMs).to.have.length(2);
    });

    it('passes on what shouldRetry throws', () => {
      const broken = new Error('broken');
      const { seen } = run(
        {
          shouldRetry: () => {
            throw broken;
          },
        },
        { error: failed('overloaded') },
      );
      expect(seen.error).to.equal(broken);
    });

    it('classifies what is thrown by others, and retries it by its class', () => {
      const reset = Object.assign(new Error('socket'), { code: 'ECONNRESET' });
      const { seen } = run({}, { error: reset }, { error: new TypeError('a mistake') });
      runtime.run();
      expect(seen.error).to.include({ code: 'invalid_request' });
      expect(seen.error?.attempts.map(({ code }) => code)).to.deep.equal(['connection', 'invalid_request']);
    });

    it('lets shouldRetry decide on errors that nothing knows', () => {
      const { seen } = run({ shouldRetry: () => true }, { error: new Error('odd') }, { values: ['ok'] });
      runtime.run();
      expect(seen.values).to.deep.equal(['ok']);
    });

    it('does not retry an abort that others threw', () => {
      const aborted = Object.assign(new Error('stop'), { name: 'AbortError' });
      const { script, seen } = run({ shouldRetry: () => true }, { error: aborted });
      runtime.run();
      expect(script.startsMs).to.have.length(1);
      expect(seen.error?.code).to.equal('aborted');
    });
  });

  describe('hints', () => {
    it('waits no shorter than the provider asked for', () => {
      const { script } = run(
        { baseMs: 10 },
        { error: failed('rate_limited', { retryAfterMs: 5000 }) },
        { values: ['ok'] },
      );
      runtime.run();
      expect(script.startsMs[1]).to.be.within(5000, 5500);
    });

    it('brings callers with one hint back at instants of their own, none early', () => {
      const scripts = Array.from(
        { length: 20 },
        () => run({}, { error: failed('rate_limited', { retryAfterMs: 2000 }) }, { values: ['ok'] }).script,
      );
      runtime.run();
      const backAt = scripts.map(({ startsMs }) => startsMs[1]!);
      expect(new Set(backAt).size).to.equal(20);
      expect(Math.min(...backAt)).to.be.at.least(2000);
    });

    it('keeps its own wait for a hint of 0', () => {
      const { script } = run(withoutJitter, { error: failed('rate_limited', { retryAfterMs: 0 }) }, { values: ['ok'] });
      runtime.run();
      expect(script.startsMs[1]).to.equal(100);
    });

    it('neither sleeps out nor shortens a hint above maxHintMs', () => {
      const { script, seen } = run({}, { error: failed('rate_limited', { status: 429, retryAfterMs: 60_001 }) });
      expect(seen.error).to.include({ code: 'rate_limited', retryAfterMs: 60_001, status: 429 });
      expect(script.startsMs).to.have.length(1);
    });

    it('does not sleep out a hint of which it is only known that it is longer', () => {
      const headers = new Headers({ 'retry-after': '2592000' });
      const error = classifyResponse({ status: 429, headers, wallNowMs: 0 });
      const { script, seen } = run({ maxHintMs: Infinity }, { error }, { values: ['early'] });
      runtime.run();
      expect(script.startsMs).to.have.length(1);
      expect(seen.error).to.include({ code: 'rate_limited', retryAfterMs: 2_147_483_647 });
    });

    it('sleeps out what maxHintMs allows, beyond what one timer can', () => {
      const thirtyDaysMs = 2_592_000_000;
      const { script } = run(
        { maxHintMs: Infinity },
        { error: failed('rate_limited', { retryAfterMs: thirtyDaysMs }) },
        { values: ['ok'] },
      );
      runtime.run(thirtyDaysMs - 1);
      expect(script.startsMs).to.have.length(1);
      runtime.run();
      expect(script.startsMs[1]).to.be.at.least(thirtyDaysMs);
    });
  });

  describe('deadline', () => {
    function within(deadlineAtMs: number, options: RetryWithJitterOptions<string>, ...steps: Step[]) {
      const script = scripted(runtime, ...steps);
      const scope = CallScope.start(runtime, { deadlineAtMs });
      const operator = retryWithJitter<string>({ runtime, ...options, restarts: false });
      return { script, seen: recording(script.source.pipe(operator), scope) };
    }

    it('passes on the failure at once where the hint does not fit', () => {
      const { script, seen } = within(1000, {}, { error: failed('rate_limited', { retryAfterMs: 3000 }) });
      expect(seen.error).to.include({ code: 'rate_limited', retryAfterMs: 3000 });
      expect(script.startsMs).to.have.length(1);
      expect(runtime.pending).to.equal(0);
    });

    it('says timeout_deadline at once where its own wait does not fit', () => {
      const { seen } = within(150, withoutJitter, { error: failed('overloaded', { model: 'm1' }) });
      runtime.run();
      expect(runtime.clock.now()).to.equal(100);
      expect(seen.error).to.include({ code: 'timeout_deadline', while: 'backoff', retryAfterMs: 200, model: 'm1' });
      expect(seen.error?.cause).to.include({ code: 'overloaded' });
      expect(seen.error?.attempts.map(({ code }) => code)).to.deep.equal(['overloaded', 'overloaded']);
    });

    it('starts nothing that takes longer than is left', () => {
      const fails = { error: failed('overloaded') };
      const leastOf = (leastMs: number): RetryWithJitterOptions<string> => ({
        ...withoutJitter,
        leastMs: () => leastMs,
      });
      expect(within(300, leastOf(200), fails).seen.error?.code).to.equal('timeout_deadline');
      const { seen } = within(300, leastOf(199), fails, { values: ['a'] });
      runtime.run();
      expect(seen.values).to.deep.equal(['a']);
    });

    it('starts nothing at the instant of the deadline', () => {
      expect(within(100, withoutJitter, { error: failed('overloaded') }).seen.error?.code).to.equal('timeout_deadline');
      const { script } = within(101, withoutJitter, { error: failed('overloaded') });
      runtime.run();
      expect(script.startsMs).to.deep.equal([0, 100]);
    });
  });

  describe('budget', () => {
    it('takes from the budget before it sleeps, and says why it stopped', () => {
      const budget = createRetryBudget({ ratio: 0, minPerSecond: 0.1 }, runtime);
      const { script, seen } = run({ budget }, { error: failed('overloaded', { retryAfterMs: 20 }) });
      expect(seen.error).to.equal(undefined);
      runtime.run();
      expect(script.startsMs).to.have.length(2);
      expect(seen.error).to.include({ code: 'retry_budget_exhausted', source: 'local', retryAfterMs: 20 });
      expect(seen.error?.attempts.map(({ code }) => code)).to.deep.equal(['overloaded', 'overloaded']);
      expect(seen.error?.cause).to.deep.include({ code: 'overloaded' });
    });

    it('earns by first attempts only, and shares the budget between subscriptions', () => {
      const budget = createRetryBudget({ ratio: 0.2, minPerSecond: 0 }, runtime);
      for (let n = 0; n < 9; n++) run({ budget }, { values: ['ok'] });
      const failing = Array.from({ length: 6 }, () => run({ budget, attempts: 10 }, { error: failed('overloaded') }));
      runtime.run();
      // 15 first attempts allow 3 retries.
      const attempts = failing.reduce((sum, { script }) => sum + script.startsMs.length, 0);
      expect(attempts).to.equal(6 + 3);
    });

    it('earns when a source that speaks to the scope sends', () => {
      const budget = createRetryBudget({ ratio: 1, minPerSecond: 0 }, runtime);
      recording(speaking(runtime, 'm1', NEVER).pipe(retryWithJitter({ budget, runtime })));
      expect(budget.withdraw(1)).to.be.true;
    });

    it('earns by an answer without values', () => {
      const budget = createRetryBudget({ ratio: 1, minPerSecond: 0 }, runtime);
      run({ budget }, {});
      expect(budget.withdraw(1)).to.be.true;
    });

    it('earns nothing by an attempt that was refused before it was sent', () => {
      const budget = createRetryBudget({ ratio: 1, minPerSecond: 0 }, runtime);
      run({ budget }, { error: failed('circuit_open') });
      expect(budget.withdraw(1)).to.be.false;
    });

    it('weighs attempts by tokens', () => {
      const budget = createRetryBudget({ ratio: 0.2, minPerSecond: 0 }, runtime);
      for (let n = 0; n < 5; n++) run({ budget, tokens: 100 }, { values: ['ok'] });
      const { script } = run({ budget, tokens: 50 }, { error: failed('overloaded') });
      runtime.run();
      expect(script.startsMs).to.have.length(3);
    });

    it('uses the budget of the call where it was given none', () => {
      const scope = CallScope.start(runtime, { budget: createRetryBudget({ ratio: 0, minPerSecond: 0 }, runtime) });
      const { error } = recording(throwError(() => failed('overloaded')).pipe(retryWithJitter({ runtime })), scope);
      expect(error?.code).to.equal('retry_budget_exhausted');
    });
  });

  describe('unsubscribe', () => {
    it('ends an attempt in the same tick', () => {
      const { script, seen } = run({}, { hangs: true });
      seen.subscription.unsubscribe();
      expect(script.active).to.equal(0);
    });

    it('ends the n-th wait in the same tick and leaves no timer', () => {
      const { script, seen } = run(withoutJitter, { error: failed('overloaded') });
      runtime.advance(150);
      expect(script.startsMs).to.have.length(2);
      expect(runtime.pending).to.equal(1);
      seen.subscription.unsubscribe();
      expect(runtime.pending).to.equal(0);
      runtime.run();
      expect(script.startsMs).to.have.length(2);
      expect(seen).to.include({ error: undefined, done: false });
    });

    it('leaves no timer when a listener unsubscribes on hearing of the retry', () => {
      const stop = new Subject<void>();
      const script = scripted(runtime, { afterMs: 1, error: failed('overloaded') });
      const seen = recording(script.source.pipe(retryWithJitter({ runtime, onEvent: () => stop.next() })));
      stop.subscribe(() => seen.subscription.unsubscribe());
      runtime.advance(1);
      expect(runtime.pending).to.equal(0);
      expect(script.active).to.equal(0);
    });
  });

  it('tells of each retry, and whose wait it is', () => {
    const events: SluiceEvent[] = [];
    run(
      { ...withoutJitter, attempts: 3, model: 'm1', onEvent: (event) => events.push(event) },
      { error: failed('overloaded') },
      { error: failed('rate_limited', { retryAfterMs: 700 }) },
    );
    runtime.run();
    expect(events.map(({ callId: _, tenant: _t, conversation: _c, ...event }) => event)).to.deep.equal([
      {
        type: 'retry.scheduled',
        waitMs: 100,
        code: 'overloaded',
        waitSource: 'backoff',
        attempt: 1,
        model: 'm1',
        atMs: 0,
      },
      {
        type: 'retry.scheduled',
        waitMs: 700,
        code: 'rate_limited',
        waitSource: 'hint',
        attempt: 2,
        model: 'm1',
        atMs: 100,
      },
    ]);
  });

  it('is not disturbed by a listener that throws', () => {
    const { seen } = run(
      {
        onEvent: () => {
          throw new Error('listener');
        },
      },
      { error: failed('overloaded') },
      { values: ['ok'] },
    );
    runtime.run();
    expect(seen.values).to.deep.equal(['ok']);
  });

  it('delivers outside its attempts, in the frame of the consumer', () => {
    const frames: unknown[] = [];
    const script = scripted(runtime, { error: failed('overloaded') }, { values: ['ok'] });
    script.source.pipe(retryWithJitter({ runtime })).subscribe({
      next: () => frames.push(currentScope()),
      complete: () => frames.push(currentScope()),
    });
    runtime.run();
    expect(frames).to.deep.equal([undefined, undefined]);
    expect(script.scopes.map((scope) => scope?.attempt)).to.deep.equal([1, 2]);
  });

  describe('after the first value', () => {
    it('passes the failure on, with the partial answer it carries', () => {
      const { script, seen } = run({}, { values: ['one '], error: failed('rate_limited') }, { values: ['one two'] });
      runtime.run();
      expect(seen.values).to.deep.equal(['one ']);
      expect(seen.error?.code).to.equal('rate_limited');
      expect(script.startsMs).to.have.length(1);
    });

    it('does the same for restart where the consumer did not say that it handles markers', () => {
      const { script, seen } = run({ midStream: 'restart' }, { values: ['a'], error: failed('connection') });
      runtime.run();
      expect(seen.error?.code).to.equal('connection');
      expect(script.startsMs).to.have.length(1);
    });
  });

  describe('options', () => {
    for (const [options, message] of [
      [{ attempts: 0 }, 'attempts must be a whole number of at least 1, got 0'],
      [{ attempts: NaN }, 'attempts must be a whole number of at least 1, got NaN'],
      [{ maxAttempts: 1.5 }, 'maxAttempts must be a whole number of at least 1, got 1.5'],
      [{ baseMs: -1 }, 'baseMs must be finite and 0 or more, got -1'],
      [{ capMs: Infinity }, 'capMs must be finite and 0 or more, got Infinity'],
      [{ maxHintMs: NaN }, 'maxHintMs must be 0 or more, or Infinity, got NaN'],
      [{ tokens: -5 }, 'tokens must be finite and 0 or more, got -5'],
      [
        { jitter: 'some' as 'full' },
        'jitter must be one of full, equal, decorrelated, none, got a string of 4 characters',
      ],
      [
        { midStream: 'retry' as 'fail' },
        'midStream must be one of fail, restart, continue, got a string of 5 characters',
      ],
      [
        { midStream: 'continue', canContinue: true },
        'continueWith must be given where canContinue is set, got undefined',
      ],
    ] as const) {
      it(`refuses ${JSON.stringify(options)}`, () => {
        expect(thrown(() => retryWithJitter(options))).to.include({ code: 'invalid_option', message });
      });
    }
  });
});
