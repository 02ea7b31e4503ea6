import { expect } from 'chai';
import fc from 'fast-check';
import { concat, defer, Observable, of, retry, tap, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction, Subscription } from 'rxjs';
import type { Home } from '../../lib/core/CallObserver.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { AttemptContent } from '../../lib/core/content.ts';
import { currentScope, deliverIn, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { startTimer } from '../../lib/core/runtime.ts';
import { circuitBreak } from '../../lib/operators/circuitBreak.ts';
import { createBreaker } from '../../lib/operators/createBreaker.ts';
import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

describe('CallScope', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  describe('as a frame', () => {
    it('names each call by itself, from the random source given', () => {
      const [first, second] = [CallScope.start(runtime), CallScope.start(runtime)];

      expect(first.callId).to.match(/^[0-9a-f]{16}$/);
      expect(second.callId).not.to.equal(first.callId);
      expect(CallScope.start(virtualRuntime()).callId).to.equal(first.callId);
    });

    it('starts with the first attempt, no deadline and nobody listening', () => {
      const scope = CallScope.start(runtime, { id: 'c' });

      expect(scope).to.include({ callId: 'c', attempt: 1, deadlineAtMs: Infinity, heard: false });
      expect(scope.model).to.be.undefined;
    });

    it('changes what a new frame says and leaves the old one alone', () => {
      const outer = CallScope.start(runtime, { model: 'a', tenant: 't' });
      const inner = outer.with({ model: 'b', priority: 'batch' });

      expect(inner).to.include({ model: 'b', tenant: 't', priority: 'batch', callId: outer.callId });
      expect(outer.model).to.equal('a');
      expect(outer.priority).to.be.undefined;
    });

    it('keeps the earlier of two deadlines', () => {
      const scope = CallScope.start(runtime, { deadlineAtMs: 100 });

      expect(scope.with({ deadlineAtMs: 200 }).deadlineAtMs).to.equal(100);
      expect(scope.with({ deadlineAtMs: 50 }).deadlineAtMs).to.equal(50);
    });

    it('numbers the next attempt after those that were sent', () => {
      const scope = CallScope.start(runtime);
      scope.with({ model: 'b' }).dispatched(0);
      scope.dispatched(1);

      expect(scope.attempt).to.equal(1);
      expect(scope.forNextAttempt().attempt).to.equal(3);
    });

    it('tells every listener, the innermost first, with the context of the frame', () => {
      const heard: [string, SluiceEvent][] = [];
      const scope = CallScope.start(runtime, { id: 'c', model: 'm', onEvent: (event) => heard.push(['outer', event]) });
      scope
        .with({ conversation: 'v', onEvent: (event) => heard.push(['inner', event]) })
        .report(7, { type: 'attempt.started', server: undefined });

      const event = {
        callId: 'c',
        attempt: 1,
        model: 'm',
        tenant: undefined,
        conversation: 'v',
        atMs: 7,
        type: 'attempt.started',
        server: undefined,
      };
      expect(heard).to.deep.equal([
        ['inner', event],
        ['outer', event],
      ]);
    });

    it('runs what others set off at home: that of the innermost frame, or nowhere else', () => {
      const log: string[] = [];
      const home =
        (name: string): Home =>
        (work, argument) => {
          log.push(name);
          return work(argument);
        };
      const scope = CallScope.start(runtime, { home: home('outer') });
      expect(CallScope.start(runtime).home(() => 1)).to.equal(1);
      expect(scope.forNextAttempt().home(() => 2)).to.equal(2);
      expect(scope.with({ home: home('inner') }).home(() => 3)).to.equal(3);
      expect(log).to.deep.equal(['outer', 'inner']);
    });

    it('tells of content only where somebody wants it', () => {
      const heard: AttemptContent[] = [];
      const content = { api: 'chat', request: {}, answer: undefined } as const;
      const plain = CallScope.start(runtime);
      expect(plain.wantsContent).to.equal(false);
      plain.content(content);
      const wanted = plain.with({ onContent: (one) => heard.push(one) });
      expect(wanted.wantsContent).to.equal(true);
      wanted.content(content);
      expect(heard).to.deep.equal([{ attempt: 1, ...content }]);
      const throwing = plain.with({
        onContent: () => {
          throw new Error('listener');
        },
      });
      expect(() => throwing.content(content)).to.not.throw();
    });

    it('puts together no fact that its listeners do not want to hear', () => {
      const seen: string[] = [];
      let made = 0;
      let everything = false;
      const fact = {
        type: 'left' as const,
        get where() {
          made++;
          return 'quota' as const;
        },
      };
      const scope = CallScope.start(runtime, {
        ear: { hear: ({ type }) => seen.push(type), hears: (type) => everything || type === 'attempt.started' },
      });

      scope.report(0, fact);
      scope.report(0, { type: 'attempt.started', server: undefined });
      expect(seen).to.deep.equal(['attempt.started']);
      expect(made, 'facts put together').to.equal(0);

      everything = true;
      scope.report(0, fact);
      scope.with({ onEvent: ({ type }) => seen.push(`inner ${type}`) }).report(0, fact);
      expect(seen.slice(1)).to.deep.equal(['left', 'inner left', 'left']);
      expect(made).to.equal(2);
    });

    it('tells the other listeners when one throws', () => {
      const heard: string[] = [];
      CallScope.start(runtime, { onEvent: ({ type }) => heard.push(type) })
        .with({
          onEvent: () => {
            throw new Error('listener');
          },
        })
        .report(0, { type: 'attempt.started', server: undefined });

      expect(heard).to.deep.equal(['attempt.started']);
    });

    it('passes what the source says to every sink', () => {
      const heard: string[] = [];
      const sink = (name: string): Record<string, (value?: unknown) => void> =>
        Object.fromEntries(
          ['gateClosed', 'gateOpened', 'dispatched', 'responded', 'hints', 'usage', 'closed'].map((method) => [
            method,
            () => heard.push(`${name} ${method}`),
          ]),
        );
      const scope = CallScope.start(runtime, { sink: sink('outer') })
        .with({ sink: {} })
        .with({ sink: sink('inner') });
      scope.gateClosed();
      scope.gateOpened(true);
      scope.dispatched(0);
      scope.responded(200);
      scope.hints({} as never);
      scope.usage({} as never);
      scope.closed();

      expect(heard).to.deep.equal(
        ['gateClosed', 'gateOpened', 'dispatched', 'responded', 'hints', 'usage', 'closed'].flatMap((method) => [
          `inner ${method}`,
          `outer ${method}`,
        ]),
      );
    });

    it('runs work inside what the outer frame sets up, and that inside the inner', () => {
      const log: string[] = [];
      const around =
        (name: string) =>
        <R>(work: () => R): R => {
          log.push(`in ${name}`);
          const result = work();
          log.push(`out ${name}`);
          return result;
        };
      const scope = CallScope.start(runtime, { around: around('outer') }).with({ around: around('inner') });

      expect(scope.around(() => log.push('work'))).to.equal(3);
      expect(log).to.deep.equal(['in outer', 'in inner', 'work', 'out inner', 'out outer']);
      expect(CallScope.start(runtime).around(() => 'plain')).to.equal('plain');
    });
  });

  describe('as the current frame', () => {
    it('is there only while work runs in it, also when that throws', () => {
      const scope = CallScope.start(runtime);

      expect(runInScope(scope, () => currentScope())).to.equal(scope);
      expect(() =>
        runInScope(scope, () => {
          throw new Error('work');
        }),
      ).to.throw('work');
      expect(currentScope()).to.be.undefined;
    });

    it('can be none within another', () => {
      const seen = runInScope(CallScope.start(runtime), () => runInScope(undefined, () => [currentScope()]));

      expect(seen).to.deep.equal([undefined]);
    });

    it('is delivered in whichever frame was asked for', () => {
      const scope = CallScope.start(runtime);
      const seen: (CallScope | undefined)[] = [];
      const note = (): void => void seen.push(currentScope());
      const observer = deliverIn(scope, { next: note, error: note, complete: note });
      runInScope(CallScope.start(runtime), () => {
        observer.next(1);
        observer.error(1);
        observer.complete();
      });

      expect(seen).to.deep.equal([scope, scope, scope]);
    });
  });

  describe('through guards', () => {
    it('is that of its own call in every operator and source, however calls interleave', () => {
      fc.assert(
        fc.property(fc.array(arbitraryCall, { minLength: 2, maxLength: 6 }), (plans) => {
          new Interleaving(plans).run();
        }),
        { numRuns: 150 },
      );
    });

    it('leaves consumers outside every call where they subscribed outside', () => {
      const limit = createConcurrencyLimit(1, runtime);
      const seen: (CallScope | undefined)[] = [];
      const guarded = of(1).pipe(
        limitConcurrency(limit, { runtime }),
        circuitBreak(createBreaker({}, runtime), { runtime }),
      );
      guarded.subscribe(() => {
        seen.push(currentScope());
        guarded.subscribe({ complete: () => seen.push(currentScope()) });
      });

      expect(seen).to.deep.equal([undefined, undefined]);
    });

    it('is one and the same for all guards of a call that has none', () => {
      const ids: (string | undefined)[] = [];
      const note =
        <T>(): MonoTypeOperatorFunction<T> =>
        (source) =>
          defer(() => {
            ids.push(currentScope()?.callId);
            return source;
          });
      of(1)
        .pipe(
          note(),
          limitConcurrency(createConcurrencyLimit(1, runtime), { runtime }),
          note(),
          circuitBreak(createBreaker({}, runtime), { runtime }),
          note(),
        )
        .subscribe();

      expect(ids[0]).to.equal(undefined);
      expect(ids[1]).to.match(/^[0-9a-f]{16}$/);
      expect(ids[2]).to.equal(ids[1]);
    });
  });
});

