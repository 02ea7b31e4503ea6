import { expect } from 'chai';
import type { SluiceError } from '../../lib/core/errors.ts';
import type { LanePlace, LaneRequest, LanesPort } from '../../lib/core/ports.ts';
import type { ConversationLanesOptions } from '../../lib/limits/ConversationLanes.ts';

/** A kind of lanes, and the time it runs on. */
export interface LanesKind {
  make(options?: ConversationLanesOptions): LanesPort & { reload(options: ConversationLanesOptions): void };
  nowMs(): number;
  /** Lets time pass, and everything happen that is due by then. */
  pass(ms: number): Promise<void>;
}

export interface AskedTurn {
  place?: LanePlace;
  error?: SluiceError;
  lost?: SluiceError;
  completed?: true;
  /** Number of the grant among all. */
  grantedAs?: number;
  readonly positions: number[];
  unsubscribe(): void;
}

let grants = 0;

export function askTurn(lanes: LanesPort, conversation: string, request: Partial<LaneRequest> = {}): AskedTurn {
  const asked: AskedTurn = { positions: [], unsubscribe: () => subscription.unsubscribe() };
  const subscription = lanes
    .acquire({ conversation, onQueued: (position) => void asked.positions.push(position), ...request })
    .subscribe({
      next: (place) => {
        asked.place = place;
        asked.grantedAs = grants++;
        place.onLost((error) => (asked.lost = error));
      },
      error: (error: SluiceError) => (asked.error = error),
      complete: () => (asked.completed = true),
    });
  return asked;
}

/** Long enough for several answers on a busy machine. */
const SOON_MS = 60;
const LONG_MS = 5000;

