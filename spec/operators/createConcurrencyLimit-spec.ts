import { expect } from 'chai';
import { Subject, Subscriber, takeUntil } from 'rxjs';
import type { Subscription } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceFact } from '../../lib/core/events.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { AcquireRequest, ConcurrencyPort, Permit } from '../../lib/core/ports.ts';
import { createConcurrencyLimit, createConcurrencyLimits } from '../../lib/operators/createConcurrencyLimit.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const REJECTED: Outcome = { kind: 'failure', error: new SluiceError('rate_limited', 'failed') };

interface Asked {
  readonly permit: Permit | undefined;
  readonly refusal: SluiceError | undefined;
  readonly subscription: Subscription;
}

describe('createConcurrencyLimit', () => {
  let runtime: VirtualRuntime;
  let order: string[];
  beforeEach(() => {
    runtime = virtualRuntime();
    order = [];
  });

  const ask = (limit: ConcurrencyPort, name = '', request: AcquireRequest = {}): Asked => {
    const asked: { permit?: Permit; refusal?: unknown } = {};
    const subscription = limit.acquire(request).subscribe({
      next: (permit) => {
        asked.permit = permit;
        order.push(name);
      },
      error: (error: unknown) => {
        asked.refusal = error;
        order.push(`${name} refused`);
      },
      complete: () => order.push(`${name}|`),
    });
    return {
      get permit() {
        return asked.permit;
      },
      get refusal() {
        return asked.refusal as SluiceError | undefined;
      },
      subscription,
    };
  };

  it('takes no place before it is subscribed to', () => {
    const limit = createConcurrencyLimit(1, runtime);
    limit.acquire({});

    expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 0, waiting: 0 });
  });

  it('emits one permit and completes, at once or when it is its turn', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const first = ask(limit, 'a');
    const second = ask(limit, 'b');
    expect(order).to.deep.equal(['a', 'a|']);
    runtime.advance(30);
    first.permit!.release(SUCCESS);

    expect(order).to.deep.equal(['a', 'a|', 'b', 'b|']);
    expect(first.permit!.waitedMs).to.equal(0);
    expect(second.permit!.waitedMs).to.equal(30);
  });

  it('starts exactly three of ten that wait when the limit goes from 2 to 5, in order', () => {
    const limit = createConcurrencyLimit(2, runtime);
    for (let n = 0; n < 12; n++) ask(limit, `${n}`);
    order.length = 0;
    limit.adjust(5);

    expect(order.filter((line) => !line.endsWith('|'))).to.deep.equal(['2', '3', '4']);
    expect(limit.snapshot()).to.deep.equal({ limit: 5, inFlight: 5, waiting: 7 });
  });

  it('ends nothing when the limit falls', () => {
    const limit = createConcurrencyLimit(3, runtime);
    const asked = [ask(limit), ask(limit), ask(limit)];
    limit.adjust(1);
    const waits = ask(limit);
    asked[0]!.permit!.release(SUCCESS);
    asked[1]!.permit!.release(SUCCESS);
    expect(waits.permit).to.be.undefined;

    asked[2]!.permit!.release(SUCCESS);
    expect(waits.permit).not.to.be.undefined;
  });

  it('takes a second release of one permit for nothing', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const { permit } = ask(limit);
    permit!.release(SUCCESS);
    permit!.release(SUCCESS);
    ask(limit);

    expect(limit.snapshot().inFlight).to.equal(1);
  });

  it('passes a permit on in the same tick when it meets one that has unsubscribed', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const stop = new Subject<void>();
    const running = ask(limit, 'running');
    const passes: string[] = [];
    // Unsubscribes the one behind it in the moment in which it gets the permit, and gives the permit back.
    limit.acquire({}).subscribe((permit) => {
      passes.push('first');
      stop.next();
      permit.release(DROPPED);
    });
    limit
      .acquire({})
      .pipe(takeUntil(stop))
      .subscribe(() => passes.push('second'));
    const third = ask(limit, 'third');
    running.permit!.release(SUCCESS);

    expect(passes).to.deep.equal(['first']);
    expect(third.permit).not.to.be.undefined;
    expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 0 });
  });

  it('hands 10,000 permits on, each released on receipt, without deepening the stack', () => {
    const limit = createConcurrencyLimit({ limit: 1, maxWaiting: Infinity }, runtime);
    const running = ask(limit);
    let granted = 0;
    for (let n = 0; n < 10_000; n++) {
      limit.acquire({}).subscribe((permit) => {
        granted++;
        permit.release(SUCCESS);
      });
    }
    running.permit!.release(SUCCESS);

    expect(granted).to.equal(10_000);
    expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 0, waiting: 0 });
  });

  it('goes on granting when a receiver throws', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const running = ask(limit);
    const order: string[] = [];
    limit
      .acquire({
        onQueued: () => order.push('queued'),
        onFact: () => {
          throw new Error('listener');
        },
      })
      .subscribe((permit) => permit.release(REJECTED));
    ask(limit, 'next');
    running.permit!.release(SUCCESS);

    expect(order).to.deep.equal(['queued']);
    expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 0 });
  });

  it('tells one that waits its place and the wait in so far as it is known', () => {
    const limit = createConcurrencyLimit(1, runtime);
    const seen: unknown[] = [];
    const onQueued = (position: number, waitMs: number | undefined): void => void seen.push([position, waitMs]);
    const first = ask(limit, 'a', { onQueued });
    runtime.advance(100);
    first.permit!.release(SUCCESS);
    ask(limit);
    ask(limit, 'b', { onQueued });
    ask(limit, 'c', { onQueued });

    expect(seen).to.deep.equal([
      [1, 100],
      [2, 200],
    ]);
  });

  describe('refuses', () => {
    it('when as many wait as may', () => {
      const limit = createConcurrencyLimit({ limit: 1, maxWaiting: 1 }, runtime);
      ask(limit);
      ask(limit);
      const { refusal } = ask(limit, '', { model: 'm' });

      expect(refusal).to.include({ code: 'queue_full', source: 'local', retryable: false, model: 'm', while: 'queue' });
      expect(refusal!.retryAfterMs).to.equal(1000);
    });

    it('when the wait is over, each after its own time, with one timer at most', () => {
      const limit = createConcurrencyLimit({ limit: 1, maxWaitMs: 100 }, runtime);
      const running = ask(limit);
      expect(runtime.pending).to.equal(0);
      const asked = [ask(limit, 'a'), ask(limit, 'b', { maxWaitMs: 30 }), ask(limit, 'c', { deadlineAtMs: 60 })];
      expect(runtime.pending).to.equal(1);
      order.length = 0;

      runtime.advance(29);
      expect(order).to.deep.equal([]);
      runtime.advance(1);
      expect(order).to.deep.equal(['b refused']);
      runtime.advance(30);
      expect(order).to.deep.equal(['b refused', 'c refused']);
      runtime.advance(40);
      expect(order).to.deep.equal(['b refused', 'c refused', 'a refused']);
      expect(asked.map(({ refusal }) => refusal?.code)).to.deep.equal([
        'queue_timeout',
        'queue_timeout',
        'timeout_deadline',
      ]);
      expect(runtime.pending).to.equal(0);
      running.permit!.release(SUCCESS);
      expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 0, waiting: 0 });
    });

    it('and has no timer left once nobody waits', () => {
      const limit = createConcurrencyLimit({ limit: 1, maxWaitMs: 100 }, runtime);
      const running = ask(limit);
      ask(limit).subscription.unsubscribe();
      expect(runtime.pending).to.equal(0);

      const next = ask(limit);
      expect(runtime.pending).to.equal(1);
      running.permit!.release(SUCCESS);
      expect(next.permit).not.to.be.undefined;
      expect(runtime.pending).to.equal(0);
    });

    it('and arms no timer anew while the one that is armed is early enough', () => {
      let armed = 0;
      const counting = {
        ...runtime,
        scheduler: {
          schedule: (work: () => void, delayMs?: number) => {
            armed++;
            return runtime.scheduler.schedule(work, delayMs);
          },
        },
      };
      const limit = createConcurrencyLimit({ limit: 1, maxWaitMs: 100 }, counting);
      let running = ask(limit);
      const waiting = Array.from({ length: 100 }, () => ask(limit));
      for (const next of waiting.slice(0, 50)) {
        running.permit!.release(SUCCESS);
        running = next;
      }

      expect(armed).to.equal(1);
    });

    it('never one whose permit comes in the tick in which its time is up', () => {
      const limit = createConcurrencyLimit(1, runtime);
      const running = ask(limit);
      runtime.scheduler.schedule(() => running.permit!.release(SUCCESS), 50);
      const waits = ask(limit, '', { maxWaitMs: 50 });
      runtime.advance(50);

      expect(waits.permit).not.to.be.undefined;
      expect(waits.refusal).to.be.undefined;
      expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 0 });
    });

    it('a later one for its wait though the head of the line was granted meanwhile', () => {
      const limit = createConcurrencyLimit(1, runtime);
      const running = ask(limit);
      ask(limit, 'head', { maxWaitMs: 10 });
      const late = ask(limit, 'late', { maxWaitMs: 30 });
      runtime.advance(5);
      running.permit!.release(SUCCESS);
      runtime.advance(24);
      expect(late.refusal).to.be.undefined;

      runtime.advance(1);
      expect(late.refusal).to.have.property('code', 'queue_timeout');
    });

    it('and lets the refused one ask again from within the refusal', () => {
      const limit = createConcurrencyLimit({ limit: 1, maxWaiting: 1, maxWaitMs: 10 }, runtime);
      ask(limit);
      let again: Asked | undefined;
      limit.acquire({}).subscribe({ error: () => (again = ask(limit, 'again', { maxWaitMs: 20 })) });
      runtime.advance(10);
      expect(limit.snapshot().waiting).to.equal(1);

      runtime.advance(20);
      expect(again?.refusal).to.have.property('code', 'queue_timeout');
      expect(runtime.pending).to.equal(0);
    });
  });

  it('reports a change to its own listener and to the call that brought it about, having cut before it grants', () => {
    const facts: SluiceFact[] = [];
    const own: SluiceFact[] = [];
    const limit = createConcurrencyLimit(
      { initial: 2, min: 1, decrease: 0.5, name: 'gpt', onFact: (fact) => facts.push(fact) },
      runtime,
    );
    const first = ask(limit, 'a', { onFact: (fact) => own.push(fact) });
    ask(limit, 'b', { onFact: () => expect.fail('it is not of this call') });
    const waits = ask(limit, 'c');
    first.permit!.release(REJECTED);

    const cut = { type: 'limit.changed', limiter: 'gpt', from: 2, to: 1, reason: 'rejected' };
    expect(facts).to.deep.equal([cut]);
    expect(own).to.deep.equal([cut]);
    expect(waits.permit).to.be.undefined;
    expect(limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 1 });
  });

  it('reports nothing where the limit stays as it is', () => {
    const facts: SluiceFact[] = [];
    const limit = createConcurrencyLimit({ initial: 4, onFact: (fact) => facts.push(fact) }, runtime);
    ask(limit, 'a').permit!.release(SUCCESS);
    limit.adjust(4);
    expect(facts).to.deep.equal([]);
  });

  it('takes no place for one that has left before it came', () => {
    const limit = createConcurrencyLimit(1, runtime);
    ask(limit, 'a');
    const gone = new Subscriber<Permit>();
    gone.unsubscribe();
    let told = 0;
    limit.acquire({ onQueued: () => told++ }).subscribe(gone);
    expect(told).to.equal(0);
    expect(limit.snapshot().waiting).to.equal(0);
  });

  it('goes on where a listener throws', () => {
    const limit = createConcurrencyLimit(
      {
        initial: 1,
        min: 1,
        onFact: () => {
          throw new Error('mine');
        },
      },
      runtime,
    );
    ask(limit, 'a');
    const waits = ask(limit, 'b');
    limit.adjust(2);
    expect(waits.permit).to.not.be.undefined;
  });

  it('reports a change before it grants on account of it', () => {
    const limit = createConcurrencyLimit(
      { initial: 1, min: 1, growEveryMs: 0, maxOverMeasured: Infinity, onFact: ({ type }) => order.push(type) },
      runtime,
    );
    const running = ask(limit, 'a');
    ask(limit, 'b');
    ask(limit, 'c');
    order.length = 0;
    running.permit!.release(SUCCESS);

    expect(order).to.deep.equal(['limit.changed', 'b', 'b|', 'c', 'c|']);
  });

  it('throws for wrong options when it is made', () => {
    expect(() => createConcurrencyLimit(0))
      .to.throw(SluiceError)
      .with.property('code', 'invalid_option');
    expect(() => createConcurrencyLimits({ min: 0 }))
      .to.throw(SluiceError)
      .with.property('code', 'invalid_option');
    expect(() => createConcurrencyLimits({ maxKeys: 0 })).to.throw('maxKeys must be');
  });
});