/** What a consumer does on a value: start or cancel another call, by number. */
type Deed = { readonly kind: 'start' | 'cancel'; readonly call: number } | { readonly kind: 'none' };

interface CallPlan {
  readonly startsAtMs: number;
  /** How long each attempt takes; `undefined`: synchronous. */
  readonly takesMs: number | undefined;
  readonly values: number;
  /** So many attempts fail before one succeeds. */
  readonly failures: number;
  readonly retries: number;
  readonly deed: Deed;
}

const callNumber = fc.nat({ max: 5 });
const arbitraryCall: fc.Arbitrary<CallPlan> = fc.record({
  startsAtMs: fc.nat({ max: 5 }),
  takesMs: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
  values: fc.nat({ max: 3 }),
  failures: fc.nat({ max: 2 }),
  retries: fc.nat({ max: 2 }),
  deed: fc.oneof(
    fc.constant({ kind: 'none' } as const),
    fc.record({ kind: fc.constantFrom('start' as const, 'cancel' as const), call: callNumber }),
  ),
});

/** Calls through two limits of size 1 with a plain retry between them; every point checks in whose frame it runs. */
class Interleaving {
  readonly #plans: readonly CallPlan[];
  readonly #runtime = virtualRuntime();
  readonly #near = createConcurrencyLimit(1, this.#runtime);
  readonly #far = createConcurrencyLimit(1, this.#runtime);
  readonly #breaker = createBreaker({ consecutiveFailures: Infinity, errorRatio: Infinity }, this.#runtime);
  readonly #running = new Map<number, Subscription>();
  readonly #faults: string[] = [];

