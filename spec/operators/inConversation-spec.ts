import { expect } from 'chai';
import { defer, finalize, NEVER, of, Subject, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { LaneRequest, LanesPort } from '../../lib/core/ports.ts';
import { createLanes } from '../../lib/operators/createLanes.ts';
import { inConversation, inTurn } from '../../lib/operators/inConversation.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { guardingOperatorContract } from '../contract/guardingOperator.ts';
import { heapInUse } from '../helpers/heap.ts';
import { marbles } from '../helpers/marbles.ts';
import { seen as record } from '../helpers/seen.ts';

describe('inConversation', () => {
  guardingOperatorContract((runtime) => {
    const lanes = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
    return {
      guard: (onEvent) => inConversation(lanes, 'c', { runtime, onEvent }),
      fill: () => {
        const holder = NEVER.pipe(inConversation(lanes, 'c', { runtime })).subscribe();
        return () => holder.unsubscribe();
      },
      held: () => lanes.snapshot().conversations,
      waiting: () => lanes.snapshot().waiting,
    };
  });

  let runtime: VirtualRuntime;
  let lanes: LanesPort;

  beforeEach(() => {
    runtime = virtualRuntime();
    lanes = createLanes({ maxWaiting: 3, maxWaitMs: 100 }, runtime);
  });

  it(
    'runs turns one after the other in the order of their subscriptions, and other conversations beside them',
    marbles((m) => {
      const own = createLanes({}, m.runtime);
      const guard = (conversation: string) => inConversation<string>(own, conversation, { runtime: m.runtime });
      const first = m.cold(' --a--b|     ');
      const second = m.cold('--c--d|     ');
      const other = m.cold(' ---x|       ');

      m.expectObservable(first.pipe(guard('k'))).toBe(' --a--b|     ');
      m.expectObservable(second.pipe(guard('k'))).toBe('--------c--d|');
      m.expectObservable(other.pipe(guard('l'))).toBe(' ---x|       ');
      m.expectSubscriptions(second.subscriptions).toBe('------^-----!');
    }),
  );

  it('starts the next turn after the consumer has seen the end of this one', () => {
    const log: string[] = [];
    const turn = (name: string, source: Observable<string>): void => {
      defer(() => {
        log.push(`${name} starts`);
        return source;
      })
        .pipe(
          finalize(() => log.push(`${name} torn down`)),
          inConversation(lanes, 'k', { runtime }),
        )
        .subscribe({
          next: (value) => log.push(value),
          error: () => log.push(`${name} failed`),
          complete: () => log.push(`${name} ended`),
        });
    };
    const first = new Subject<string>();
    turn('1', first);
    turn(
      '2',
      throwError(() => new SluiceError('bad_request', 'no')),
    );
    turn('3', of('c'));
    first.next('a');
    first.complete();

    expect(log).to.deep.equal([
      ...['1 starts', 'a', '1 ended', '1 torn down'],
      ...['2 starts', '2 failed', '2 torn down'],
      ...['3 starts', 'c', '3 ended', '3 torn down'],
    ]);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('lets the next turn start in the tick in which the running one is unsubscribed', () => {
    const running = record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));
    const next = record(of('next').pipe(inConversation(lanes, 'k', { runtime })));
    running.subscription.unsubscribe();
    expect(next.seen).to.deep.equal(['next', '|']);
  });

  it('does not let a turn overtake that is subscribed to while the one before it ends', () => {
    const order: string[] = [];
    const turn = (name: string, then?: () => void): void => {
      defer(() => of(order.push(name)))
        .pipe(inConversation(lanes, 'k', { runtime }))
        .subscribe({ complete: () => then?.() });
    };
    const first = new Subject<void>();
    first.pipe(inConversation(lanes, 'k', { runtime })).subscribe({ complete: () => turn('new') });
    turn('second');
    turn('third');
    first.complete();
    expect(order).to.deep.equal(['second', 'third', 'new']);
  });

  it('refuses past the bounds of the lanes, and says so', () => {
    const events: SluiceEvent[] = [];
    for (let n = 0; n < 4; n++) record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));
    const { seen } = record(
      NEVER.pipe(inConversation(lanes, 'k', { runtime, onEvent: (event) => void events.push(event) })),
    );

    expect(seen[0]).to.include({ code: 'queue_full', while: 'lane' });
    expect(events).to.have.length(1);
    expect(events[0]).to.include({ type: 'refused', code: 'queue_full', conversation: 'k', retryAfterMs: 1000 });
  });

  it('waits no longer than maxWaitMs, by default that of the lanes', () => {
    record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));
    const short = record(NEVER.pipe(inConversation(lanes, 'k', { runtime, maxWaitMs: 10 })));
    const usual = record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));

    runtime.advance(10);
    expect(short.seen[0]).to.include({ code: 'queue_timeout', limit: 10 });
    runtime.advance(89);
    expect(usual.seen).to.deep.equal([]);
    runtime.advance(1);
    expect(usual.seen[0]).to.include({ code: 'queue_timeout', limit: 100 });
  });

  it('waits no longer than the deadline of the call', () => {
    record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));
    const scope = CallScope.start(runtime, { deadlineAtMs: 30 });
    const { seen } = runInScope(scope, () => record(NEVER.pipe(inConversation(lanes, 'k', { runtime }))));

    runtime.advance(30);
    expect(seen[0]).to.include({ code: 'timeout_deadline', limit: 30 });
  });

  it('supersedes the running turn where told, after its source was unsubscribed from', () => {
    const log: string[] = [];
    const running = record(
      NEVER.pipe(
        finalize(() => log.push('1 torn down')),
        inConversation(lanes, 'k', { runtime }),
      ),
    );
    const waiting = record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));
    const newer = record(
      defer(() => of(log.push('3 starts'))).pipe(inConversation(lanes, 'k', { runtime, supersede: true })),
    );

    expect(running.seen[0]).to.include({ code: 'superseded', source: 'local', retryable: false });
    expect(waiting.seen[0]).to.include({ code: 'superseded', while: 'lane' });
    expect(log).to.deep.equal(['1 torn down', '3 starts']);
    expect(newer.seen).to.deep.equal([2, '|']);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('tells those above of the conversation, and the port of the call', () => {
    const asked: LaneRequest[] = [];
    const port: LanesPort = {
      acquire: (request) => {
        asked.push(request);
        return lanes.acquire(request);
      },
      snapshot: () => lanes.snapshot(),
    };
    const scope = CallScope.start(runtime, { id: 'x', model: 'm', tenant: 't', priority: 'p', deadlineAtMs: 9 });
    const above: unknown[] = [];
    const below: unknown[] = [];
    runInScope(scope, () =>
      defer(() => of(above.push(currentScope()?.conversation)))
        .pipe(inConversation(port, 'k', { runtime, maxWaitMs: 5, supersede: true }))
        .subscribe(() => below.push(currentScope()?.conversation)),
    );

    expect(above).to.deep.equal(['k']);
    expect(below).to.deep.equal([undefined]);
    const { onQueued: _, ...request } = asked[0]!;
    expect(request).to.deep.equal({
      callId: 'x',
      model: 'm',
      tenant: 't',
      priority: 'p',
      deadlineAtMs: 9,
      conversation: 'k',
      maxWaitMs: 5,
      supersede: true,
    });
  });

  it('names its conversation in its events', () => {
    const events: SluiceEvent[] = [];
    const onEvent = (event: SluiceEvent): void => void events.push(event);
    const first = record(NEVER.pipe(inConversation(lanes, 'k', { runtime })));
    record(of(1).pipe(inConversation(lanes, 'k', { runtime, onEvent })));
    runtime.advance(20);
    first.subscription.unsubscribe();

    expect(events.map(({ type, conversation }) => [type, conversation])).to.deep.equal([
      ['queued', 'k'],
      ['granted', 'k'],
    ]);
    expect(events[0]).to.include({ where: 'lane', position: 1 });
    expect(events[1]).to.include({ where: 'lane', waitedMs: 20 });
  });

  it('holds the conversation, and no other, through the retries of a turn', () => {
    const started: string[] = [];
    const turn = (name: string, failures: number): Observable<string> =>
      defer(() => {
        started.push(name);
        return failures-- > 0 ? throwError(() => new SluiceError('server_error', 'down')) : of(name);
      }).pipe(
        retryWithJitter({ attempts: 3, baseMs: 20, runtime }),
        inConversation(lanes, name.charAt(0), { runtime }),
      );
    const first = record(turn('a1', 2));
    const second = record(turn('a2', 0));
    const third = record(turn('a3', 0));
    expect(record(turn('b1', 0)).seen).to.deep.equal(['b1', '|']);
    second.subscription.unsubscribe();
    runtime.run();

    expect(first.seen).to.deep.equal(['a1', '|']);
    expect(third.seen).to.deep.equal(['a3', '|']);
    expect(started).to.deep.equal(['a1', 'b1', 'a1', 'a1', 'a3']);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('leaves no memory of 10,000 conversations whose turns ended or were cancelled', async () => {
    const kept: WeakRef<object>[] = [];
    const before = await heapInUse();
    for (let n = 0; n < 10_000; n++) {
      const own = inConversation<object>(lanes, `conversation-${n}`, { runtime });
      const source = new Subject<object>();
      if (n % 100 === 0) kept.push(new WeakRef(source));
      const running = source.pipe(own).subscribe();
      const waiting = of({}).pipe(own).subscribe();
      if (n % 2 === 0) source.complete();
      else waiting.unsubscribe();
      running.unsubscribe();
    }
    const growth = (await heapInUse()) - before;

    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
    expect(runtime.pending).to.equal(0);
    expect(kept.filter((source) => source.deref() !== undefined)).to.have.length(0);
    expect(growth / 2 ** 20).to.be.below(2);
  });

  describe('where a place can be lost without notice', () => {
    let leased: boolean;
    let released: number;
    const lost = new SluiceError('lane_lost', 'lost');
    const shared: LanesPort = {
      acquire: () => {
        let lose: (error: SluiceError) => void = () => {};
        return of({
          waitedMs: 0,
          onLost: (tell: typeof lose) => void (lose = tell),
          check: () => {
            if (!leased) lose(lost);
          },
          release: () => void released++,
        });
      },
      snapshot: () => ({ conversations: 0, waiting: 0 }),
    };

    beforeEach(() => {
      leased = true;
      released = 0;
    });

    it('passes on nothing after that of what was made when its turn came', () => {
      const source = new Subject<string>();
      const { seen } = record(inTurn<string>(shared, 'k', { runtime }, () => source));
      source.next('in time');
      leased = false;
      source.next('late');

      expect(seen).to.deep.equal(['in time', lost]);
      expect(source.observed).to.be.false;
    });

    for (const [what, end] of [
      ['value', (source) => source.next('late')],
      ['end', (source) => source.complete()],
      ['failure', (source) => source.error(new Error('late'))],
    ] as [string, (source: Subject<string>) => void][]) {
      it(`passes on no ${what} after that`, () => {
        const source = new Subject<string>();
        const { seen } = record(source.pipe(inConversation<string>(shared, 'k', { runtime })));
        source.next('in time');
        leased = false;
        end(source);

        expect(seen).to.deep.equal(['in time', lost]);
        expect(source.observed).to.be.false;
        expect(released).to.equal(1);
      });
    }
  });

  it('refuses a wrong argument when it is made', () => {
    expect(() => inConversation(lanes, '')).to.throw(SluiceError, 'conversation must be a string that is not empty');
    expect(() => inConversation(lanes, 'k', { maxWaitMs: NaN })).to.throw('maxWaitMs must be 0 or more, or Infinity');
  });
});
