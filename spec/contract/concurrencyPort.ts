import { expect } from 'chai';
import { take } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import type { AcquireRequest, ConcurrencyPort, Permit } from '../../lib/core/ports.ts';

interface FixedLimit extends ConcurrencyPort {
  adjust(limit: number): void;
}

/** A kind of concurrency limit, and the time it runs on. */
export interface ConcurrencyKind {
  make(options: { limit: number; maxWaiting?: number; maxWaitMs?: number }): FixedLimit;
  nowMs(): number;
  /** Lets time pass, and everything happen that is due by then. */
  pass(ms: number): Promise<void>;
}

interface Asked {
  permit?: Permit;
  error?: SluiceError;
  completed?: true;
  position?: number;
  unsubscribe(): void;
}

/** Long enough for an answer on a busy machine. */
const SOON_MS = 60;
/** What is certain to be over by then. */
const LONG_MS = 3000;

/** What every concurrency limit must do, in one process or in many. */
export function concurrencyPortContract(kindOf: () => ConcurrencyKind): void {
  let kind: ConcurrencyKind;

  beforeEach(() => {
    kind = kindOf();
  });

  const ask = (limit: ConcurrencyPort, request: AcquireRequest = {}): Asked => {
    const asked: Asked = { unsubscribe: () => subscription.unsubscribe() };
    const subscription = limit.acquire({ onQueued: (position) => (asked.position = position), ...request }).subscribe({
      next: (permit) => (asked.permit = permit),
      error: (error: SluiceError) => (asked.error = error),
      complete: () => (asked.completed = true),
    });
    return asked;
  };
  const until = async (condition: () => boolean): Promise<void> => {
    const endMs = kind.nowMs() + LONG_MS;
    while (!condition() && kind.nowMs() < endMs) await kind.pass(5);
    expect(condition(), `within ${LONG_MS} ms`).to.be.true;
  };
  const soon = (): Promise<void> => kind.pass(SOON_MS);
  const granted = (...asked: readonly Asked[]): Promise<void> => until(() => asked.every(({ permit }) => permit));
  const refused = (asked: Asked): Promise<void> => until(() => asked.error !== undefined);

  it('takes nothing before it is subscribed to, and emits one permit', async () => {
    const limit = kind.make({ limit: 1 });
    limit.acquire({});
    const asked = ask(limit);
    await granted(asked);

    expect(asked.completed).to.be.true;
    expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 0 });
  });

  it('lets as many as the limit in, and the next one as one ends, in order', async () => {
    const limit = kind.make({ limit: 2 });
    const asked = [0, 1, 2, 3].map(() => ask(limit));
    await granted(asked[0]!, asked[1]!);
    await soon();
    expect(asked.slice(2).map(({ permit }) => permit)).to.deep.equal([undefined, undefined]);
    expect(limit.snapshot()).to.deep.equal({ limit: 2, inFlight: 2, waiting: 2 });

    asked[0]?.permit?.release(SUCCESS);
    await granted(asked[2]!);
    expect(asked[3]?.permit).to.be.undefined;
    expect(asked[2]?.permit?.waitedMs).to.be.at.least(SOON_MS - 10);
    expect(asked[0]?.permit?.waitedMs).to.be.below(SOON_MS);
  });

  it('gives a place back once, however often it is released', async () => {
    const limit = kind.make({ limit: 1 });
    const [first, second, third] = [ask(limit), ask(limit), ask(limit)];
    await granted(first);
    first.permit?.release(DROPPED);
    first.permit?.release(SUCCESS);
    await granted(second);
    await soon();

    expect(third.permit).to.be.undefined;
    expect(limit.snapshot().inFlight).to.equal(1);
  });

  it('lets nobody pass one who waits', async () => {
    const limit = kind.make({ limit: 1 });
    const order: number[] = [];
    const running: Permit[] = [];
    for (const i of [0, 1, 2]) {
      limit.acquire({}).subscribe((permit) => {
        order.push(i);
        running.push(permit);
      });
    }
    await until(() => order.length === 1);
    running[0]?.release(SUCCESS);
    limit.acquire({}).subscribe(() => order.push(3));
    await until(() => order.length === 2);
    running[1]?.release(SUCCESS);
    await until(() => order.length === 3);
    running[2]?.release(SUCCESS);
    await until(() => order.length === 4);

    expect(order).to.deep.equal([0, 1, 2, 3]);
  });

  it('forgets one who unsubscribes while waiting', async () => {
    const limit = kind.make({ limit: 1 });
    const [first, leaves, stays] = [ask(limit), ask(limit), ask(limit)];
    await granted(first);
    leaves.unsubscribe();
    first.permit?.release(SUCCESS);
    await granted(stays);

    expect(leaves.permit).to.be.undefined;
    expect(limit.snapshot()).to.include({ inFlight: 1, waiting: 0 });
  });

  it('takes nothing for one who unsubscribes before there is an answer', async () => {
    const limit = kind.make({ limit: 1 });
    const left = ask(limit);
    left.unsubscribe();
    // Where the answer is there at once, it was too late.
    left.permit?.release(DROPPED);
    await soon();
    const next = ask(limit);
    await granted(next);

    expect(limit.snapshot()).to.include({ inFlight: 1, waiting: 0 });
  });

  it('says who waits at which place', async () => {
    const limit = kind.make({ limit: 1 });
    const [first, second, third] = [ask(limit), ask(limit), ask(limit)];
    await granted(first);
    await until(() => third.position !== undefined);

    expect(first.position).to.be.undefined;
    expect([second.position, third.position].sort()).to.not.deep.equal([1, 1]);
    expect(third.position).to.be.at.least(2);
  });

  it('refuses more than may wait', async () => {
    const limit = kind.make({ limit: 1, maxWaiting: 1 });
    const first = ask(limit);
    await granted(first);
    const second = ask(limit);
    await soon();
    const third = ask(limit);
    await refused(third);

    expect(third.error).to.include({ code: 'queue_full', source: 'local', while: 'queue' });
    expect(third.error?.retryAfterMs).to.be.above(0);
    expect(second.error).to.be.undefined;
  });

  it('lets nobody wait where none may, and yet grants what is free', async () => {
    const limit = kind.make({ limit: 1, maxWaiting: 0 });
    const first = ask(limit);
    await granted(first);
    const second = ask(limit);
    await refused(second);

    expect(second.error).to.include({ code: 'queue_full' });
  });

  it('refuses rather than waits where no wait is allowed, and yet grants what is free', async () => {
    const limit = kind.make({ limit: 1, maxWaitMs: 0 });
    const first = ask(limit);
    await granted(first);
    const second = ask(limit);
    await refused(second);
    expect(second.error).to.include({ code: 'queue_timeout' });
    expect(second.position).to.be.undefined;

    first.permit?.release(SUCCESS);
    const third = ask(limit);
    await granted(third);
  });

  it('bounds the wait, by the bound of the request where it names one', async () => {
    const limit = kind.make({ limit: 1, maxWaitMs: 400 });
    const first = ask(limit);
    await granted(first);
    const beganMs = kind.nowMs();
    const [patient, hasty] = [ask(limit), ask(limit, { maxWaitMs: 100 })];
    await refused(hasty);
    expect(kind.nowMs() - beganMs).to.be.within(95, 390);
    expect(patient.error).to.be.undefined;
    await refused(patient);

    expect(kind.nowMs() - beganMs).to.be.at.least(395);
    expect([hasty.error?.code, patient.error?.code]).to.deep.equal(['queue_timeout', 'queue_timeout']);
    expect(patient.error?.retryAfterMs).to.be.above(0);
    expect(limit.snapshot()).to.include({ inFlight: 1, waiting: 0 });
  });

  it('refuses whoever cannot come before the deadline', async () => {
    const limit = kind.make({ limit: 1 });
    const late = ask(limit, { deadlineAtMs: kind.nowMs() - 1 });
    await refused(late);
    const first = ask(limit);
    await granted(first);
    const soonOver = ask(limit, { deadlineAtMs: kind.nowMs() + 100, model: 'm' });
    await refused(soonOver);

    expect(late.error).to.include({ code: 'timeout_deadline' });
    expect(soonOver.error).to.include({ code: 'timeout_deadline', model: 'm' });
  });

  it('may be left and released while it hands over', async () => {
    const limit = kind.make({ limit: 1 });
    let served = 0;
    for (let i = 0; i < 200; i++) {
      limit
        .acquire({})
        .pipe(take(1))
        .subscribe((permit) => {
          served++;
          permit.release(SUCCESS);
        });
    }
    await until(() => served === 200);

    expect(limit.snapshot()).to.include({ inFlight: 0, waiting: 0 });
  });

  it('takes another limit: a higher one at once, a lower one as those that run end', async () => {
    const limit = kind.make({ limit: 1 });
    const asked = [0, 1, 2, 3, 4].map(() => ask(limit));
    await granted(asked[0]!);
    limit.adjust(3);
    await granted(asked[1]!, asked[2]!);
    await soon();
    expect(asked[3]?.permit).to.be.undefined;
    expect(limit.snapshot().limit).to.equal(3);

    limit.adjust(1);
    asked[0]?.permit?.release(SUCCESS);
    asked[1]?.permit?.release(SUCCESS);
    await soon();
    expect(asked[3]?.permit).to.be.undefined;
    asked[2]?.permit?.release(SUCCESS);
    await granted(asked[3]!);
    expect(() => limit.adjust(0.5)).to.throw(SluiceError, 'limit');
  });

  it('refuses wrong options, naming them', async () => {
    for (const [options, name] of [
      [{ limit: 0 }, 'limit'],
      [{ limit: 1, maxWaiting: -1 }, 'maxWaiting'],
      [{ limit: 1, maxWaitMs: NaN }, 'maxWaitMs'],
    ] as const) {
      expect(() => kind.make(options), name).to.throw(SluiceError, `${name} must be`);
    }
    const asked = ask(kind.make({ limit: 1 }), { maxWaitMs: -1 });
    await refused(asked);
    expect(asked.error).to.include({ code: 'invalid_option' });
  });
}
