import { expect } from 'chai';
import { concat, defer, merge, NEVER, Observable, of, retry, Subject, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { startTimer } from '../../lib/core/runtime.ts';
import { RELEASE_WITHIN_MS } from '../../lib/operators/HeldRun.ts';
import { holding } from '../../lib/operators/holding.ts';
import type { Hold } from '../../lib/operators/Hold.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { speakingSource } from '../helpers/speakingSource.ts';

const failure = new SluiceError('server_error', 'failed');
const refusal = new SluiceError('queue_full', 'full', { retryAfterMs: 5 });

describe('holding', () => {
  let runtime: VirtualRuntime;
  let log: string[];
  let outcomes: Outcome[];
  let firstContents: (number | undefined)[];

  beforeEach(() => {
    runtime = virtualRuntime();
    log = [];
    outcomes = [];
    firstContents = [];
  });

  /** Holds a thing that is there at once; notes what becomes of it. */
  const hold = (changes: Partial<Hold<string>> = {}): Hold<string> => ({
    runtime,
    acquire: () => of('thing'),
    dispatched: () => log.push('dispatched'),
    release: (_held, outcome, firstContentMs) => {
      log.push('released');
      outcomes.push(outcome);
      firstContents.push(firstContentMs);
    },
    ...changes,
  });

  const run = (source: Observable<unknown>, scope?: CallScope): { unsubscribe(): void } =>
    runInScope(scope, () =>
      source.subscribe({
        next: (value) => log.push(`next ${String(value)}`),
        error: (error: unknown) => log.push(`error ${(error as SluiceError).code}`),
        complete: () => log.push('complete'),
      }),
    );

  it('leaves what gave it its hold as soon as that has given all', () => {
    const given = new Observable<string>((subscriber) => {
      subscriber.next('thing');
      subscriber.complete();
      return () => log.push('given');
    });
    run(NEVER.pipe(holding(hold({ acquire: () => given }))));

    expect(log).to.deep.equal(['dispatched', 'given']);
  });

  describe('releases', () => {
    it('as a success, before completion is passed on', () => {
      run(of(1).pipe(holding(hold())));

      expect(log).to.deep.equal(['dispatched', 'next 1', 'released', 'complete']);
      expect(outcomes).to.deep.equal([{ kind: 'success' }]);
    });

    it('as a failure, before the error is passed on', () => {
      run(throwError(() => failure).pipe(holding(hold())));

      expect(log).to.deep.equal(['released', 'error server_error']);
      expect(outcomes).to.deep.equal([{ kind: 'failure', error: failure }]);
    });

    it('after the end is passed on, where it is asked to', () => {
      run(of(1).pipe(holding(hold({ releaseFirst: false }))));
      run(throwError(() => failure).pipe(holding(hold({ releaseFirst: false }))));

      expect(log.slice(1)).to.deep.equal(['next 1', 'complete', 'released', 'error server_error', 'released']);
      expect(outcomes.map(({ kind }) => kind)).to.deep.equal(['success', 'failure']);
    });

    it('as dropped on unsubscribe, after the source has been unsubscribed from', () => {
      const source = new Observable(() => () => log.push('source unsubscribed'));
      run(source.pipe(holding(hold()))).unsubscribe();

      expect(log).to.deep.equal(['dispatched', 'source unsubscribed', 'released']);
      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: true }]);
    });

    it('after the source has been unsubscribed from, also where it was granted after a wait', () => {
      for (const acquired of [of('thing'), new Subject<string>()]) {
        log = [];
        const source = new Observable(() => () => log.push('source unsubscribed'));
        const running = run(source.pipe(holding(hold({ acquire: () => acquired }))));
        if (acquired instanceof Subject) acquired.next('thing');
        running.unsubscribe();
        expect(log).to.deep.equal(['dispatched', 'source unsubscribed', 'released']);
      }
    });

    it('once, where the consumer leaves while a source that was granted after a wait is being subscribed to', () => {
      const acquired = new Subject<string>();
      const source = new Observable((subscriber) => {
        running.unsubscribe();
        return () => log.push(`source unsubscribed, ${subscriber.closed}`);
      });
      const running = run(source.pipe(holding(hold({ acquire: () => acquired }))));
      acquired.next('thing');
      expect(log).to.deep.equal(['source unsubscribed, true', 'released']);
    });

    it('as dropped and unsent when something above refuses', () => {
      run(throwError(() => refusal).pipe(holding(hold())));

      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: false }]);
    });

    it('as a failure that was recognised where the source fails with an error of another kind', () => {
      const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      run(throwError(() => reset).pipe(holding(hold())));

      expect(outcomes[0]).to.have.nested.property('error.code', 'connection');
    });

    it('once, however the end comes about', () => {
      const source = new Subject<number>();
      const subscription = run(source.pipe(holding(hold())));
      source.complete();
      subscription.unsubscribe();

      expect(log.filter((line) => line === 'released')).to.have.length(1);
    });
  });

  describe('counts an attempt as sent', () => {
    it('when the source says so', () => {
      const scope = CallScope.start(runtime);
      run(speakingSource(runtime, of(1)).pipe(holding(hold())), scope);

      expect(log).to.deep.equal(['dispatched', 'next 1', 'released', 'complete']);
      expect(scope.call.dispatched).to.equal(1);
    });

    it('once it is subscribed to, where the source has not spoken by then, and only once', () => {
      const source = defer(() => {
        const scope = currentScope();
        return new Observable(() => startTimer(runtime, 5, () => scope?.dispatched(runtime.clock.now())));
      });
      run(source.pipe(holding(hold({ dispatched: () => log.push(`dispatched at ${runtime.clock.now()}`) }))));
      runtime.advance(5);

      expect(log).to.deep.equal(['dispatched at 0']);
    });

    it('before its first value, where it does not speak', () => {
      run(concat(of(1), NEVER).pipe(holding(hold())));

      expect(log).to.deep.equal(['dispatched', 'next 1']);
    });

    it('not while a gate above keeps it waiting, but when that has let it through', () => {
      const room = new Subject<string>();
      run(NEVER.pipe(holding({ ...hold({ acquire: () => room }), dispatched: () => {} }), holding(hold())));
      expect(log).to.deep.equal([]);

      room.next('thing');
      expect(log).to.deep.equal(['dispatched']);
    });

    it('not if the gate above refuses', () => {
      const gate = holding({ ...hold({ acquire: () => throwError(() => refusal) }), dispatched: () => {} });
      run(NEVER.pipe(gate, holding(hold())));

      expect(log).to.deep.equal(['released', 'error queue_full']);
      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: false }]);
    });

    it('when one of several gates refused, or was given up, and a later try went through', () => {
      const grants = [NEVER, throwError(() => refusal), of('thing')];
      let tries = 0;
      const gate = holding<number, string>({
        ...hold({ acquire: () => defer(() => grants[tries++]!) }),
        dispatched: () => {},
        release: () => {},
      });
      run(NEVER.pipe(gate, retryAtOnce(runtime), holding(hold())));
      expect(log).to.deep.equal([]);

      runtime.advance(10);
      expect(tries).to.equal(3);
      expect(log).to.deep.equal(['dispatched']);
    });

    it('not while a gate keeps a second try waiting, though its grant of the first is still open', () => {
      const grants = [concat(of('thing'), NEVER), NEVER];
      let tries = 0;
      const gate = holding<number, string>({
        ...hold({ acquire: () => defer(() => grants[tries++]!) }),
        dispatched: () => {},
        release: () => {},
      });
      const source = throwError(() => failure);
      run(source.pipe(gate, retry(1), holding(hold())));

      expect(tries).to.equal(2);
      expect(log).to.deep.equal([]);
    });

    it('not if it is unsubscribed while it waits', () => {
      const gate = holding({ ...hold({ acquire: () => NEVER }), dispatched: () => {} });
      run(NEVER.pipe(gate, holding(hold()))).unsubscribe();

      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: false }]);
    });

    it('once, however many attempts run under one hold', () => {
      const attempt = speakingSource(
        runtime,
        throwError(() => failure),
      );
      run(attempt.pipe(retry(2), holding(hold())));

      expect(log).to.deep.equal(['dispatched', 'released', 'error server_error']);
    });
  });

  describe('until closed', () => {
    const untilClosed = (): Hold<string> => hold({ untilClosed: true });

    it('keeps what it holds until nothing of the attempt runs any more', () => {
      run(speakingSource(runtime, of(1), { closesAfterMs: 30 }).pipe(holding(untilClosed())));
      expect(log).to.deep.equal(['dispatched', 'next 1', 'complete']);

      runtime.advance(29);
      expect(log).not.to.include('released');
      runtime.advance(1);
      expect(log).to.include('released');
      expect(outcomes).to.deep.equal([{ kind: 'success' }]);
      expect(runtime.pending).to.equal(0);
    });

    it('keeps it after an unsubscribe too', () => {
      run(speakingSource(runtime, NEVER, { closesAfterMs: 30 }).pipe(holding(untilClosed()))).unsubscribe();
      runtime.advance(29);
      expect(log).not.to.include('released');

      runtime.advance(1);
      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: true }]);
    });

    it('releases a second after the end at the latest, and once', () => {
      const source = speakingSource(runtime, NEVER, { closesAfterMs: RELEASE_WITHIN_MS + 500 });
      run(source.pipe(holding(untilClosed()))).unsubscribe();
      runtime.advance(RELEASE_WITHIN_MS - 1);
      expect(log).not.to.include('released');

      runtime.advance(1);
      expect(log).to.include('released');
      runtime.advance(500);
      expect(outcomes).to.have.length(1);
    });

    it('leaves no timer behind where the source never closes', () => {
      run(speakingSource(runtime, NEVER, { closesAfterMs: Infinity }).pipe(holding(untilClosed()))).unsubscribe();
      runtime.run();

      expect(runtime.clock.now()).to.equal(RELEASE_WITHIN_MS);
      expect(runtime.pending).to.equal(0);
    });

    it('waits for every attempt that ran under the hold', () => {
      let attempts = 0;
      const attempt = defer(() => {
        const [body, closesAfterMs] = ++attempts === 1 ? [throwError(() => failure), 50] : [of(1), 20];
        return speakingSource(runtime, body, { closesAfterMs });
      });
      run(attempt.pipe(retry(1), holding(untilClosed())));
      runtime.advance(49);
      expect(log).not.to.include('released');

      runtime.advance(1);
      expect(outcomes).to.deep.equal([{ kind: 'success' }]);
    });

    it('releases at the end where the source does not speak', () => {
      run(of(1).pipe(holding(untilClosed())));

      expect(log).to.deep.equal(['dispatched', 'next 1', 'released', 'complete']);
    });

    it('releases at once where it is not asked to wait', () => {
      run(speakingSource(runtime, of(1), { closesAfterMs: 30 }).pipe(holding(hold())));

      expect(log).to.deep.equal(['dispatched', 'next 1', 'released', 'complete']);
      runtime.advance(30);
      expect(outcomes).to.have.length(1);
    });
  });

  describe('measures', () => {
    it('the time from dispatch to the first value', () => {
      const source = new Subject<number>();
      const first: string[] = [];
      run(speakingSource(runtime, source).pipe(holding(hold({ firstContent: (held) => first.push(held) }))));
      runtime.advance(40);
      source.next(1);
      runtime.advance(40);
      source.next(2);
      source.complete();

      expect(firstContents).to.deep.equal([40]);
      expect(first).to.deep.equal(['thing']);
    });

    it('nothing where there was no value', () => {
      run(of().pipe(holding(hold())));

      expect(firstContents).to.deep.equal([undefined]);
    });
  });

  it('passes on what the source says of its attempt', () => {
    const heard: unknown[] = [];
    const hears: Partial<Hold<string>> = {
      dispatched: (held) => heard.push(['dispatched', held]),
      responded: (held, status) => heard.push(['responded', held, status]),
      hints: (held, hints) => heard.push(['hints', held, hints]),
      usage: (held, usage) => heard.push(['usage', held, usage]),
    };
    const onScope = (scope: CallScope): void => {
      scope.responded(200);
      scope.hints('hints' as never);
      scope.usage('usage' as never);
    };
    run(
      merge(
        defer(() => of(onScope(currentScope()!))),
        speakingSource(runtime, of(1)),
      ).pipe(holding(hold(hears))),
    );

    expect(heard).to.deep.equal([
      ['responded', 'thing', 200],
      ['hints', 'thing', 'hints'],
      ['usage', 'thing', 'usage'],
      ['dispatched', 'thing'],
    ]);
  });

  describe('when what is held is lost', () => {
    const superseded = new SluiceError('superseded', 'superseded');

    it('ends with that error, unsubscribes from the source and releases as dropped', () => {
      let lose: (error: unknown) => void = () => {};
      const source = new Subject();
      run(source.pipe(holding(hold({ onLost: (_held, given) => (lose = given) }))));
      lose(superseded);

      expect(log).to.deep.equal(['dispatched', 'released', 'error superseded']);
      expect(source.observed).to.be.false;
      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: true }]);
    });

    it('never subscribes to the source if it is lost by then', () => {
      let subscribed = false;
      const source = defer(() => {
        subscribed = true;
        return NEVER;
      });
      run(source.pipe(holding(hold({ onLost: (_held, lose) => lose(superseded) }))));

      expect(subscribed).to.be.false;
      expect(log).to.deep.equal(['released', 'error superseded']);
      expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: false }]);
    });

    it('tells the consumer in the frame in which it subscribed', () => {
      let lose: (error: unknown) => void = () => {};
      const frames: (string | undefined)[] = [];
      runInScope(CallScope.start(runtime, { id: 'own' }), () =>
        NEVER.pipe(holding(hold({ onLost: (_held, given) => (lose = given) }))).subscribe({
          error: () => frames.push(currentScope()?.callId),
        }),
      );
      runInScope(CallScope.start(runtime, { id: 'stranger' }), () => lose(superseded));

      expect(frames).to.deep.equal(['own']);
    });
  });

  describe('reports', () => {
    let events: SluiceEvent[];
    const onEvent = (event: SluiceEvent): void => void events.push(event);
    beforeEach(() => {
      events = [];
    });

    it('the wait and the grant, for a gate that has a name', () => {
      const acquire: Hold<string>['acquire'] = (_scope, onQueued) =>
        new Observable((subscriber) => {
          onQueued(3, 70);
          return startTimer(runtime, 50, () => subscriber.next('thing'));
        });
      run(NEVER.pipe(holding(hold({ where: 'quota', onEvent, acquire, waitedMs: () => 50 }))));
      runtime.advance(50);

      expect(events.map(({ callId: _, ...event }) => event)).to.deep.equal([
        { ...context, atMs: 0, type: 'queued', where: 'quota', position: 3, waitMs: 70 },
        { ...context, atMs: 50, type: 'granted', where: 'quota', waitedMs: 50 },
      ]);
    });

    it('neither for one that has none', () => {
      const acquire: Hold<string>['acquire'] = (_scope, onQueued) => {
        onQueued(1, undefined);
        return of('thing');
      };
      run(of(1).pipe(holding(hold({ onEvent, acquire }))));

      expect(events).to.deep.equal([]);
    });

    it('a refusal, to the listener given and to those of the call', () => {
      const scope = CallScope.start(runtime, { id: 'c', onEvent });
      run(of(1).pipe(holding(hold({ acquire: () => throwError(() => refusal), onEvent }))), scope);

      const refused = { ...context, callId: 'c', atMs: 0, type: 'refused', code: 'queue_full', retryAfterMs: 5 };
      expect(events).to.deep.equal([refused, refused]);
      expect(log).to.deep.equal(['error queue_full']);
      expect(outcomes).to.deep.equal([]);
    });

    it('no refusal where the port itself broke', () => {
      const broken = new TypeError('broken');
      let caught: unknown;
      of(1)
        .pipe(holding(hold({ acquire: () => throwError(() => broken), onEvent })))
        .subscribe({ error: (error: unknown) => (caught = error) });

      expect(caught).to.equal(broken);
      expect(events).to.deep.equal([]);
    });
  });

  it('passes on what the port throws, and tells the gates below that it has ended', () => {
    const broken = (): never => {
      throw refusal;
    };
    run(NEVER.pipe(holding({ ...hold({ acquire: broken }), dispatched: () => {} }), holding(hold())));

    expect(log).to.deep.equal(['released', 'error queue_full']);
    expect(outcomes).to.deep.equal([{ kind: 'dropped', dispatched: false }]);
  });

  describe('tells the consumer of a port that throws', () => {
    const broken = (): never => {
      throw new SluiceError('limiter_unavailable', 'broken');
    };
    for (const [when, changes, source, before] of [
      ['as its source is asked for', { guard: broken }, of(1), []],
      ['at the first value', { firstContent: broken }, concat(of(1), NEVER), ['dispatched']],
      ['at the end', { release: broken }, of(1), ['dispatched', 'next 1']],
      ['at the failure, in place of it', { release: broken }, throwError(() => failure), []],
    ] as const) {
      it(when, () => {
        run((source as Observable<unknown>).pipe(holding(hold(changes))));
        expect(log.filter((line) => line !== 'released')).to.deep.equal([...before, 'error limiter_unavailable']);
        expect(runtime.pending).to.equal(0);
      });
    }
  });

  it('delivers a refusal that comes from a timer in the frame in which the consumer subscribed', () => {
    const frames: (string | undefined)[] = [];
    const acquire = (): Observable<string> =>
      new Observable((subscriber) => startTimer(runtime, 5, () => subscriber.error(refusal)));
    runInScope(CallScope.start(runtime, { id: 'own' }), () =>
      of(1)
        .pipe(holding(hold({ acquire })))
        .subscribe({ error: () => frames.push(currentScope()?.callId) }),
    );
    runtime.advance(5);

    expect(frames).to.deep.equal(['own']);
  });
});

const context = { attempt: 1, model: undefined, tenant: undefined, conversation: undefined };

/** Gives up on what is silent for 10 ms, and tries again at once, in the frame of its call. */
function retryAtOnce<T>(runtime: VirtualRuntime): MonoTypeOperatorFunction<T> {
  const tooLate = defer(() => {
    const scope = currentScope();
    return new Observable<never>((subscriber) =>
      startTimer(runtime, 10, () => runInScope(scope, () => subscriber.error(refusal))),
    );
  });
  return (source) => merge(source, tooLate).pipe(retry(2));
}
