import { expect } from 'chai';
import { combineLatest, Subject, Subscriber, takeUntil, throwError } from 'rxjs';
import type { Subscription } from 'rxjs';
import fc from 'fast-check';
import type { SluiceError } from '../../lib/core/errors.ts';
import type { LanePlace, LaneRequest, LanesPort } from '../../lib/core/ports.ts';
import { createLanes } from '../../lib/operators/createLanes.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { lanesPortContract } from '../contract/lanesPort.ts';

interface Taken {
  place: LanePlace | undefined;
  error: SluiceError | undefined;
  lost: SluiceError | undefined;
  /** Number of the grant among all. */
  grantedAs: number | undefined;
  readonly queued: number[];
  readonly subscription: Subscription;
}

interface Turn extends Taken {
  readonly key: string;
  over: boolean;
}

const isRunning = ({ place, lost, over }: Turn): boolean => place !== undefined && lost === undefined && !over;

let grants = 0;

function acquire(lanes: LanesPort, conversation: string, request: Partial<LaneRequest> = {}): Taken {
  const nothing = { place: undefined, error: undefined, lost: undefined, grantedAs: undefined };
  const taken: Omit<Taken, 'subscription'> = { ...nothing, queued: [] };
  const onQueued = (position: number): void => void taken.queued.push(position);
  const subscription = lanes.acquire({ conversation, onQueued, ...request }).subscribe({
    next: (place) => {
      taken.place = place;
      taken.grantedAs = grants++;
      place.onLost((error) => (taken.lost = error));
    },
    error: (error: SluiceError) => (taken.error = error),
  });
  return Object.assign(taken, { subscription });
}

