import { expect } from 'chai';
import { EMPTY, finalize, NEVER, Observable, of, Subject, throwError } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { holding } from '../../lib/operators/holding.ts';
import type { Hold } from '../../lib/operators/Hold.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failed, recording } from '../helpers/scripted.ts';
import { speakingSource } from '../helpers/speakingSource.ts';

/** What `holding` does for holds that say little, and for sources that speak late. */
describe('holding at its edges', () => {
  let runtime: VirtualRuntime;
  let log: unknown[];
  beforeEach(() => {
    runtime = virtualRuntime();
    log = [];
  });

  const hold = (changes: Partial<Hold<string>> = {}): Hold<string> => ({
    runtime,
    acquire: () => of('thing'),
    dispatched: (_held, sentFollows) => log.push(['dispatched', sentFollows]),
    release: (_held, { kind }: Outcome, firstContentMs) => log.push(['released', kind, firstContentMs]),
    ...changes,
  });
  /** Tells its scope everything that a source can. */
  const telling = new Observable<string>((subscriber) => {
    const scope = currentScope()!;
    scope.dispatched(0, true);
    scope.sent(0);
    scope.responded(200);
    scope.hints({} as never);
    scope.usage({} as never);
    subscriber.next('a');
    subscriber.complete();
    scope.closed();
  });

  it('goes on for a hold that does not listen', () => {
    const seen = recording(telling.pipe(holding(hold())));
    expect(seen).to.deep.include({ values: ['a'], done: true, error: undefined });
    expect(log).to.deep.equal([
      ['dispatched', true],
      ['released', 'success', 0],
    ]);
  });

  it('passes on that the request was handed over', () => {
    const sent = (held: string): number => log.push(['sent', held]);
    recording(telling.pipe(holding(hold({ sent, dispatched: () => {}, release: () => {} }))));
    expect(log).to.deep.equal([['sent', 'thing']]);
  });

  it('takes a source that does not speak for sent, with nothing to follow', () => {
    recording(NEVER.pipe(holding(hold())));
    expect(log).to.deep.equal([['dispatched', false]]);
  });

  it('measures to the first value from when it was sent, whenever that was', () => {
    const source = new Subject<string>();
    runtime.advance(1000);
    recording(speakingSource(runtime, source).pipe(holding(hold({ dispatched: () => {} }))));
    runtime.advance(40);
    source.next('a');
    source.complete();
    expect(log).to.deep.equal([['released', 'success', 40]]);
  });

  it('takes nothing for sent while one of two gates above is closed', () => {
    const room = new Subject<string>();
    const gate = (acquire: () => Observable<string>) =>
      holding<string, string>({ runtime, acquire, release: () => {} });
    recording(
      NEVER.pipe(
        gate(() => room),
        gate(() => of('thing')),
        holding(hold()),
      ),
    );
    expect(log).to.deep.equal([]);
    room.next('thing');
    expect(log).to.deep.equal([['dispatched', false]]);
  });

  it('says nothing of a request that is sent when it is over', () => {
    let scope: CallScope | undefined;
    const acquire: Hold<string>['acquire'] = (above) => {
      scope = above;
      return NEVER;
    };
    const gate = holding<string, string>({ runtime, acquire, release: () => {} });
    recording(NEVER.pipe(gate, holding(hold()))).subscription.unsubscribe();
    expect(log).to.deep.equal([['released', 'dropped', undefined]]);
    log = [];
    scope?.dispatched(0);
    expect(log).to.deep.equal([]);
  });

  it('keeps what it holds while a source that has closed one attempt goes on', () => {
    const source = new Observable<string>(() => {
      const scope = currentScope()!;
      scope.dispatched(0);
      scope.closed();
    });
    const seen = recording(source.pipe(holding(hold({ untilClosed: true }))));
    expect(log).to.deep.equal([['dispatched', false]]);
    seen.subscription.unsubscribe();
    expect(log).to.deep.equal([
      ['dispatched', false],
      ['released', 'dropped', undefined],
    ]);
  });

  for (const [name, end] of [
    ['it has granted', (line: Subject<string>) => (line.next('thing'), line.complete())],
    ['it has refused', (line: Subject<string>) => line.error(failed('queue_full'))],
  ] as const) {
    it(`leaves the line as soon as ${name}`, () => {
      const line = new Subject<string>();
      const acquire = () => line.pipe(finalize(() => log.push('left the line')));
      const seen = recording(NEVER.pipe(holding(hold({ acquire, dispatched: () => {} }))));
      end(line);
      expect(log).to.deep.equal(['left the line']);
      seen.subscription.unsubscribe();
    });
  }

  it('completes with a port that grants nothing', () => {
    expect(recording(of('a').pipe(holding(hold({ acquire: () => EMPTY }))))).to.deep.include({
      values: [],
      done: true,
    });
    expect(log).to.deep.equal([]);
  });

  it('shows what is above the conversation of the hold, if it has one', () => {
    const conversations: unknown[] = [];
    const source = new Observable<string>(() => void conversations.push(currentScope()?.conversation));
    const scope = CallScope.start(runtime, { conversation: 'of the call' });
    for (const conversation of ['of the hold', undefined]) {
      runInScope(scope, () => recording(source.pipe(holding(hold({ conversation })))));
    }
    expect(conversations).to.deep.equal(['of the hold', 'of the call']);
  });

  describe('tells of a gate that has a name', () => {
    const told = (changes: Partial<Hold<string>>): SluiceEvent[] => {
      const events: SluiceEvent[] = [];
      const onEvent = (event: SluiceEvent) => events.push(event);
      recording(NEVER.pipe(holding(hold({ where: 'lane', onEvent, ...changes })))).subscription.unsubscribe();
      return events;
    };

    it('that nobody has waited, where the hold says nothing of it', () => {
      const events = told({});
      expect(events[0]).to.include({ type: 'granted', waitedMs: 0 });
      expect(events).to.have.length(1);
    });

    it('that one has left who was told to wait, and no other', () => {
      expect(told({ acquire: () => NEVER })).to.deep.equal([]);
      const acquire: Hold<string>['acquire'] = (_, onQueued) => {
        onQueued(1, undefined);
        return NEVER;
      };
      expect(told({ acquire }).map(({ type }) => type)).to.deep.equal(['queued', 'left']);
      const granted: Hold<string>['acquire'] = (_, onQueued) => {
        onQueued(1, undefined);
        return of('held');
      };
      expect(told({ acquire: granted }).map(({ type }) => type)).to.deep.equal(['queued', 'granted']);
      const refused: Hold<string>['acquire'] = (_, onQueued) => {
        onQueued(1, undefined);
        return throwError(() => new SluiceError('queue_timeout', 'too late'));
      };
      expect(told({ acquire: refused }).map(({ type }) => type)).to.deep.equal(['queued', 'refused']);
    });
  });
});