/** What all lanes must do, in one process or in many. */
export function lanesPortContract(kindOf: () => LanesKind): void {
  let kind: LanesKind;

  beforeEach(() => {
    kind = kindOf();
  });

  const until = async (condition: () => boolean): Promise<void> => {
    const endMs = kind.nowMs() + LONG_MS;
    while (!condition() && kind.nowMs() < endMs) await kind.pass(5);
    expect(condition(), `within ${LONG_MS} ms`).to.be.true;
  };
  const soon = (): Promise<void> => kind.pass(SOON_MS);
  const granted = (turn: AskedTurn): Promise<void> => until(() => turn.place !== undefined);
  const refused = (turn: AskedTurn): Promise<void> => until(() => turn.error !== undefined);
  const empty = (lanes: LanesPort): Promise<void> => until(() => lanes.snapshot().conversations === 0);

  it('takes nothing before it is subscribed to, and emits one place', async () => {
    const lanes = kind.make();
    const observable = lanes.acquire({ conversation: 'a' });
    await soon();
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });

    const turn = askTurn(lanes, 'a');
    await granted(turn);
    expect(turn.completed).to.be.true;
    turn.place?.release();
    const places: LanePlace[] = [];
    for (let n = 0; n < 2; n++) {
      observable.subscribe((place) => places.push(place));
      await until(() => places.length === n + 1);
      places[n]?.release();
    }
    await empty(lanes);
  });

  it('lets one turn of a conversation run at a time, in the order in which they came', async () => {
    const lanes = kind.make();
    const turns = [0, 1, 2, 3].map(() => askTurn(lanes, 'a'));
    await granted(turns[0]!);
    await soon();
    expect(turns.map(({ place }) => place !== undefined)).to.deep.equal([true, false, false, false]);
    expect(turns.map(({ positions }) => positions)).to.deep.equal([[], [1], [2], [3]]);
    expect(lanes.snapshot()).to.deep.equal({ conversations: 1, waiting: 3 });

    for (const turn of turns) {
      await granted(turn);
      expect(turns.filter(({ grantedAs = Infinity }) => grantedAs > turn.grantedAs!).every(({ place }) => !place)).to.be
        .true;
      turn.place?.release();
    }
    await empty(lanes);
  });

  it('lets conversations run beside each other', async () => {
    const lanes = kind.make();
    const turns = ['a', 'b', 'c'].map((name) => askTurn(lanes, name));
    for (const turn of turns) await granted(turn);

    expect(lanes.snapshot()).to.deep.equal({ conversations: 3, waiting: 0 });
    for (const { positions } of turns) expect(positions).to.deep.equal([]);
  });

  it('ends a turn once, however often it is released', async () => {
    const lanes = kind.make();
    const [first, second, third] = [0, 1, 2].map(() => askTurn(lanes, 'a')) as [AskedTurn, AskedTurn, AskedTurn];
    await granted(first);
    first.place?.release();
    first.place?.release();
    await granted(second);
    first.place?.release();
    await soon();

    expect(third.place).to.be.undefined;
    expect(second.lost).to.be.undefined;
  });

  it('gives the place of one that leaves the line to those behind', async () => {
    const lanes = kind.make();
    const first = askTurn(lanes, 'a');
    const leaves = askTurn(lanes, 'a');
    const stays = askTurn(lanes, 'a');
    await granted(first);
    leaves.unsubscribe();
    first.place?.release();
    await granted(stays);

    expect(leaves.place).to.be.undefined;
    expect(lanes.snapshot()).to.deep.equal({ conversations: 1, waiting: 0 });
  });

  it('forgets one that leaves before it is answered', async () => {
    const lanes = kind.make();
    const hold = askTurn(lanes, 'b');
    askTurn(lanes, 'b').unsubscribe();
    await granted(hold);
    hold.place?.release();
    const next = askTurn(lanes, 'b');
    await granted(next);
    next.place?.release();
    await empty(lanes);
  });

  it('does not end a turn when the subscription that it came through is unsubscribed', async () => {
    const lanes = kind.make();
    const first = askTurn(lanes, 'a');
    await granted(first);
    first.unsubscribe();
    const second = askTurn(lanes, 'a');
    await soon();

    expect(second.place).to.be.undefined;
  });

  it('bounds those who wait', async () => {
    const lanes = kind.make({ maxWaiting: 2 });
    const turns = [0, 1, 2].map(() => askTurn(lanes, 'a'));
    await granted(turns[0]!);
    const full = askTurn(lanes, 'a');
    await refused(full);

    expect(full.error).to.include({ code: 'queue_full', source: 'local', while: 'lane', limit: 2 });
    expect(full.error?.message).to.equal('2 turns of this conversation are waiting already, and no more may');
    expect(full.error?.retryAfterMs).to.be.above(0);
    const other = askTurn(lanes, 'b');
    await granted(other);
  });

  it('ends a wait that is too long, by its own bound, that of the lanes or the deadline, whichever comes first', async () => {
    const lanes = kind.make({ maxWaitMs: 400 });
    const first = askTurn(lanes, 'a');
    await granted(first);
    const byDefault = askTurn(lanes, 'a');
    const own = askTurn(lanes, 'a', { maxWaitMs: 150 });
    const deadline = askTurn(lanes, 'a', { deadlineAtMs: kind.nowMs() + 250 });
    await refused(own);
    expect(own.error).to.include({ code: 'queue_timeout', while: 'lane', limit: 150 });
    expect(byDefault.error).to.be.undefined;
    await refused(deadline);
    expect(deadline.error).to.include({ code: 'timeout_deadline', while: 'lane' });
    expect(byDefault.error).to.be.undefined;
    await refused(byDefault);
    expect(byDefault.error).to.include({ code: 'queue_timeout', while: 'lane', limit: 400 });
    for (const { error } of [byDefault, own, deadline]) expect(error?.retryAfterMs).to.be.above(0);

    const next = askTurn(lanes, 'a', { maxWaitMs: Infinity });
    await soon();
    first.place?.release();
    await granted(next);
  });

  it('refuses rather than waits where the wait may be 0, and takes a free lane all the same', async () => {
    const lanes = kind.make();
    const first = askTurn(lanes, 'a', { maxWaitMs: 0 });
    await granted(first);
    const second = askTurn(lanes, 'a', { maxWaitMs: 0 });
    await refused(second);

    expect(second.error).to.include({ code: 'queue_timeout', limit: 0 });
    expect(second.positions).to.deep.equal([]);
  });

  it('refuses at once where the deadline has passed, also a free lane', () => {
    expect(askTurn(kind.make(), 'a', { deadlineAtMs: kind.nowMs() }).error).to.include({ code: 'timeout_deadline' });
  });

  it('ends all turns of a conversation for one that supersedes them, and none of another', async () => {
    const lanes = kind.make({ maxWaiting: 2 });
    const running = askTurn(lanes, 'a');
    const waiting = [askTurn(lanes, 'a'), askTurn(lanes, 'a')];
    const other = askTurn(lanes, 'b');
    await granted(other);
    await until(() => waiting.every(({ positions }) => positions.length === 1));
    const newest = askTurn(lanes, 'a', { supersede: true });
    await granted(newest);

    expect(running.lost).to.include({ code: 'superseded', while: undefined });
    for (const { error } of waiting) expect(error).to.include({ code: 'superseded', while: 'lane' });
    expect(other.lost).to.be.undefined;
    expect(newest.lost).to.be.undefined;
    running.place?.release();
    const next = askTurn(lanes, 'a');
    await soon();
    expect(next.place).to.be.undefined;
    newest.place?.release();
    await granted(next);
  });

  it('tells whoever asks late that its place is lost', async () => {
    const lanes = kind.make();
    let place: LanePlace | undefined;
    lanes.acquire({ conversation: 'a' }).subscribe((got) => (place = got));
    await until(() => place !== undefined);
    const newest = askTurn(lanes, 'a', { supersede: true });
    await granted(newest);
    const told: SluiceError[] = [];
    place?.onLost((error) => told.push(error));

    expect(told).to.have.length(1);
    expect(told[0]?.code).to.equal('superseded');
  });

  it('serves long lines whose turns end at once, in order', async () => {
    const lanes = kind.make({ maxWaiting: Infinity });
    const order: number[] = [];
    for (let n = 0; n < 300; n++) {
      lanes.acquire({ conversation: 'a' }).subscribe((place) => {
        order.push(n);
        place.release();
      });
    }
    await until(() => order.length === 300);

    expect(order).to.deep.equal(Array.from({ length: 300 }, (_, n) => n));
    await empty(lanes);
  });

  it('takes other bounds for turns to come', async () => {
    const lanes = kind.make({ maxWaiting: 0 });
    const first = askTurn(lanes, 'a');
    await granted(first);
    const full = askTurn(lanes, 'a');
    await refused(full);
    expect(full.error).to.include({ code: 'queue_full', limit: 0 });

    lanes.reload({ maxWaiting: 5 });
    const waits = askTurn(lanes, 'a');
    await until(() => waits.positions.length === 1);
    expect(() => lanes.reload({ maxWaitMs: NaN })).to.throw('maxWaitMs must be 0 or more');
  });

  it('refuses wrong options and requests, naming them', () => {
    expect(() => kind.make({ maxWaiting: -1 })).to.throw('maxWaiting must be 0 or more, or Infinity');
    expect(() => kind.make({ maxWaitMs: NaN })).to.throw('maxWaitMs must be 0 or more, or Infinity');
    const lanes = kind.make();
    expect(askTurn(lanes, '').error).to.include({ code: 'invalid_request' });
    expect(askTurn(lanes, 'a', { maxWaitMs: -1 }).error).to.include({ code: 'invalid_option' });
    expect(lanes.snapshot()).to.deep.equal({ conversations: 0, waiting: 0 });
  });
}
