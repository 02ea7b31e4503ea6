import { expect } from 'chai';
import { concat, EMPTY, NEVER, Observable, of, Subject, take, throwError } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import { scoped, subscribeScoped } from '../../lib/operators/scoped.ts';
import type { End, ScopedHooks } from '../../lib/operators/scoped.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

describe('scoped', () => {
  const runtime = virtualRuntime();
  const frame = (model: string): CallScope => CallScope.start(runtime, { model });
  const [outer, middle, inner] = [frame('outer'), frame('middle'), frame('inner')];

  /** Three of them, the consumer last. */
  const stack = (source: Observable<number>, hooks: ScopedHooks<number> = {}): Observable<number> =>
    scoped(scoped(scoped(source, inner, middle), middle, outer, hooks), outer, undefined);

  /** Logs when it goes in and out. */
  const homeIn =
    (log: unknown[]): ScopedHooks<number>['home'] =>
    (work, value) => {
      log.push('in');
      const result = work(value as never);
      log.push('out');
      return result;
    };

  it('subscribes to the source in the innermost frame and delivers each value in that of the consumer', () => {
    const frames: (string | undefined)[] = [];
    const source = new Observable<number>((subscriber) => {
      frames.push(currentScope()?.model);
      for (const value of [1, 2, 3]) subscriber.next(value);
      subscriber.complete();
    });
    stack(source).subscribe({
      next: () => frames.push(currentScope()?.model ?? 'none'),
      complete: () => frames.push(currentScope()?.model ?? 'none'),
    });
    expect(frames).to.deep.equal(['inner', 'none', 'none', 'none', 'none']);
  });

  it('calls first once, before the first value, and completed once', () => {
    const log: unknown[] = [];
    const hooks = { first: () => log.push('first'), completed: () => log.push('completed') };
    stack(of(1, 2, 3), hooks).subscribe({ next: (value) => log.push(value), complete: () => log.push('complete') });
    expect(log).to.deep.equal(['first', 1, 2, 3, 'completed', 'complete']);
  });

  it('delivers each value at home where only one of the stack has one', () => {
    const log: unknown[] = [];
    stack(concat(of(1, 2, 3), NEVER), { home: homeIn(log) }).subscribe((value) => log.push(value));
    expect(log).to.deep.equal(['in', 1, 'out', 'in', 2, 'out', 'in', 3, 'out']);
  });

  it('delivers an end and an error at home too', () => {
    const log: unknown[] = [];
    const lost = new Error('lost');
    const observer = { error: (error: unknown) => log.push(error), complete: () => log.push('complete') };
    for (const source of [EMPTY, throwError(() => lost)]) stack(source, { home: homeIn(log) }).subscribe(observer);
    expect(log).to.deep.equal(['in', 'complete', 'out', 'in', lost, 'out']);
  });

  it('delivers nothing after one in the middle was ended from outside, however the source goes on', () => {
    let lost: End | undefined;
    let source: Subscriber<number> | undefined;
    const values = new Observable<number>((subscriber) => {
      source = subscriber;
      return () => log.push('left');
    });
    const log: unknown[] = [];
    stack(values, { before: (end) => (lost = end) }).subscribe({
      next: (value) => log.push(value),
      error: (error) => {
        log.push(error);
        source?.next(3);
      },
    });
    source?.next(1);
    source?.next(2);
    lost?.error('lost');
    source?.next(4);
    expect(log).to.deep.equal([1, 2, 'lost', 'left']);
  });

  it('goes on with what one in the middle puts in place of a failure', () => {
    const source = new Subject<number>();
    const log: unknown[] = [];
    stack(source, { instead: () => of(7, 8) }).subscribe({
      next: (value) => log.push(value),
      complete: () => log.push('complete'),
    });
    source.next(1);
    source.next(2);
    source.error(new Error('failed'));
    expect(log).to.deep.equal([1, 2, 7, 8, 'complete']);
  });

  it('stops a synchronous source when the consumer has had enough of its second value', () => {
    let sent = 0;
    const source = new Observable<number>((subscriber) => {
      while (!subscriber.closed && sent < 100) subscriber.next(sent++);
    });
    stack(source).pipe(take(2)).subscribe();
    expect(sent).to.equal(2);
  });

  it('hands values past those that only hand on, from the second one on', () => {
    const passed: number[] = [];
    const depth = 50;
    let source: Subscriber<number> | undefined;
    let stacked: Observable<number> = new Observable<number>((subscriber) => void (source = subscriber));
    for (let at = 0; at < depth; at++) stacked = scoped(stacked, inner, outer);
    stacked.subscribe(() => passed.push((new Error('where').stack ?? '').split('\n').length));
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 1_000;
    try {
      source?.next(1);
      source?.next(2);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
    const [first = 0, second = 0] = passed;
    expect(first).to.be.greaterThan(2 * depth);
    expect(second).to.be.lessThan(depth);
  });

  describe('with what makes the source', () => {
    /** Subscribes through one of them, and tells what comes down. */
    const madeBy = (make: () => Observable<number>, hooks: ScopedHooks<number> = {}): unknown[] => {
      const log: unknown[] = [];
      new Observable<number>((subscriber) => subscribeScoped(make, subscriber, inner, outer, hooks)).subscribe({
        next: (value) => log.push(value),
        error: (error) => log.push(error),
        complete: () => log.push('complete'),
      });
      return log;
    };

    it('makes it in the frame that it is subscribed in', () => {
      const frames: (string | undefined)[] = [];
      const made = madeBy(() => {
        frames.push(currentScope()?.model);
        return of(1);
      });
      expect(made).to.deep.equal([1, 'complete']);
      expect(frames).to.deep.equal(['inner']);
      expect(currentScope()).to.equal(undefined);
    });

    it('takes one that could not be made for one that failed', () => {
      const refused = new Error('refused');
      const make = (): never => {
        throw refused;
      };
      expect(madeBy(make)).to.deep.equal([refused]);
      expect(madeBy(make, { instead: (error) => of(error === refused ? 7 : 0) })).to.deep.equal([7, 'complete']);
      expect(currentScope()).to.equal(undefined);
    });
  });
});
