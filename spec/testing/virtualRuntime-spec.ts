import { expect } from 'chai';
import fc from 'fast-check';
import { bufferTime, concatMap, delay, interval, of, take, timer } from 'rxjs';
import { startTimer } from '../../lib/core/runtime.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

describe('virtualRuntime', () => {
  it('stands still until it is moved, and then runs what falls due at its time', () => {
    const runtime = virtualRuntime();
    const ran: number[] = [];
    for (const ms of [30, 10, 20]) runtime.scheduler.schedule(() => ran.push(runtime.clock.now()), ms);
    expect(runtime.pending).to.equal(3);
    runtime.advance(25);
    expect(ran).to.deep.equal([10, 20]);
    expect(runtime.clock.now()).to.equal(25);
    expect(runtime.run()).to.equal(30);
    expect(ran).to.deep.equal([10, 20, 30]);
    expect(runtime.pending).to.equal(0);
  });

  it('runs what is due together in the order in which it was armed, and what is armed meanwhile after it', () => {
    const runtime = virtualRuntime();
    const ran: string[] = [];
    const note = (name: string) => (): void => void ran.push(name);
    runtime.scheduler.schedule(() => {
      ran.push('a');
      runtime.scheduler.schedule(note('later'), 0);
    }, 5);
    runtime.scheduler.schedule(note('b'), 5);
    runtime.advance(5);
    expect(ran).to.deep.equal(['a', 'b', 'later']);
  });

  it('runs each timer once, in order, but for those that were stopped, whatever they are', () => {
    const timers = fc.array(fc.record({ ms: fc.nat(50), stopped: fc.boolean() }), { maxLength: 80 });
    fc.assert(
      fc.property(timers, fc.nat(60), (drawn, untilMs) => {
        const runtime = virtualRuntime();
        const ran: [ms: number, at: number][] = [];
        const armed = drawn.map(({ ms }, at) => runtime.scheduler.schedule(() => ran.push([ms, at]), ms));
        drawn.forEach(({ stopped }, at) => stopped && armed[at]?.unsubscribe());
        runtime.advance(untilMs);
        const expected = drawn
          .map(({ ms, stopped }, at) => [ms, at, stopped] as const)
          .filter(([ms, , stopped]) => !stopped && ms <= untilMs)
          .sort(([a, i], [b, j]) => a - b || i - j)
          .map(([ms, at]) => [ms, at]);
        expect(ran).to.deep.equal(expected);
        expect(runtime.pending).to.equal(drawn.filter(({ ms, stopped }) => !stopped && ms > untilMs).length);
      }),
    );
  });

  it('never ends a delay of Infinity, and ends at once what is no number', () => {
    const runtime = virtualRuntime();
    let ran = 0;
    const never = runtime.scheduler.schedule(() => expect.fail('ran'), Infinity);
    runtime.scheduler.schedule(() => ran++, NaN);
    runtime.scheduler.schedule(() => ran++, -3);
    expect(runtime.run()).to.equal(0);
    expect(ran).to.equal(2);
    expect(never.closed).to.equal(false);
    never.unsubscribe();
    expect(runtime.pending).to.equal(0);
  });

  it('stops at a limit, with what is later still armed', () => {
    const runtime = virtualRuntime();
    const tick = (): void => void runtime.scheduler.schedule(tick, 10);
    tick();
    expect(runtime.run(95)).to.equal(90);
    expect(runtime.pending).to.equal(1);
  });

  it('refuses to go back, or nowhere', async () => {
    const runtime = virtualRuntime();
    for (const byMs of [-1, NaN, Infinity]) {
      expect(() => runtime.advance(byMs), String(byMs)).to.throw(/byMs/);
      await runtime.advanceAsync(byMs).then(
        () => expect.fail('moved'),
        (error: unknown) => expect(String(error)).to.match(/byMs/),
      );
    }
    expect(runtime.clock.now()).to.equal(0);
  });

  it('lets what a timer throws out, and goes on with the others', () => {
    const runtime = virtualRuntime();
    let ran = 0;
    runtime.scheduler.schedule(() => {
      throw new Error('mine');
    }, 1);
    runtime.scheduler.schedule(() => ran++, 2);
    expect(() => runtime.advance(5)).to.throw('mine');
    runtime.advance(5);
    expect(ran).to.equal(1);
  });

  it('lets promises settle before each instant where that is asked for', async () => {
    const runtime = virtualRuntime();
    const at: number[] = [];
    const wait = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        startTimer(runtime, ms, resolve);
      });
    void (async () => {
      for (let i = 0; i < 3; i++) {
        await wait(10);
        at.push(runtime.clock.now());
      }
    })();
    await runtime.advanceAsync(25);
    expect(at).to.deep.equal([10, 20]);
    expect(runtime.clock.now()).to.equal(25);
  });

  it('draws the same numbers for the same seed', () => {
    const draws = (seed?: number): number[] => {
      const { random } = virtualRuntime(seed === undefined ? {} : { seed });
      return [random(), random(), random()];
    };
    expect(draws(7)).to.deep.equal(draws(7));
    expect(draws(7)).to.not.deep.equal(draws(8));
    expect(draws()).to.deep.equal(draws(1));
  });

  it('has a wall clock that starts where it is told, and can be corrected', () => {
    const runtime = virtualRuntime({ wallStartMs: 1000 });
    runtime.advance(5);
    expect(runtime.clock.wallNow()).to.equal(1005);
    runtime.stepWall(-400);
    expect(runtime.clock.wallNow()).to.equal(605);
    expect(runtime.clock.now()).to.equal(5);
    expect(new Date(virtualRuntime().clock.wallNow()).toISOString()).to.equal('2026-01-01T00:00:00.000Z');
  });

  describe('as a scheduler of RxJS', () => {
    it('paces operators of RxJS', () => {
      const runtime = virtualRuntime();
      const got: [number, unknown][] = [];
      const note = (value: unknown): void => void got.push([runtime.clock.now(), value]);
      interval(100, runtime.scheduler).pipe(take(3)).subscribe(note);
      of('a', 'b')
        .pipe(concatMap((value) => of(value).pipe(delay(70, runtime.scheduler))))
        .subscribe(note);
      runtime.run();
      expect(got).to.deep.equal([
        [70, 'a'],
        [100, 0],
        [140, 'b'],
        [200, 1],
        [300, 2],
      ]);
      expect(runtime.pending).to.equal(0);
    });

    it('repeats and stops as they ask it to', () => {
      const runtime = virtualRuntime();
      const got: number[][] = [];
      const subscription = interval(10, runtime.scheduler)
        .pipe(bufferTime(25, runtime.scheduler))
        .subscribe((values) => got.push(values));
      runtime.advance(60);
      expect(got).to.deep.equal([
        [0, 1],
        [2, 3],
      ]);
      subscription.unsubscribe();
      expect(runtime.pending).to.equal(0);
    });

    it('counts an absolute time by its wall clock', () => {
      const runtime = virtualRuntime({ wallStartMs: 5_000 });
      let ranMs: number | undefined;
      timer(new Date(5_250), runtime.scheduler).subscribe(() => (ranMs = runtime.clock.now()));
      runtime.run();
      expect(ranMs).to.equal(250);
    });

    it('passes its state on, from one time to the next', () => {
      const runtime = virtualRuntime();
      const got: [number, number][] = [];
      runtime.scheduler.schedule<number>(
        function (left) {
          got.push([runtime.clock.now(), left]);
          if (left > 0) this.schedule(left - 1, 10);
        },
        5,
        2,
      );
      runtime.run();
      expect(got).to.deep.equal([
        [5, 2],
        [15, 1],
        [25, 0],
      ]);
    });
  });
});