  constructor(plans: readonly CallPlan[]) {
    this.#plans = plans;
  }

  run(): void {
    this.#plans.forEach(({ startsAtMs }, call) => {
      startTimer(this.#runtime, startsAtMs, () => this.#start(call, undefined));
    });
    this.#runtime.run();
    expect(this.#faults).to.deep.equal([]);
    expect(currentScope()).to.be.undefined;
    expect(this.#near.snapshot()).to.include({ inFlight: 0, waiting: 0 });
    expect(this.#far.snapshot()).to.include({ inFlight: 0, waiting: 0 });
    for (const subscription of this.#running.values()) expect(subscription.closed).to.be.true;
  }

  #start(call: number, frame: string | undefined): void {
    const plan = this.#plans[call];
    if (plan === undefined || this.#running.has(call)) return;
    const id = `call ${call}`;
    // Noted, not thrown: RxJS would report what a consumer throws elsewhere.
    const check = (): void => {
      const found = currentScope()?.callId;
      if (found !== id) this.#faults.push(`${id} ran in the frame of ${found}`);
    };
    const here =
      <T>(): MonoTypeOperatorFunction<T> =>
      (source) =>
        defer(() => {
          check();
          return source.pipe(tap({ next: check, error: check, complete: check }));
        });
    const { near, far } = {
      near: limitConcurrency(this.#near, { runtime: this.#runtime }),
      far: limitConcurrency(this.#far, { runtime: this.#runtime }),
    };
    const answer = this.#source(plan, check).pipe(
      near,
      here(),
      circuitBreak(this.#breaker, { runtime: this.#runtime }),
      here(),
      retry(plan.retries),
      here(),
      far,
      here(),
    );
    // Known before it runs: a deed may start or cancel this very call.
    const subscription = new Observable((subscriber) => {
      this.#running.set(call, subscriber);
      return answer.subscribe(subscriber);
    });
    runInScope(CallScope.start(this.#runtime, { id }), () =>
      subscription.subscribe({
        next: () => {
          check();
          this.#act(plan.deed, id);
          check();
        },
        error: check,
        complete: check,
      }),
    );
    expect(currentScope()?.callId).to.equal(frame);
  }

  #act(deed: Deed, frame: string): void {
    if (deed.kind === 'start') this.#start(deed.call, frame);
    if (deed.kind === 'cancel') this.#running.get(deed.call)?.unsubscribe();
  }

  #source({ takesMs, values, failures }: CallPlan, check: () => void): Observable<number> {
    let attempts = 0;
    const error = new SluiceError('server_error', 'failed');
    return new Observable((subscriber) => {
      check();
      const body = ++attempts > failures ? of(...Array(values).keys()) : concat(throwError(() => error));
      if (takesMs === undefined) return body.subscribe(subscriber);
      // The timer runs in nobody's frame.
      return startTimer(this.#runtime, takesMs, () => body.subscribe(subscriber));
    });
  }
}
