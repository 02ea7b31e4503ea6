import { expect } from 'chai';
import fc from 'fast-check';
import { isSluiceError } from '../../lib/core/errors.ts';
import { ConversationLanes } from '../../lib/limits/ConversationLanes.ts';
import type { ConversationLanesOptions, EnterDecision, TurnRequest } from '../../lib/limits/ConversationLanes.ts';
import type { Turn } from '../../lib/limits/Lane.ts';
import { turnBound } from '../../lib/limits/turnBound.ts';

interface Bench {
  readonly lanes: ConversationLanes;
  at(nowMs: number): void;
  enter(conversation: string, request?: Omit<TurnRequest, 'conversation'>): EnterDecision;
  turn(conversation: string, request?: Omit<TurnRequest, 'conversation'>): Turn;
}

function bench(options: ConversationLanesOptions = {}): Bench {
  let nowMs = 0;
  const lanes = new ConversationLanes(options, { now: () => nowMs, wallNow: () => 0 });
  const enter: Bench['enter'] = (conversation, request = {}) => lanes.enter({ conversation, ...request });
  return {
    lanes,
    at: (toMs) => (nowMs = toMs),
    enter,
    turn: (conversation, request) => {
      const decision = enter(conversation, request);
      if (decision.kind === 'refused') throw new Error(`refused: ${decision.refusal.code}`);
      return decision.turn;
    },
  };
}

