import { expect } from 'chai';
import { concat, defer, EMPTY, map, NEVER, Observable, of, range, Subject, take, tap, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction, Subscription } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { EventListener, SluiceEvent } from '../../lib/core/events.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

/** An operator that guards the subscription to what is above it, over something of its own. */
export interface GuardingOperator {
  /** One application of the operator. All share what is guarded. */
  guard<T>(onEvent?: EventListener): MonoTypeOperatorFunction<T>;
  /**
   * Takes all the room there is, so that the next subscription waits, and returns what makes room again for all of
   * `waiters`. Undefined for an operator that never makes anyone wait.
   */
  readonly fill?: (() => (waiters: number) => void) | undefined;
  /** How many subscriptions hold something now, where that can be told. */
  held?(): number;
  /** How many wait, where that can be told. */
  waiting?(): number;
}

/**
 * What every guarding operator must do. `make` builds it over fresh state, with room for one subscription at a time or
 * for more, and for at least 10,000 waiting.
 */
export function guardingOperatorContract(make: (runtime: VirtualRuntime) => GuardingOperator): void {
  let runtime: VirtualRuntime;
  let operator: GuardingOperator;

  beforeEach(() => {
    runtime = virtualRuntime();
    operator = make(runtime);
  });

  const expectIdle = (): void => {
    expect(operator.held?.() ?? 0, 'held').to.equal(0);
    expect(operator.waiting?.() ?? 0, 'waiting').to.equal(0);
    expect(runtime.pending, 'timers').to.equal(0);
  };

  /** Whether the next subscription gets in at once, here tried with one that ends at once. */
  const expectRoom = (): void => {
    expect(record(of('in').pipe(operator.guard())).seen).to.deep.equal(['in', '|']);
  };

  describe('as an operator that guards a subscription', () => {
    it('passes on a source that is empty', () => {
      expect(record(EMPTY.pipe(operator.guard())).seen).to.deep.equal(['|']);
      expectIdle();
      expectRoom();
    });

    it('holds on to its place while the source is silent, and gives it back on unsubscribe', () => {
      const { seen, subscription } = record(NEVER.pipe(operator.guard()));

      expect(seen).to.deep.equal([]);
      if (operator.held) expect(operator.held()).to.equal(1);

      subscription.unsubscribe();
      expectIdle();
      expectRoom();
    });

    it('passes on one value', () => {
      expect(record(of(1).pipe(operator.guard())).seen).to.deep.equal([1, '|']);
      expectIdle();
    });

    it('passes on many values in order', () => {
      expect(record(range(0, 100).pipe(operator.guard())).seen).to.deep.equal([...Array(100).keys(), '|']);
      expectIdle();
    });

    it('passes on the very error of the source, after the values before it', () => {
      const error = new SluiceError('bad_request', 'wrong');

      expect(
        record(
          concat(
            of(1),
            throwError(() => error),
          ).pipe(operator.guard()),
        ).seen,
      ).to.deep.equal([1, error]);
      expectIdle();
      expectRoom();
    });

    it('passes on an error that is not one of ours as it came', () => {
      const error = new TypeError('not ours');

      expect(record(throwError(() => error).pipe(operator.guard())).seen).to.deep.equal([error]);
      expectIdle();
    });

    it('passes on what the source throws while it is subscribed to', () => {
      const error = new SluiceError('bad_request', 'thrown');
      const throwing = new Observable<never>(() => {
        throw error;
      });

      expect(record(throwing.pipe(operator.guard())).seen).to.deep.equal([error]);
      expectIdle();
    });

    it('takes nothing and subscribes to nothing before it is subscribed to', () => {
      let subscribed = 0;
      defer(() => of(++subscribed)).pipe(operator.guard());

      expect(subscribed).to.equal(0);
      expectIdle();
    });

    it('unsubscribes from the source in the tick in which it is unsubscribed in mid-stream', () => {
      const source = new Subject<number>();
      const { seen, subscription } = record(source.pipe(operator.guard()));
      source.next(1);

      subscription.unsubscribe();

      expect(source.observed).to.be.false;
      source.next(2);
      expect(seen).to.deep.equal([1]);
      expectIdle();
      expectRoom();
    });

    it('stops a synchronous source as soon as the one downstream has had enough', () => {
      let made = 0;
      const endless = new Observable<number>((subscriber) => {
        while (!subscriber.closed && made < 1000) subscriber.next(made++);
      });

      expect(record(endless.pipe(operator.guard(), take(3))).seen).to.deep.equal([0, 1, 2, '|']);
      expect(made).to.equal(3);
      expectIdle();
      expectRoom();
    });

    it('starts afresh for each subscription of one assembled observable', () => {
      let subscribed = 0;
      const error = new SluiceError('bad_request', 'first only');
      const guarded = defer(() => (++subscribed === 1 ? throwError(() => error) : of(subscribed))).pipe(
        operator.guard(),
      );

      expect(record(guarded).seen).to.deep.equal([error]);
      expect(record(guarded).seen).to.deep.equal([2, '|']);
      expect(record(guarded).seen).to.deep.equal([3, '|']);
      expectIdle();
    });

    it('keeps two subscribers of one assembled observable apart', () => {
      const sources = [new Subject<string>(), new Subject<string>()] as const;
      let subscribed = 0;
      const guarded = defer(() => sources[subscribed++]!).pipe(operator.guard());
      const first = record(guarded);
      const second = record(guarded);

      sources[0].next('a');
      sources[0].complete();
      runtime.advance(60_000);
      sources[1].next('b');
      sources[1].complete();

      expect(first.seen).to.deep.equal(['a', '|']);
      expect(second.seen).to.deep.equal(['b', '|']);
      runtime.advance(60_000);
      expectIdle();
    });

    it('lets the consumer start another call from within next', () => {
      const source = new Subject<string>();
      const inner: unknown[] = [];
      const outer = record(
        source.pipe(
          operator.guard(),
          tap(() => void record(of('inner').pipe(operator.guard()), inner)),
        ),
      );

      source.next('outer');
      source.complete();
      runtime.advance(60_000);

      expect(outer.seen).to.deep.equal(['outer', '|']);
      expect(inner).to.deep.equal(['inner', '|']);
      expectIdle();
    });

    it('keeps the order of what the consumer makes the source emit from within next', () => {
      const source = new Subject<number>();
      const seen: unknown[] = [];
      source.pipe(operator.guard()).subscribe({
        next: (value) => {
          seen.push(`in ${value}`);
          if (value < 2) source.next(value + 1);
          seen.push(`out ${value}`);
        },
        complete: () => seen.push('|'),
      });

      source.next(1);
      source.complete();

      expect(seen).to.deep.equal(['in 1', 'in 2', 'out 2', 'out 1', '|']);
      expectIdle();
    });

    it('gives back what it holds when the code downstream throws', () => {
      const source = new Subject<number>();
      const error = new Error('downstream');
      const broken = map(() => {
        throw error;
      });

      const { seen } = record(source.pipe(operator.guard(), broken));
      source.next(1);

      expect(seen).to.deep.equal([error]);
      expect(source.observed).to.be.false;
      expectIdle();
      expectRoom();
    });

    it('is not disturbed by a listener that throws', () => {
      const listener: EventListener = () => {
        throw new Error('listener');
      };

      expect(record(of(1, 2).pipe(operator.guard(listener))).seen).to.deep.equal([1, 2, '|']);
      expectIdle();
    });

    it('gives back what it holds when a listener unsubscribes before the source is subscribed to', () => {
      const kinds = new Set<string>();
      let before = true;
      const listener: EventListener = ({ type }) => before && kinds.add(type);
      record(defer(() => of((before = false))).pipe(operator.guard(listener)));

      for (const kind of kinds) {
        const subscription = new Subject<void>();
        let subscribed = false;
        record(
          defer(() => {
            subscribed = true;
            return NEVER;
          }).pipe(
            operator.guard((event) => event.type === kind && subscription.next()),
            takeUntilNotified(subscription),
          ),
        );
        expect(subscribed, `subscribed to the source after ${kind}`).to.be.false;
        expectIdle();
      }
    });

    it('subscribes upwards in the frame of its own call and delivers in the frame of its consumer', () => {
      const scope = CallScope.start(runtime, { id: 'call-1' });
      const above: unknown[] = [];
      const below: unknown[] = [];
      const source = new Subject<number>();

      runInScope(scope, () =>
        defer(() => {
          above.push(currentScope()?.callId);
          return source;
        })
          .pipe(operator.guard())
          .subscribe({
            next: () => below.push(currentScope()?.callId),
            complete: () => below.push(currentScope()?.callId),
          }),
      );
      runInScope(CallScope.start(runtime, { id: 'stranger' }), () => {
        source.next(1);
        source.complete();
      });

      expect(above).to.deep.equal(['call-1']);
      expect(below).to.deep.equal(['call-1', 'call-1']);
      expect(currentScope()).to.be.undefined;
    });

    it('makes a call of its own where there is none', () => {
      const ids = new Set<string | undefined>();
      const guarded = defer(() => of(ids.add(currentScope()?.callId))).pipe(operator.guard());

      record(guarded);
      record(guarded);

      expect(ids.size).to.equal(2);
      expect(ids.has(undefined)).to.be.false;
    });
  });

  if (make(virtualRuntime()).fill === undefined) return;

  describe('as an operator that makes subscriptions wait', () => {
    let makeRoom: (waiters: number) => void;

    beforeEach(() => {
      makeRoom = operator.fill!();
    });

    it('does not subscribe to the source before there is room', () => {
      let subscribed = 0;
      const { seen } = record(defer(() => of(++subscribed)).pipe(operator.guard()));

      expect(subscribed).to.equal(0);
      if (operator.waiting) expect(operator.waiting()).to.equal(1);

      makeRoom(1);
      expect(seen).to.deep.equal([1, '|']);
      expectIdle();
    });

    it('tells of the wait and of its end', () => {
      const events: SluiceEvent[] = [];
      record(of(1).pipe(operator.guard((event) => events.push(event))));
      const queuedAtMs = runtime.clock.now();
      makeRoom(1);

      expect(events.map(({ type }) => type).slice(0, 2)).to.deep.equal(['queued', 'granted']);
      const [queued, granted] = events;
      expect(queued).to.include({ type: 'queued', position: 1, attempt: 1, atMs: queuedAtMs });
      expect(granted).to.include({ type: 'granted', waitedMs: granted!.atMs - queuedAtMs });
    });

    it('tells that its caller has left while it waited, once, and nothing of one that was granted', () => {
      const events: SluiceEvent[] = [];
      const types = (): readonly string[] => events.map(({ type }) => type);
      const waits = record(of(1).pipe(operator.guard((event) => events.push(event)))).subscription;
      waits.unsubscribe();
      waits.unsubscribe();
      expect(types()).to.deep.equal(['queued', 'left']);

      const goes = record(of(1).pipe(operator.guard((event) => events.push(event)))).subscription;
      makeRoom(1);
      goes.unsubscribe();
      expect(types().filter((type) => type === 'left')).to.deep.equal(['left']);
    });

    it('lets those who wait go in the order in which they came', () => {
      const seen: unknown[] = [];
      for (let n = 0; n < 10; n++) record(of(n).pipe(operator.guard()), seen, false);
      makeRoom(10);

      expect(seen).to.deep.equal([...Array(10).keys()]);
      expectIdle();
    });

    it('never subscribes to the source of one that was unsubscribed while it waited', () => {
      let subscribed = 0;
      const waits = record(defer(() => of(++subscribed)).pipe(operator.guard()));
      const next = record(of('next').pipe(operator.guard()));

      waits.subscription.unsubscribe();
      if (operator.waiting) expect(operator.waiting()).to.equal(1);
      makeRoom(1);

      expect(subscribed).to.equal(0);
      expect(waits.seen).to.deep.equal([]);
      expect(next.seen).to.deep.equal(['next', '|']);
      expectIdle();
      expectRoom();
    });

    it('leaves nothing behind when the only one waiting is unsubscribed', () => {
      record(of(1).pipe(operator.guard())).subscription.unsubscribe();
      makeRoom(0);

      expectIdle();
      expectRoom();
    });

    it('passes a place on when the one that should get it is unsubscribed by one before it', () => {
      let subscribed = 0;
      // Assigned by the second, called by the first.
      let cancelSecond = (): void => {};
      record(
        of('first').pipe(
          operator.guard(),
          tap(() => cancelSecond()),
        ),
      );
      const second = record(defer(() => of(++subscribed)).pipe(operator.guard()));
      cancelSecond = () => second.subscription.unsubscribe();
      const third = record(of('third').pipe(operator.guard()));

      makeRoom(3);

      expect(subscribed).to.equal(0);
      expect(third.seen).to.deep.equal(['third', '|']);
      expectIdle();
      expectRoom();
    });

    it('gives its place up when the listener unsubscribes on being queued', () => {
      const stop = new Subject<void>();
      const guard = operator.guard<number>((event) => event.type === 'queued' && stop.next());
      record(of(1).pipe(guard, takeUntilNotified(stop)));
      makeRoom(0);

      expectIdle();
      expectRoom();
    });

    it('gives its place back when the listener unsubscribes on being granted', () => {
      const stop = new Subject<void>();
      let subscribed = 0;
      const guard = operator.guard<number>((event) => event.type === 'granted' && stop.next());
      record(defer(() => of(++subscribed)).pipe(guard, takeUntilNotified(stop)));
      makeRoom(1);

      expect(subscribed).to.equal(0);
      expectIdle();
      expectRoom();
    });

    it('is not disturbed by a listener that throws', () => {
      const { seen } = record(
        of(1).pipe(
          operator.guard(() => {
            throw new Error('listener');
          }),
        ),
      );
      makeRoom(1);

      expect(seen).to.deep.equal([1, '|']);
      expectIdle();
    });

    it('runs the source and the consumer of each in their own frames, whoever made room', () => {
      const above: unknown[] = [];
      const below: unknown[] = [];
      for (const id of ['a', 'b', 'c']) {
        runInScope(CallScope.start(runtime, { id }), () =>
          defer(() => of(above.push(currentScope()?.callId)))
            .pipe(operator.guard())
            .subscribe(() => below.push(currentScope()?.callId)),
        );
      }
      runInScope(CallScope.start(runtime, { id: 'stranger' }), () => makeRoom(3));

      expect(above).to.deep.equal(['a', 'b', 'c']);
      expect(below).to.deep.equal(['a', 'b', 'c']);
    });

    it('takes 10,000 that wait, with synchronous sources, through without deepening the stack', () => {
      let completed = 0;
      for (let n = 0; n < 10_000; n++) {
        of(n)
          .pipe(operator.guard())
          .subscribe({
            next: (value) => expect(value).to.equal(completed),
            error: (error: unknown) => expect.fail(String(error)),
            complete: () => completed++,
          });
      }
      makeRoom(10_000);

      expect(completed).to.equal(10_000);
      expectIdle();
    });

    it('forgets 10,000 that are unsubscribed while they wait', () => {
      const waiting: Subscription[] = [];
      for (let n = 0; n < 10_000; n++) waiting.push(record(NEVER.pipe(operator.guard())).subscription);
      const last = record(of('last').pipe(operator.guard()));
      for (const subscription of waiting) subscription.unsubscribe();
      makeRoom(1);

      expect(last.seen).to.deep.equal(['last', '|']);
      expectIdle();
    });
  });
}

/** What came: values, then `'|'` or the error itself. */
export function record(
  source: Observable<unknown>,
  seen: unknown[] = [],
  withEnd = true,
): { readonly seen: unknown[]; readonly subscription: Subscription } {
  const subscription = source.subscribe({
    next: (value) => seen.push(value),
    error: (error: unknown) => withEnd && seen.push(error),
    complete: () => withEnd && seen.push('|'),
  });
  return { seen, subscription };
}

/** Unsubscribes at a notification, also one that comes while the source is still being subscribed to. */
function takeUntilNotified<T>(notifier: Subject<void>): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable<T>((subscriber) => {
      subscriber.add(notifier.subscribe(() => subscriber.unsubscribe()));
      return source.subscribe(subscriber);
    });
}
