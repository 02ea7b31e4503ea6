import { expect } from 'chai';
import { delay, NEVER, of, range, Subscription, tap } from 'rxjs';
import type { SluiceError } from '../../lib/core/errors.ts';
import type { LanePlace, LanesPort } from '../../lib/core/ports.ts';
import { concatByConversation } from '../../lib/operators/concatByConversation.ts';
import { createLanes } from '../../lib/operators/createLanes.ts';
import { inConversation } from '../../lib/operators/inConversation.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failed, recording } from '../helpers/scripted.ts';

describe('conversations at their edges', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  it('wait in concatByConversation as many and as long as there are turns before them', () => {
    const minute = of('done').pipe(delay(60_000, runtime.scheduler));
    const turns = range(0, 30).pipe(
      concatByConversation(
        () => 'one',
        () => minute,
        { runtime },
      ),
    );
    const seen = recording(turns);
    runtime.run();
    expect(seen.error).to.equal(undefined);
    expect(seen.values).to.have.length(30);
    expect(runtime.clock.now()).to.equal(30 * 60_000);
  });

  it('say why more may not wait', () => {
    const turns = of('a', 'a', 'a').pipe(
      concatByConversation(
        (name: string) => name,
        () => NEVER,
        { maxWaiting: 1 },
      ),
    );
    expect(recording(turns).error?.message).to.equal('1 requests are held back already, and no more may be');
  });

  it('start no turn whose receiver has gone since it was its turn, and then the others', () => {
    const lanes = createLanes({}, runtime);
    const log: string[] = [];
    const places = new Map<string, LanePlace>();
    const take = (name: string, conversation: string, onPlace = (): void => {}): Subscription =>
      lanes.acquire({ conversation }).subscribe((place) => {
        log.push(name);
        places.set(name, place);
        onPlace();
      });
    take('a1', 'a');
    take('b1', 'b');
    take('c1', 'c');
    const gone = new Subscription();
    take('a2', 'a', () => {
      // Both are started once this one has been.
      places.get('b1')?.release();
      places.get('c1')?.release();
      gone.unsubscribe();
    });
    gone.add(take('b2', 'b'));
    take('c2', 'c');
    places.get('a1')?.release();
    expect(log).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'c2']);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 2, waiting: 0 });
  });

  it('supersede one that has left as another heard of it', () => {
    const lanes = createLanes({}, runtime);
    const waiting = new Subscription();
    lanes.acquire({ conversation: 'a' }).subscribe((place) => place.onLost(() => waiting.unsubscribe()));
    waiting.add(lanes.acquire({ conversation: 'a' }).subscribe());
    const seen = recording(lanes.acquire({ conversation: 'a', supersede: true }));
    expect(seen.error).to.equal(undefined);
    expect(seen.values).to.have.length(1);
  });

  describe('whose place can be looked at', () => {
    const lanesOf = (place: Partial<LanePlace>): LanesPort =>
      ({
        acquire: () => of({ waitedMs: 0, onLost: () => {}, release: () => {}, ...place }),
      }) as unknown as LanesPort;

    it('look before each value and before the end', () => {
      const log: string[] = [];
      const lanes = lanesOf({ check: () => log.push('check') });
      of('a', 'b')
        .pipe(
          inConversation(lanes, 'c', { runtime }),
          tap((value) => log.push(value)),
        )
        .subscribe({ complete: () => log.push('|') });
      expect(log).to.deep.equal(['check', 'a', 'check', 'b', 'check', '|']);
    });

    it('end with what the look has found', () => {
      const lost = failed('lane_lost');
      let lose: ((error: SluiceError) => void) | undefined;
      const lanes = lanesOf({ onLost: (told) => (lose = told), check: () => lose?.(lost) });
      const seen = recording(of('a').pipe(inConversation(lanes, 'c', { runtime })));
      expect(seen).to.deep.include({ values: [], error: lost });
    });
  });
});