describe('createLanes', () => {
  lanesPortContract(() => {
    const own = virtualRuntime();
    return {
      make: (options) => createLanes(options, own),
      nowMs: () => own.clock.now(),
      pass: (ms) => own.advanceAsync(ms),
    };
  });

  let runtime: VirtualRuntime;
  let lanes: LanesPort;

  beforeEach(() => {
    runtime = virtualRuntime();
    lanes = createLanes({ maxWaiting: 3, maxWaitMs: 100 }, runtime);
  });

  it('takes nothing before it is subscribed to', () => {
    lanes.acquire({ conversation: 'a' });
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('grants a free lane within the subscription, and completes', () => {
    let completed = false;
    lanes.acquire({ conversation: 'a' }).subscribe({ complete: () => (completed = true) });
    expect(completed).to.be.true;
    expect(lanes.snapshot()).to.deep.equal({ conversations: 1, waiting: 0 });
    expect(runtime.pending).to.equal(0);
  });

  it('tells who waits of the place in line, and grants as the turn before it is released', () => {
    const first = acquire(lanes, 'a');
    const second = acquire(lanes, 'a');
    const third = acquire(lanes, 'a');
    expect([first.queued, second.queued, third.queued]).to.deep.equal([[], [1], [2]]);

    runtime.advance(30);
    expect(second.place).to.be.undefined;
    first.place!.release();
    first.place!.release();

    expect(second.place?.waitedMs).to.equal(30);
    expect(third.place).to.be.undefined;
    expect(lanes.snapshot()).to.deep.equal({ conversations: 1, waiting: 1 });
  });

  it('does not end a turn when the subscription that it came through is unsubscribed', () => {
    const first = acquire(lanes, 'a');
    first.subscription.unsubscribe();
    expect(acquire(lanes, 'a').place).to.be.undefined;
  });

  it('refuses with the line, the limit and a guess of the wait', () => {
    for (let n = 0; n < 4; n++) acquire(lanes, 'a');
    const { error } = acquire(lanes, 'a');

    expect(error).to.include({ code: 'queue_full', source: 'local', while: 'lane', limit: 3, retryAfterMs: 1000 });
    expect(error?.message).to.equal('3 turns of this conversation are waiting already, and no more may');
  });

  it('gives up a wait that is too long, after the deadline or maxWaitMs, whichever comes first', () => {
    acquire(lanes, 'a');
    const byDefault = acquire(lanes, 'a');
    const own = acquire(lanes, 'a', { maxWaitMs: 40 });
    const deadline = acquire(lanes, 'a', { deadlineAtMs: 60 });

    runtime.advance(39);
    expect(own.error).to.be.undefined;
    runtime.advance(1);
    expect(own.error).to.include({ code: 'queue_timeout', while: 'lane', limit: 40 });
    runtime.advance(20);
    expect(deadline.error).to.include({ code: 'timeout_deadline', while: 'lane', limit: 60 });
    runtime.advance(40);
    expect(byDefault.error).to.include({ code: 'queue_timeout', while: 'lane', limit: 100 });
    for (const { error } of [byDefault, own, deadline]) expect(error!.retryAfterMs).to.be.above(0);
    expect(lanes.snapshot().waiting).to.equal(0);
    expect(runtime.pending).to.equal(0);
  });

  it('arms one timer at most, and none when nobody waits', () => {
    const many = createLanes({ maxWaiting: Infinity }, runtime);
    const running = acquire(many, 'a');
    const waiting = Array.from({ length: 50 }, (_, n) => acquire(many, 'a', { maxWaitMs: 1000 - n }));
    expect(runtime.pending).to.equal(1);

    for (const { subscription } of waiting) subscription.unsubscribe();
    expect(runtime.pending).to.equal(0);
    running.place!.release();
    expect(many.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('arms none any more when the one that waited is superseded', () => {
    acquire(lanes, 'a');
    const waiting = acquire(lanes, 'a');
    expect(runtime.pending).to.equal(1);
    const newer = acquire(lanes, 'a', { supersede: true });
    expect([waiting.error?.code, newer.place?.waitedMs, runtime.pending]).to.deep.equal(['superseded', 0, 0]);
  });

  it('arms none for a wait without a bound', () => {
    acquire(lanes, 'a');
    acquire(lanes, 'a', { maxWaitMs: Infinity });
    expect(runtime.pending).to.equal(0);
  });

  it('still ends a wait in time when the one that the timer was armed for has left', () => {
    acquire(lanes, 'a');
    const early = acquire(lanes, 'a', { maxWaitMs: 10 });
    const late = acquire(lanes, 'a', { maxWaitMs: 50 });
    early.subscription.unsubscribe();

    runtime.advance(49);
    expect(late.error).to.be.undefined;
    runtime.advance(1);
    expect(late.error?.code).to.equal('queue_timeout');
  });

  it('grants or refuses, and never both, where a release and the bound fall into one instant', () => {
    const first = acquire(lanes, 'a');
    runtime.scheduler.schedule(() => first.place!.release(), 100);
    const second = acquire(lanes, 'a');
    const third = acquire(lanes, 'a', { deadlineAtMs: 100 });
    runtime.advance(100);

    expect(second.place).to.not.be.undefined;
    expect(second.error).to.be.undefined;
    expect(third.error?.code).to.equal('timeout_deadline');
    second.place!.release();
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('does not let one that comes in the tick of a release overtake', () => {
    const order: number[] = [];
    const turn = (n: number, inTurn?: () => void): void => {
      lanes.acquire({ conversation: 'k' }).subscribe((place) => {
        order.push(n);
        inTurn?.();
        if (n > 1) place.release();
      });
    };
    const first = acquire(lanes, 'k');
    turn(2, () => turn(4));
    turn(3);
    first.place!.release();

    expect(order).to.deep.equal([2, 3, 4]);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('supersedes: first the running turn hears, then those that wait, then the new one starts', () => {
    const log: string[] = [];
    lanes.acquire({ conversation: 'a' }).subscribe((place) => place.onLost(({ code }) => log.push(`1 ${code}`)));
    lanes.acquire({ conversation: 'a' }).subscribe({ error: ({ code }: SluiceError) => log.push(`2 ${code}`) });
    lanes.acquire({ conversation: 'a', supersede: true }).subscribe(() => log.push('3 starts'));

    expect(log).to.deep.equal(['1 superseded', '2 superseded', '3 starts']);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 1, waiting: 0 });
    expect(runtime.pending).to.equal(0);
  });

  it('says that a superseded turn was waiting only where it was', () => {
    const running = acquire(lanes, 'a');
    const waiting = acquire(lanes, 'a');
    acquire(lanes, 'a', { supersede: true });
    expect(running.lost?.while).to.be.undefined;
    expect(waiting.error?.while).to.equal('lane');
  });

  it('tells of the loss also one that asks after it has happened', () => {
    const first = acquire(lanes, 'a');
    acquire(lanes, 'a', { supersede: true });
    let code: string | undefined;
    first.place!.onLost((error) => (code = error.code));
    expect(code).to.equal('superseded');
  });

  it('does not start the next turn when a superseded one releases', () => {
    const first = acquire(lanes, 'a');
    acquire(lanes, 'a', { supersede: true });
    const third = acquire(lanes, 'a');
    first.place!.release();
    expect(third.place).to.be.undefined;
  });

  it('starts nothing for one that is unsubscribed by whom it supersedes', () => {
    const stop = new Subject<void>();
    let started = false;
    lanes.acquire({ conversation: 'a' }).subscribe((place) => place.onLost(() => stop.next()));
    lanes
      .acquire({ conversation: 'a', supersede: true })
      .pipe(takeUntil(stop))
      .subscribe(() => (started = true));

    expect(started).to.be.false;
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('lets 10,000 turns of one lane through that end as they start', () => {
    const many = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
    const first = acquire(many, 'a');
    let next = 0;
    for (let n = 0; n < 10_000; n++) {
      many.acquire({ conversation: 'a' }).subscribe((place) => {
        if (n !== next++) expect.fail(`turn ${n} came as number ${next - 1}`);
        place.release();
      });
    }
    first.place!.release();
    expect(next).to.equal(10_000);
    expect(many.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('goes on granting in other lanes from within a grant', () => {
    const held = acquire(lanes, 'b');
    const waits = acquire(lanes, 'b');
    const first = acquire(lanes, 'a');
    lanes.acquire({ conversation: 'a' }).subscribe(() => held.place!.release());
    first.place!.release();
    expect(waits.place).to.not.be.undefined;
  });

  it('names what is wrong with a conversation', () => {
    for (const [conversation, got] of [
      ['', 'an empty string'],
      [undefined as unknown as string, 'undefined'],
      [7 as unknown as string, '7'],
    ] as const) {
      const { error } = acquire(lanes, conversation);
      expect(error?.code).to.equal('invalid_request');
      expect(error?.message).to.equal(`conversation must be a string that is not empty, got ${got}`);
    }
    expect(() => createLanes({ maxWaiting: NaN })).to.throw('maxWaiting must be 0 or more, or Infinity, got NaN');
  });

  it('gives each subscription a place of its own', () => {
    const place$ = lanes.acquire({ conversation: 'a' });
    let granted = 0;
    place$.subscribe(() => granted++);
    place$.subscribe(() => granted++);
    expect(granted).to.equal(1);
    expect(lanes.snapshot().waiting).to.equal(1);
  });

  it('takes no place for one that has had enough before it starts', () => {
    const done = new Subscriber();
    done.unsubscribe();
    acquire(lanes, 'b');
    for (const conversation of ['a', 'b']) lanes.acquire({ conversation, supersede: true }).subscribe(done);
    expect(lanes.snapshot().conversations).to.equal(1);
  });

  it('takes nothing for one that has gone before it asked', () => {
    const failing = throwError(() => new Error('failed'));
    combineLatest([failing, lanes.acquire({ conversation: 'a' })]).subscribe({ error: () => {} });
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });

  it('loses no turn and overlaps none, whatever is acquired, released, cancelled and awaited', () => {
    const step = fc.record({
      do: fc.constantFrom('acquire', 'release', 'cancel', 'wait'),
      key: fc.constantFrom('a', 'b'),
      which: fc.nat(10),
      supersede: fc.nat(6).map((n) => n === 0),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const time = virtualRuntime();
        const port = createLanes({ maxWaiting: 3, maxWaitMs: 25 }, time);
        const turns: Turn[] = [];
        const running = (key: string): Turn[] => turns.filter((turn) => turn.key === key && isRunning(turn));
        const end = (turn: Turn): void => {
          turn.over = true;
          turn.place!.release();
        };
        for (const { do: what, key, which, supersede } of steps) {
          if (what === 'acquire') turns.push(Object.assign(acquire(port, key, { supersede }), { key, over: false }));
          if (what === 'release') running(key).forEach(end);
          if (what === 'cancel') turns.at(-1 - which)?.subscription.unsubscribe();
          if (what === 'wait') time.advance(which);
          for (const each of ['a', 'b']) expect(running(each).length).to.be.at.most(1);
          expect(time.pending).to.be.at.most(1);
        }
        for (let left = turns.filter(isRunning); left.length > 0; left = turns.filter(isRunning)) left.forEach(end);

        for (const each of ['a', 'b']) {
          const granted = turns.filter(({ key, place }) => key === each && place);
          expect(granted).to.deep.equal(granted.toSorted((one, other) => one.grantedAs! - other.grantedAs!));
        }
        expect(port.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
        expect(time.pending).to.equal(0);
      }),
      { numRuns: 40 },
    );
  });
});
