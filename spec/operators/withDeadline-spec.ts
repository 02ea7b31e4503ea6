import { expect } from 'chai';
import { catchError, defer, EMPTY, NEVER, Observable, of, range, Subject, take, throwError } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { SluiceError } from '../../lib/core/errors.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { withDeadline } from '../../lib/operators/withDeadline.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { marbles } from '../helpers/marbles.ts';
import { failed, recording, scripted, speaking, thrown } from '../helpers/scripted.ts';

describe('withDeadline', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  it(
    'ends a call without a value at the deadline, and the source with it',
    marbles((m) => {
      const source = m.cold('-------a-|');
      const result = source.pipe(
        withDeadline(5, { runtime: m.runtime }),
        catchError((error: unknown) => of((error as SluiceError).code)),
      );
      m.expectObservable(result).toBe('-----(x|)', { x: 'timeout_deadline' });
      m.expectSubscriptions(source.subscriptions).toBe('^----!');
    }),
  );

  it(
    'cuts nothing after the first value',
    marbles((m) => {
      const source = m.cold('---a-------b-|');
      m.expectObservable(source.pipe(withDeadline(5, { runtime: m.runtime }))).toBe('---a-------b-|');
    }),
  );

  it('passes on sources that are empty, of one value, of many and failing, and stops its timer', () => {
    const error = failed('overloaded');
    expect(recording(EMPTY.pipe(withDeadline(5, { runtime }))).done).to.be.true;
    expect(recording(of(1).pipe(withDeadline(5, { runtime }))).values).to.deep.equal([1]);
    expect(recording(range(0, 100).pipe(withDeadline(5, { runtime }))).values).to.have.length(100);
    expect(recording(throwError(() => error).pipe(withDeadline(5, { runtime }))).error).to.equal(error);
    expect(runtime.pending).to.equal(0);
  });

  it('stops its timer when a source ends or fails later', () => {
    for (const step of [{ afterMs: 2 }, { afterMs: 2, error: failed('overloaded') }]) {
      recording(scripted(runtime, step).source.pipe(withDeadline(5, { runtime })));
      runtime.advance(2);
      expect(runtime.pending).to.equal(0);
    }
  });

  it('stops a synchronous source as soon as the one downstream has had enough', () => {
    let made = 0;
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && made < 1000) subscriber.next(made++);
    });
    expect(recording(endless.pipe(withDeadline(5, { runtime, totalMs: 9 }), take(3))).values).to.deep.equal([0, 1, 2]);
    expect(made).to.equal(3);
    expect(runtime.pending).to.equal(0);
  });

  it('ends source and timers on unsubscribe, waiting and in mid-stream', () => {
    for (const values of [[], ['a']]) {
      const script = scripted(runtime, { values, hangs: true });
      const seen = recording(script.source.pipe(withDeadline(5, { runtime, totalMs: 20 })));
      seen.subscription.unsubscribe();
      expect(script.active).to.equal(0);
      expect(runtime.pending).to.equal(0);
    }
  });

  it('gives each subscription a deadline of its own', () => {
    const assembled = NEVER.pipe(withDeadline(5, { runtime }));
    const first = recording(assembled);
    runtime.advance(3);
    const second = recording(assembled);
    runtime.advance(3);
    expect([first.error?.code, second.error]).to.deep.equal(['timeout_deadline', undefined]);
    runtime.advance(2);
    expect(second.error?.code).to.equal('timeout_deadline');
  });

  it('shows the deadline to all above it', () => {
    let seenAtMs: number | undefined;
    runtime.advance(100);
    recording(defer(() => of((seenAtMs = currentScope()?.deadlineAtMs))).pipe(withDeadline(50, { runtime })));
    expect(seenAtMs).to.equal(150);
  });

  it('keeps to an earlier deadline of the call', () => {
    const seen = recording(NEVER.pipe(withDeadline(50, { runtime })), CallScope.start(runtime, { deadlineAtMs: 20 }));
    runtime.advance(20);
    expect(seen.error?.code).to.equal('timeout_deadline');
  });

  it('does not subscribe where that has passed already', () => {
    let subscribed = false;
    const source = defer(() => of((subscribed = true)));
    const { error } = recording(
      source.pipe(withDeadline(50, { runtime })),
      CallScope.start(runtime, { deadlineAtMs: 0 }),
    );
    expect(error).to.include({ code: 'timeout_deadline', while: 'entry' });
    expect(subscribed).to.be.false;
  });

  it('does nothing for Infinity', () => {
    const source = NEVER;
    expect(withDeadline(Infinity)(source)).to.equal(source);
  });

  it('sends what fails into the frame of the consumer', () => {
    const scope = CallScope.start(runtime);
    const frames: unknown[] = [];
    const source = NEVER.pipe(
      withDeadline(5, { runtime }),
      catchError(() => defer(() => of(frames.push(currentScope())))),
    );
    recording(source, scope);
    runtime.advance(5);
    expect(frames).to.deep.equal([scope]);
  });

  describe('the error', () => {
    const stageAt = (source: Observable<unknown>) => {
      const seen = recording(source.pipe(withDeadline(100, { runtime })));
      runtime.advance(100);
      expect(seen.error?.code).to.equal('timeout_deadline');
      return seen.error?.while;
    };
    const telling = (tell: (scope: CallScope) => void) =>
      defer(() => {
        tell(currentScope()!);
        return NEVER;
      });

    it('says where the call stood', () => {
      expect(stageAt(NEVER)).to.equal(undefined);
      expect(stageAt(telling((scope) => scope.gateClosed()))).to.equal('queue');
      const passed = telling((scope) => {
        scope.gateClosed();
        scope.gateOpened(true);
        scope.dispatched(0);
      });
      expect(stageAt(passed)).to.equal('headers');
      const leftAGate = telling((scope) => {
        scope.gateClosed();
        scope.dispatched(0);
      });
      expect(stageAt(leftAGate)).to.equal('headers');
      const answered = telling((scope) => {
        scope.dispatched(0);
        scope.responded(200);
      });
      expect(stageAt(answered)).to.equal('first_content');
      const late = telling((scope) => {
        scope.dispatched(0);
        scope.dispatched(0);
        scope.closed();
      });
      expect(stageAt(late)).to.equal('headers');
    });

    it('names the attempts that failed, and what the last one said of waiting', () => {
      const script = scripted(
        runtime,
        { error: failed('rate_limited', { retryAfterMs: 10 }) },
        { error: failed('rate_limited', { retryAfterMs: 60 }) },
        { hangs: true },
      );
      const source = speaking(runtime, 'm1', script.source).pipe(
        retryWithJitter({ baseMs: 10, jitter: 'none', runtime }),
        withDeadline(100, { runtime }),
      );
      const seen = recording(source);
      runtime.advance(100);
      expect(script.startsMs).to.deep.equal([0, 10, 70]);
      expect(seen.error).to.include({ code: 'timeout_deadline', source: 'local', while: 'headers', retryAfterMs: 60 });
      expect(seen.error?.attempts.map(({ attempt, code }) => [attempt, code])).to.deep.equal([
        [1, 'rate_limited'],
        [2, 'rate_limited'],
      ]);
      expect(script.active).to.equal(0);
    });
  });

  it('covers the attempts and waits of a retry above it', () => {
    const script = scripted(runtime, { afterMs: 100, error: failed('timeout') });
    const retrying = script.source.pipe(retryWithJitter({ baseMs: 1, jitter: 'none', runtime }));
    const seen = recording(retrying.pipe(withDeadline(150, { runtime })));
    runtime.advance(150);
    expect(script.startsMs).to.deep.equal([0, 101]);
    expect(seen.error?.code).to.equal('timeout_deadline');
    expect(script.active).to.equal(0);
  });

  describe('totalMs', () => {
    it('cuts an answer that goes on', () => {
      const source = new Subject<string>();
      const seen = recording(source.pipe(withDeadline(50, { runtime, totalMs: 80 })));
      runtime.advance(40);
      source.next('a');
      runtime.advance(39);
      expect(seen.error).to.equal(undefined);
      runtime.advance(1);
      expect(seen.error).to.include({ code: 'timeout_deadline', while: 'streaming' });
      expect(seen.values).to.deep.equal(['a']);
      expect(source.observed).to.be.false;
    });

    it('works without a deadline, and is one before the first value', () => {
      let seenAtMs: number | undefined;
      const source = defer(() => {
        seenAtMs = currentScope()?.deadlineAtMs;
        return NEVER;
      });
      const seen = recording(source.pipe(withDeadline(Infinity, { runtime, totalMs: 80 })));
      expect(seenAtMs).to.equal(80);
      runtime.advance(80);
      expect(seen.error?.code).to.equal('timeout_deadline');
    });
  });

  for (const [deadlineMs, totalMs, message] of [
    [0, 1, 'deadlineMs must be above 0, or Infinity, got 0'],
    [NaN, 1, 'deadlineMs must be above 0, or Infinity, got NaN'],
    [1, -1, 'totalMs must be above 0, or Infinity, got -1'],
  ] as const) {
    it(`refuses ${deadlineMs} ms and ${totalMs} ms in total`, () => {
      expect(thrown(() => withDeadline(deadlineMs, { totalMs }))).to.include({ code: 'invalid_option', message });
    });
  }
});
