import { expect } from 'chai';
import fc from 'fast-check';
import { catchError, concat, defer, EMPTY, finalize, from, map, NEVER, of, Subject, take, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { runAtPace } from '../../lib/core/pace.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import { concatByConversation } from '../../lib/operators/concatByConversation.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { heapInUse } from '../helpers/heap.ts';
import { marbles } from '../helpers/marbles.ts';
import { seen as record } from '../helpers/seen.ts';

/** The conversation of `a1` is `a`. */
const letter = (request: string): string => request.charAt(0);

describe('concatByConversation', () => {
  it(
    'asks one after the other within a conversation and at once across conversations',
    marbles((m) => {
      const requests = m.hot(' abc-------|        ', { a: 'a1', b: 'a2', c: 'b1' });
      const turns = {
        a1: m.cold('           ---x|              ', { x: 'a1' }),
        a2: m.cold('               ---y|          ', { y: 'a2' }),
        b1: m.cold('             ---z|            ', { z: 'b1' }),
      };
      const ask = (request: string): Observable<string> => turns[request as 'a1'];

      m.expectObservable(requests.pipe(concatByConversation(letter, ask))).toBe('---x-z-y--|', {
        x: 'a1',
        y: 'a2',
        z: 'b1',
      });
      m.expectSubscriptions(turns.a1.subscriptions).toBe('^---!');
      m.expectSubscriptions(turns.a2.subscriptions).toBe('----^---!');
      m.expectSubscriptions(turns.b1.subscriptions).toBe('--^---!');
    }),
  );

  it(
    'completes when the requests have completed and the last turn has ended',
    marbles((m) => {
      const ask = (): Observable<string> => m.cold('-----x--|');
      m.expectObservable(m.cold('a|', { a: 'a1' }).pipe(concatByConversation(letter, ask))).toBe('-----x--|');
      m.expectObservable(m.cold('--|').pipe(concatByConversation(letter, ask))).toBe('--|');
      m.expectObservable(m.cold('---').pipe(concatByConversation(letter, ask))).toBe('---');
    }),
  );

  it(
    'ends every turn and drops what waits when one ask fails, or the requests do',
    marbles((m) => {
      const turn = m.cold('   --x------|');
      const fails = m.cold('  ---#      ');
      const ask = (request: string): Observable<string> => (request === 'b1' ? fails : turn);
      const requests = m.cold('abc-', { a: 'a1', b: 'a2', c: 'b1' });

      m.expectObservable(requests.pipe(concatByConversation(letter, ask))).toBe('--x--#');
      m.expectSubscriptions(turn.subscriptions).toBe(['^----!', '^-!']);

      const broken = m.cold('a-#', { a: 'a1' });
      m.expectObservable(broken.pipe(concatByConversation(letter, ask))).toBe('--#');
    }),
  );

  it('goes on where ask catches, and starts the next turn of the conversation', () => {
    const ask = (request: string): Observable<string> =>
      (request === 'a1' ? throwError(() => new Error('no')) : of('yes')).pipe(
        map((value) => `${request} ${value}`),
        catchError(() => of(`${request} failed`)),
      );
    expect(record(from(['a1', 'a2', 'b1']).pipe(concatByConversation(letter, ask))).seen).to.deep.equal([
      'a1 failed',
      'a2 yes',
      'b1 yes',
      '|',
    ]);
  });

  it('passes over a turn without values', () => {
    const ask = (request: string): Observable<string> => (request === 'a1' ? EMPTY : of(request));
    expect(record(of('a1', 'a2').pipe(concatByConversation(letter, ask))).seen).to.deep.equal(['a2', '|']);
  });

  it('ends every turn, and starts none, when it is unsubscribed', () => {
    const log: string[] = [];
    const requests = new Subject<string>();
    const ask = (request: string): Observable<never> =>
      defer(() => (log.push(`${request} starts`), NEVER)).pipe(finalize(() => log.push(`${request} ends`)));
    const { subscription } = record(requests.pipe(concatByConversation(letter, ask, { concurrency: 2 })));
    for (const request of ['a1', 'a2', 'b1', 'c1']) requests.next(request);

    subscription.unsubscribe();
    expect(log).to.deep.equal(['a1 starts', 'b1 starts', 'a1 ends', 'b1 ends']);
    expect(requests.observed).to.be.false;
  });

  it('stops asking when the one downstream has had enough', () => {
    let asked = 0;
    const ask = (request: string): Observable<string> => defer(() => (asked++, of(request)));
    const { seen } = record(from(['a1', 'a2', 'b1', 'c1']).pipe(concatByConversation(letter, ask), take(2)));
    expect(seen).to.deep.equal(['a1', 'a2', '|']);
    expect(asked).to.equal(2);
  });

  it('takes the place in the tick in which the request comes, whatever ask awaits first', () => {
    const order: string[] = [];
    const runtime = virtualRuntime();
    const slow = (request: string): Observable<unknown> =>
      concat(
        wait(request === 'k1' ? 10 : 0),
        defer(() => of(order.push(request))),
      );
    const wait = (ms: number): Observable<never> =>
      defer(() => {
        const done = new Subject<never>();
        runtime.scheduler.schedule(() => done.complete(), ms);
        return done;
      });
    record(of('k1', 'k2').pipe(concatByConversation(letter, slow)));
    runtime.run();
    expect(order).to.deep.equal(['k1', 'k2']);
  });

  it('emits what conversationOf or ask throws, and what is wrong with a conversation', () => {
    const error = new Error('thrown');
    const fail = (): never => {
      throw error;
    };
    expect(record(of('a1').pipe(concatByConversation(fail, () => EMPTY))).seen).to.deep.equal([error]);
    expect(record(of('a1').pipe(concatByConversation(letter, fail))).seen).to.deep.equal([error]);

    const { seen } = record(of('').pipe(concatByConversation(letter, () => EMPTY)));
    expect(seen[0]).to.be.instanceOf(SluiceError).that.includes({ code: 'invalid_request' });
    expect((seen[0] as Error).message).to.equal('conversation must be a string that is not empty, got an empty string');
  });

  it('asks no more than concurrency at once, and lets no conversation that waits hold up another', () => {
    const open: Subject<string>[] = [];
    const started: string[] = [];
    const ask = (request: string): Observable<string> =>
      defer(() => {
        started.push(request);
        const turn = new Subject<string>();
        open.push(turn);
        return turn;
      });
    record(of('a1', 'a2', 'a3', 'b1', 'c1').pipe(concatByConversation(letter, ask, { concurrency: 2 })));
    expect(started).to.deep.equal(['a1', 'b1']);
    open[0]!.complete();
    expect(started).to.deep.equal(['a1', 'b1', 'c1']);
    open[1]!.complete();
    expect(started).to.deep.equal(['a1', 'b1', 'c1', 'a2']);

    const unlimited: string[] = [];
    record(of('a1', 'b1', 'c1').pipe(concatByConversation(letter, (request) => (unlimited.push(request), NEVER))));
    expect(unlimited).to.have.length(3);
  });

  it('fails when more than maxWaiting are held back, whether for their conversation or for concurrency', () => {
    const ask = (): Observable<never> => NEVER;
    const waiting = of('a1', 'a2', 'a3').pipe(concatByConversation(letter, ask, { maxWaiting: 1 }));
    expect(record(waiting).seen[0]).to.include({ code: 'queue_full', limit: 1, while: 'lane' });

    const crowded = of('a1', 'b1', 'c1').pipe(concatByConversation(letter, ask, { maxWaiting: 1, concurrency: 1 }));
    expect(record(crowded).seen[0]).to.include({ code: 'queue_full', limit: 1 });

    const fits = of('a1', 'a2', 'b1').pipe(concatByConversation(letter, ask, { maxWaiting: 1 }));
    expect(record(fits).seen).to.deep.equal([]);
    const none = of('a1', 'b1').pipe(concatByConversation(letter, () => of('x'), { maxWaiting: 0 }));
    expect(record(none).seen).to.deep.equal(['x', 'x', '|']);
  });

  it('keeps two subscribers apart', () => {
    let asked = 0;
    const result = of('a1').pipe(concatByConversation(letter, () => (asked++, NEVER)));
    record(result);
    record(result);
    expect(asked).to.equal(2);
  });

  it('takes requests that the consumer makes from within next, in their order', () => {
    const requests = new Subject<string>();
    const order: string[] = [];
    requests.pipe(concatByConversation(letter, (request) => of(request))).subscribe((request) => {
      order.push(request);
      if (request === 'a1') for (const next of ['a2', 'a3']) requests.next(next);
      if (request === 'a2') requests.next('a4');
    });
    requests.next('a1');
    expect(order).to.deep.equal(['a1', 'a2', 'a3', 'a4']);
  });

  it('makes each request a call of its own, in its conversation and at the pace of the consumer', () => {
    const requests = new Subject<string>();
    const demand = { ready: () => undefined };
    const scopes: (CallScope | undefined)[] = [];
    const below: unknown[] = [];
    runAtPace(demand, () =>
      requests
        .pipe(concatByConversation(letter, (request) => defer(() => of(request, scopes.push(currentScope())))))
        .subscribe(() => below.push(currentScope())),
    );
    const stranger = CallScope.start(virtualRuntime());
    runInScope(stranger, () => {
      requests.next('a1');
      requests.next('b1');
    });

    expect(scopes.map((scope) => scope?.conversation)).to.deep.equal(['a', 'b']);
    expect(scopes.map((scope) => scope?.demand)).to.deep.equal([demand, demand]);
    expect(new Set([stranger, ...scopes].map((scope) => scope?.callId)).size).to.equal(3);
    expect(below).to.deep.equal([undefined, undefined, undefined, undefined]);
  });

  it('asks in the frame that stands below it, and delivers there', () => {
    const requests = new Subject<string>();
    const scope = CallScope.start(virtualRuntime(), { id: 'outer', tenant: 't' });
    const above: unknown[] = [];
    const below: unknown[] = [];
    runInScope(scope, () =>
      requests
        .pipe(concatByConversation(letter, () => defer(() => of(above.push(currentScope()?.callId)))))
        .subscribe(() => below.push(currentScope())),
    );
    requests.next('a1');
    expect(above).to.deep.equal(['outer']);
    expect(below).to.deep.equal([scope]);
  });

  for (const concurrency of [Infinity, 1]) {
    it(`takes 10,000 synchronous turns that waited in one conversation, with concurrency ${concurrency}`, () => {
      const first = new Subject<number>();
      const requests = new Subject<number>();
      let next = 1;
      requests
        .pipe(
          concatByConversation(
            () => 'k',
            (n) => (n === 0 ? first : of(n)),
            { concurrency },
          ),
        )
        .subscribe((n) => void (n === next++ || expect.fail(`${n} came as number ${next - 1}`)));
      for (let n = 0; n <= 10_000; n++) requests.next(n);
      first.complete();
      expect(next).to.equal(10_001);
    });
  }

  it('takes 10,000 synchronous turns of many conversations that waited for concurrency', () => {
    const first = new Subject<number>();
    const requests = new Subject<number>();
    let count = 0;
    requests
      .pipe(
        concatByConversation(
          (n) => `c${n}`,
          (n) => (n === 0 ? first : of(n)),
          { concurrency: 1 },
        ),
      )
      .subscribe(() => count++);
    for (let n = 0; n <= 10_000; n++) requests.next(n);
    first.complete();
    expect(count).to.equal(10_000);
  });

  it('leaves nothing behind of 100,000 conversations', async function () {
    this.timeout(60_000);
    const requests = new Subject<{ readonly key: string; readonly payload: object }>();
    const payloads: WeakRef<object>[] = [];
    let answered = 0;
    requests
      .pipe(
        concatByConversation(
          ({ key }) => key,
          ({ payload }) => of(payload),
        ),
      )
      .subscribe(() => answered++);
    const before = await heapInUse();
    for (let n = 0; n < 100_000; n++) {
      const payload = {};
      if (n % 1000 === 0) payloads.push(new WeakRef(payload));
      requests.next({ key: `conversation-${n}`, payload });
    }
    const growth = (await heapInUse()) - before;

    expect(answered).to.equal(100_000);
    expect(payloads.filter((payload) => payload.deref() !== undefined)).to.have.length(0);
    // One entry of a map for each would take several times as much.
    expect(growth / 2 ** 20).to.be.below(2);
  });

  it('refuses wrong options when it is made', () => {
    const ask = (): Observable<never> => EMPTY;
    for (const concurrency of [0, NaN, 1.5]) {
      expect(() => concatByConversation(letter, ask, { concurrency })).to.throw(
        SluiceError,
        `concurrency must be a whole number of at least 1, got ${concurrency}`,
      );
    }
    expect(() => concatByConversation(letter, ask, { maxWaiting: -1 })).to.throw('maxWaiting must be 0 or more');
  });

  it('keeps the order of each conversation, one turn at a time, whatever the turns take', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), takesMs: fc.nat(5), gapMs: fc.nat(3) }), {
          maxLength: 40,
          size: 'max',
        }),
        fc.constantFrom(1, 2, Infinity),
        (plan, concurrency) => {
          const runtime = virtualRuntime();
          const running = new Map<string, number>();
          const started = new Map<string, number[]>();
          let most = 0;
          const requests = new Subject<number>();
          const ask = (n: number): Observable<number> => {
            const { key, takesMs } = plan[n]!;
            const own = started.get(key) ?? [];
            started.set(key, [...own, n]);
            running.set(key, (running.get(key) ?? 0) + 1);
            expect(running.get(key), 'turns of one conversation at once').to.equal(1);
            most = Math.max(
              most,
              [...running.values()].reduce((sum, count) => sum + count, 0),
            );
            const turn = new Subject<number>();
            const end = (): void => {
              turn.next(n);
              turn.complete();
            };
            return defer(() => {
              if (takesMs === 0) return of(n);
              runtime.scheduler.schedule(end, takesMs);
              return turn;
            }).pipe(finalize(() => running.set(key, running.get(key)! - 1)));
          };
          const { seen } = record(requests.pipe(concatByConversation((n) => plan[n]!.key, ask, { concurrency })));
          plan.forEach(({ gapMs }, n) => {
            runtime.advance(gapMs);
            requests.next(n);
          });
          requests.complete();
          runtime.run();

          expect(seen).to.have.length(plan.length + 1);
          expect(most).to.be.at.most(concurrency);
          for (const own of started.values()) expect(own).to.deep.equal(own.toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 100 },
    );
  });
});