describe('ConversationLanes', () => {
  it('starts the first turn of a conversation at once', () => {
    const { enter } = bench();
    expect(enter('a')).to.include({ kind: 'started' });
  });

  it('takes other bounds for turns to come, and leaves those that wait', () => {
    const { lanes, at, enter, turn } = bench({ maxWaiting: 2, maxWaitMs: 1000 });
    const first = turn('a');
    const [second, third] = [turn('a'), turn('a')];
    lanes.reload({ maxWaiting: 1, maxWaitMs: 100 });
    expect(enter('a')).to.include({ kind: 'refused' });
    turn('b');
    const short = turn('b');
    at(100);
    expect(lanes.expire().map((expired) => expired.turn)).to.deep.equal([short]);
    lanes.reload({ maxWaiting: 3 });
    expect(enter('a')).to.include({ kind: 'waiting', position: 3 });
    expect(lanes.leave(first)).to.equal(second);
    expect(third.state).to.equal('waiting');
    expect(() => lanes.reload({ maxWaitMs: -1 })).to.throw('maxWaitMs');
  });

  it('ends waits that are over at one time in the order in which they began', () => {
    const { lanes, at, turn } = bench({ maxWaitMs: 100 });
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of names) turn(name);
    const waiting = names.map((name) => turn(name));
    at(100);
    expect(lanes.expire().map((expired) => expired.turn)).to.deep.equal(waiting);
  });

  it('knows how long a turn has taken, whenever it started', () => {
    const { lanes, at, enter, turn } = bench({ maxWaiting: 0 });
    at(5000);
    const first = turn('a');
    at(5400);
    lanes.leave(first);
    turn('a');
    expect(enter('a')).to.deep.include({ refusal: { code: 'queue_full', limit: 0, retryAfterMs: 400 } });
  });

  it('bounds a wait without an end by no deadline', () => {
    expect(turnBound({}, Infinity, 5)).to.deep.equal({ code: 'queue_timeout', limit: Infinity, atMs: Infinity });
    expect(turnBound({ deadlineAtMs: 25 }, 20, 5)).to.deep.equal({ code: 'timeout_deadline', limit: 20, atMs: 25 });
  });

  it('makes the next turns wait in line, and starts each as the one before it ends', () => {
    const { lanes, enter, turn } = bench();
    const first = turn('a');
    const second = enter('a');
    const third = enter('a');
    if (second.kind !== 'waiting' || third.kind !== 'waiting') return expect.fail('both wait');

    expect([second.position, third.position]).to.deep.equal([1, 2]);
    expect(lanes.waiting).to.equal(2);
    expect(lanes.leave(first)).to.equal(second.turn);
    expect(lanes.leave(second.turn)).to.equal(third.turn);
    expect(lanes.leave(third.turn)).to.be.undefined;
  });

  it('lets conversations go side by side', () => {
    const { lanes, enter } = bench();
    expect(enter('a').kind).to.equal('started');
    expect(enter('b').kind).to.equal('started');
    expect(lanes.conversations).to.equal(2);
  });

  it('takes a turn out of the middle, the head and the tail of the line', () => {
    const { lanes, turn } = bench();
    const [running, head, middle, stays, tail] = [turn('a'), turn('a'), turn('a'), turn('a'), turn('a')];

    for (const waiting of [middle, head, tail]) expect(lanes.leave(waiting)).to.be.undefined;

    expect(lanes.waiting).to.equal(1);
    expect(lanes.leave(running)).to.equal(stays);
    expect(turn('a').state).to.equal('waiting');
  });

  it('ends a turn once, however often it leaves', () => {
    const { lanes, turn } = bench();
    const [first, second, third] = [turn('a'), turn('a'), turn('a')];
    lanes.leave(first);

    expect(lanes.leave(first)).to.be.undefined;
    expect(second.state).to.equal('running');
    expect(third.state).to.equal('waiting');
  });

  it('forgets a conversation when its last turn ends, and remembers one that is entered as another leaves', () => {
    const { lanes, turn } = bench();
    const first = turn('a');
    const second = turn('a');
    lanes.leave(first);
    expect(lanes.conversations).to.equal(1);

    lanes.leave(second);
    expect(lanes.conversations).to.equal(0);
    expect(turn('a').state).to.equal('running');
  });

  it('keeps keys apart that are names of object members', () => {
    const { enter } = bench();
    for (const key of ['__proto__', 'constructor', 'toString']) expect(enter(key).kind).to.equal('started');
  });

  it('measures the wait of a turn', () => {
    const { lanes, at, turn } = bench();
    const first = turn('a');
    at(5);
    const second = turn('a');
    at(12);
    lanes.leave(first);

    expect(first.waitedMs).to.equal(0);
    expect(second.waitedMs).to.equal(7);
  });

  describe('bounds the line', () => {
    it('refuses one turn more than maxWaiting, per conversation', () => {
      const { enter } = bench({ maxWaiting: 2 });
      for (const kind of ['started', 'waiting', 'waiting', 'refused']) expect(enter('a').kind).to.equal(kind);
      expect(enter('b').kind).to.equal('started');
    });

    it('lets 20 wait by default, and none where maxWaiting is 0', () => {
      const { lanes, enter } = bench();
      for (let n = 0; n < 30; n++) enter('a');
      expect(lanes.waiting).to.equal(20);

      const strict = bench({ maxWaiting: 0 });
      strict.enter('a');
      expect(strict.enter('a')).to.have.nested.property('refusal.code', 'queue_full');
    });

    it('guesses from the turns that have ended when there is room again', () => {
      const { lanes, at, enter, turn } = bench({ maxWaiting: 0 });
      const refusal = () => {
        const decision = enter('a');
        return decision.kind === 'refused' ? decision.refusal : expect.fail('not refused');
      };
      const first = turn('a');
      expect(refusal()).to.deep.equal({ code: 'queue_full', limit: 0, retryAfterMs: 1000 });
      at(400);
      lanes.leave(first);

      turn('a');
      at(500);
      expect(refusal().retryAfterMs, '300 of the 400 that turns take').to.equal(300);
      at(1200);
      expect(refusal().retryAfterMs, 'as long again as it has taken').to.equal(800);
    });
  });

  describe('bounds the wait', () => {
    it('ends turns that have waited for maxWaitMs, in the order of their bounds', () => {
      const { lanes, at, turn } = bench({ maxWaitMs: 100 });
      turn('a');
      const late = turn('a');
      at(10);
      const later = turn('a');
      const early = turn('a', { maxWaitMs: 50 });

      expect(lanes.nextExpiryAtMs).to.equal(60);
      at(99.5);
      expect(lanes.expire().map(({ turn: expired }) => expired)).to.deep.equal([early]);
      at(110);
      expect(lanes.expire().map(({ turn: expired }) => expired)).to.deep.equal([late, later]);
      expect(lanes.nextExpiryAtMs).to.equal(Infinity);
      expect(lanes.waiting).to.equal(0);
    });

    it('ends those that entered at one instant in the order in which they entered', () => {
      const { lanes, at, turn } = bench({ maxWaitMs: 10 });
      turn('a');
      const waiting = Array.from({ length: 15 }, () => turn('a'));
      at(10);
      expect(lanes.expire().map(({ turn: expired }) => expired)).to.deep.equal(waiting);
    });

    it('waits 60 seconds by default', () => {
      const { lanes, turn } = bench();
      turn('a');
      turn('a');
      expect(lanes.nextExpiryAtMs).to.equal(60_000);
    });

    it('knows no bound where there is none', () => {
      const { lanes, turn } = bench({ maxWaitMs: Infinity });
      turn('a');
      turn('a', { deadlineAtMs: Infinity });
      expect(lanes.nextExpiryAtMs).to.equal(Infinity);
    });

    it('tells a deadline from a wait that was too long', () => {
      const { lanes, at, turn } = bench({ maxWaitMs: 100 });
      at(20);
      turn('a');
      turn('a', { deadlineAtMs: 120 });
      turn('a', { deadlineAtMs: 121 });
      at(121);
      const refusals = lanes.expire().map(({ refusal }) => refusal);
      expect(refusals.map(({ code }) => code)).to.deep.equal(['timeout_deadline', 'queue_timeout']);
      expect(refusals.map(({ limit }) => limit)).to.deep.equal([100, 100]);
    });

    it('refuses a deadline that has passed, also where nobody runs, and leaves nothing behind', () => {
      const { lanes, at, enter } = bench();
      at(50);
      expect(enter('a', { deadlineAtMs: 50 })).to.have.nested.property('refusal.code', 'timeout_deadline');
      expect(lanes.conversations).to.equal(0);
    });

    it('refuses at once, where it would have to wait, a turn that may not', () => {
      const { lanes, enter } = bench();
      expect(enter('a', { maxWaitMs: 0 }).kind).to.equal('started');
      expect(enter('a', { maxWaitMs: 0 })).to.have.nested.property('refusal.code', 'queue_timeout');
      expect(lanes.waiting).to.equal(0);
    });

    it('forgets the bound of a turn that has started or left', () => {
      const { lanes, at, turn } = bench({ maxWaitMs: 10 });
      const first = turn('a');
      const second = turn('a');
      lanes.leave(turn('a'));
      lanes.leave(first);
      at(1000);

      expect(lanes.nextExpiryAtMs).to.equal(Infinity);
      expect(lanes.expire()).to.deep.equal([]);
      expect(second.state).to.equal('running');
    });
  });

  describe('supersedes', () => {
    it('the running turn and those that wait, and starts at once', () => {
      const { lanes, enter, turn } = bench();
      const others = [turn('a'), turn('a'), turn('a')];
      const decision = enter('a', { supersede: true });
      if (decision.kind !== 'started') return expect.fail('it starts');

      expect(decision.superseded).to.deep.equal(others);
      expect(others.map(({ state }) => state)).to.deep.equal(['over', 'over', 'over']);
      for (const other of others) expect(lanes.leave(other)).to.be.undefined;
      expect(decision.turn.state).to.equal('running');
      expect(lanes.waiting).to.equal(0);
    });

    it('is not held up by a full line', () => {
      const { enter } = bench({ maxWaiting: 0 });
      enter('a');
      expect(enter('a', { supersede: true }).kind).to.equal('started');
    });

    it('nobody in another conversation', () => {
      const { enter, turn } = bench();
      const other = turn('b');
      turn('a');
      enter('a', { supersede: true });
      expect(other.state).to.equal('running');
    });
  });

  it('refuses options that are not 0 or more', () => {
    for (const value of [-1, NaN]) {
      for (const option of ['maxWaiting', 'maxWaitMs']) {
        expect(() => bench({ [option]: value }))
          .to.throw(`${option} must be 0 or more, or Infinity, got ${value}`)
          .that.satisfies(isSluiceError);
      }
      expect(() => bench().enter('a', { maxWaitMs: value })).to.throw('maxWaitMs must be');
    }
  });

  it('keeps order, one turn at a time and no memory, whatever happens', () => {
    const step = fc.oneof(
      fc.record({
        do: fc.constant('enter' as const),
        key: fc.nat(2),
        maxWaitMs: fc.constantFrom(undefined, 0, 5, 50),
        deadlineInMs: fc.constantFrom(undefined, 0, 20),
        supersede: fc.nat(5).map((n) => n === 0),
      }),
      fc.record({ do: fc.constant('finish' as const), key: fc.nat(2) }),
      fc.record({ do: fc.constant('cancel' as const), which: fc.nat(20) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(0, 1, 10, 1e9) }),
    );

    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const { lanes, at, enter } = bench({ maxWaiting: 4, maxWaitMs: 30 });
        let nowMs = 0;
        // What a list for each conversation says: the first of it runs.
        const lines = new Map<string, Turn[]>();
        const line = (key: string): Turn[] => lines.get(key) ?? (lines.set(key, []), lines.get(key)!);
        const all = (): Turn[] => [...lines.values()].flat();
        const remove = (turn: Turn): void => {
          const own = line(turn.lane.conversation);
          own.splice(own.indexOf(turn), 1);
        };
        const leave = (turn: Turn): void => {
          const ran = line(turn.lane.conversation)[0] === turn;
          const started = lanes.leave(turn);
          remove(turn);
          expect(started).to.equal(ran ? line(turn.lane.conversation)[0] : undefined);
        };

        for (const now of steps) {
          if (now.do === 'enter') {
            const key = `c${now.key}`;
            const { maxWaitMs, supersede } = now;
            const before = [...line(key)];
            const deadlineAtMs = now.deadlineInMs === undefined ? undefined : nowMs + now.deadlineInMs;
            const decision = enter(key, { maxWaitMs, deadlineAtMs, supersede });
            if (decision.kind === 'refused') {
              expect(decision.refusal.retryAfterMs).to.be.within(1, 2 ** 53);
            } else if (decision.kind === 'started') {
              expect(decision.superseded).to.deep.equal(before);
              if (before.length > 0) expect(supersede).to.be.true;
              lines.set(key, [decision.turn]);
            } else {
              expect(decision.position).to.equal(before.length);
              line(key).push(decision.turn);
            }
          } else if (now.do === 'finish') {
            const running = line(`c${now.key}`)[0];
            if (running) leave(running);
          } else if (now.do === 'cancel') {
            const turn = all()[now.which];
            if (turn) leave(turn);
          } else {
            at((nowMs += now.ms));
            for (const { turn } of lanes.expire()) {
              expect(line(turn.lane.conversation)[0], 'only those that wait expire').to.not.equal(turn);
              remove(turn);
            }
            expect(lanes.nextExpiryAtMs).to.be.above(nowMs);
          }
          for (const own of lines.values()) {
            expect(own.map(({ state }) => state)).to.deep.equal(own.map((_, n) => (n === 0 ? 'running' : 'waiting')));
          }
          expect(lanes.conversations).to.equal([...lines.values()].filter(({ length }) => length > 0).length);
          expect(lanes.waiting).to.equal(all().length - lanes.conversations);
        }
        for (const turn of all()) lanes.leave(turn);
        expect([lanes.conversations, lanes.waiting, lanes.nextExpiryAtMs]).to.deep.equal([0, 0, Infinity]);
      }),
      { numRuns: 300 },
    );
  });
});