describe('createConcurrencyLimits', () => {
  it('keeps one limit a key, named for it', () => {
    const facts: SluiceFact[] = [];
    const limits = createConcurrencyLimits({ initial: 8, onFact: (fact) => facts.push(fact) }, virtualRuntime());
    limits
      .of('a')
      .acquire({})
      .subscribe((permit) => permit.release(REJECTED));
    limits.of('b').adjust(6);

    expect(limits.of('a').snapshot().limit).to.equal(5);
    expect(limits.of('b').snapshot().limit).to.equal(6);
    expect(limits.of('c').snapshot().limit).to.equal(8);
    expect(facts.map((fact) => 'limiter' in fact && fact.limiter)).to.deep.equal(['a', 'b']);
    expect(() => limits.of('')).to.throw('key must be');
  });

  it('takes a number for fixed limits, and counts apart', () => {
    const limits = createConcurrencyLimits(1, virtualRuntime());
    limits.of('a').acquire({}).subscribe();
    limits.of('a').acquire({}).subscribe();
    limits.of('b').acquire({}).subscribe();

    expect(limits.of('a').snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 1 });
    expect(limits.of('b').snapshot()).to.deep.equal({ limit: 1, inFlight: 1, waiting: 0 });
  });

  it('forgets one that nobody holds, and none that is waited for, also while it tells of a change', () => {
    const options = { initial: 1, min: 1, growEveryMs: 0, maxOverMeasured: Infinity, maxKeys: 1 };
    const limits = createConcurrencyLimits(
      { ...options, onFact: () => limits.of('other').snapshot() },
      virtualRuntime(),
    );
    limits.of('a').adjust(3);
    limits.of('b').snapshot();
    expect(limits.of('a').snapshot().limit, 'its first size').to.equal(1);
    const permits: Permit[] = [];
    for (let i = 0; i < 2; i++)
      limits
        .of('a')
        .acquire({})
        .subscribe((permit) => permits.push(permit));
    permits[0]!.release(SUCCESS);
    expect(permits).to.have.length(2);
    expect(limits.of('a').snapshot()).to.deep.equal({ limit: 2, inFlight: 1, waiting: 0 });
  });

  it('forgets none that is held or waited for, and no view is ever of a forgotten one', () => {
    const limits = createConcurrencyLimits({ limit: 1, maxKeys: 1 }, virtualRuntime());
    const assembled = limits.of('a').acquire({});
    limits.of('b').snapshot();
    const permits: Permit[] = [];
    assembled.subscribe((permit) => permits.push(permit));
    limits.of('c').snapshot();

    expect(limits.of('a').snapshot().inFlight).to.equal(1);
    permits[0]!.release(SUCCESS);
    expect(limits.of('a').snapshot().inFlight).to.equal(0);
  });
});
