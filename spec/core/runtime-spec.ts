import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { asyncScheduler } from 'rxjs';
import type { Runtime, Scheduler } from '../../lib/core/runtime.ts';
import { startTimer, systemRuntime } from '../../lib/core/runtime.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const MAX_TIMER_MS = 2 ** 31 - 1;

/** A virtual runtime that notes every delay that was asked of it. */
function noting(): { readonly runtime: ReturnType<typeof virtualRuntime>; readonly delays: number[] } {
  const virtual = virtualRuntime();
  const delays: number[] = [];
  const scheduler: Scheduler = {
    schedule(work, delayMs = 0) {
      delays.push(delayMs);
      return virtual.scheduler.schedule(work, delayMs);
    },
  };
  const runtime = Object.create(virtual, { scheduler: { value: scheduler } }) as typeof virtual;
  return { runtime, delays };
}

describe('startTimer', () => {
  it('runs the work once, when the delay has passed and not before', () => {
    const runtime = virtualRuntime();
    const ranAt: number[] = [];
    startTimer(runtime, 250, () => ranAt.push(runtime.clock.now()));
    runtime.advance(249);
    expect(ranAt).to.deep.equal([]);
    runtime.advance(1000);
    expect(ranAt).to.deep.equal([250]);
  });

  it('runs at once, but never within the call, for a delay of 0 or less', () => {
    for (const delayMs of [0, -5, -Infinity]) {
      const { runtime, delays } = noting();
      let ran = 0;
      startTimer(runtime, delayMs, () => ran++);
      expect(ran, String(delayMs)).to.equal(0);
      runtime.advance(0);
      expect(ran, String(delayMs)).to.equal(1);
      expect(delays).to.deep.equal([0]);
    }
  });

  it('arms one timer for the longest delay that a timer can have', () => {
    const { runtime, delays } = noting();
    startTimer(runtime, MAX_TIMER_MS, () => {});
    runtime.run();
    expect(delays).to.deep.equal([MAX_TIMER_MS]);
  });

  for (const delayMs of [MAX_TIMER_MS + 1, 3 * MAX_TIMER_MS + 17]) {
    it(`waits ${delayMs} ms in steps that a timer can have`, () => {
      const { runtime, delays } = noting();
      let firedAt: number | undefined;
      startTimer(runtime, delayMs, () => (firedAt = runtime.clock.now()));
      expect(runtime.run()).to.equal(delayMs);
      expect(firedAt).to.equal(delayMs);
      expect(Math.max(...delays)).to.be.at.most(MAX_TIMER_MS);
      expect(delays).to.have.length(Math.ceil(delayMs / MAX_TIMER_MS));
    });
  }

  it('arms nothing for Infinity', () => {
    const { runtime, delays } = noting();
    const cancel = startTimer(runtime, Infinity, () => expect.fail('fired'));
    expect(delays).to.deep.equal([]);
    expect(runtime.pending).to.equal(0);
    expect(cancel).not.to.throw();
  });

  it('never waits for ever, or for one millisecond in a loop, on a delay that is not a number', () => {
    const { runtime, delays } = noting();
    let ran = 0;
    startTimer(runtime, NaN, () => ran++);
    runtime.run(1000);
    expect(ran).to.equal(1);
    expect(delays).to.have.length(1);
    expect(runtime.pending).to.equal(0);
  });

  it('does nothing more once cancelled, and forgets its timer', () => {
    const runtime = virtualRuntime();
    const cancel = startTimer(runtime, 10, () => expect.fail('fired'));
    cancel();
    expect(runtime.pending).to.equal(0);
    runtime.advance(100);
  });

  it('can be cancelled between two steps of a long wait', () => {
    const runtime = virtualRuntime();
    const cancel = startTimer(runtime, 2 * MAX_TIMER_MS, () => expect.fail('fired'));
    runtime.advance(MAX_TIMER_MS + 5);
    expect(runtime.pending).to.equal(1);
    cancel();
    expect(runtime.pending).to.equal(0);
    runtime.run();
  });

  it('takes a second cancel, and one after it has fired, for nothing', () => {
    const undone: string[] = [];
    const virtual = virtualRuntime();
    const runtime: Runtime = {
      ...virtual,
      scheduler: {
        schedule(work, delayMs) {
          virtual.scheduler.schedule(work, delayMs);
          return { unsubscribe: () => undone.push('unsubscribe') };
        },
      },
    };
    let ran = 0;
    const cancelFirst = startTimer(runtime, 10, () => expect.fail('fired'));
    const cancelSecond = startTimer(runtime, 20, () => ran++);
    cancelFirst();
    cancelFirst();
    virtual.advance(50);
    cancelSecond();
    expect(undone).to.deep.equal(['unsubscribe']);
    expect(ran).to.equal(1);
  });

  it('can be cancelled by the work it runs', () => {
    const runtime = virtualRuntime();
    let ran = 0;
    const cancel = startTimer(runtime, 1, () => {
      ran++;
      cancel();
    });
    runtime.run();
    expect(ran).to.equal(1);
  });

  it('takes a scheduler of RxJS', () => {
    const runtime: Runtime = { ...systemRuntime, scheduler: asyncScheduler };
    return new Promise<void>((resolve) => {
      startTimer(runtime, 1, resolve);
    });
  });
});

describe('systemRuntime', () => {
  it('reads a clock that never goes back, and the wall clock', () => {
    const { clock } = systemRuntime;
    const first = clock.now();
    expect(clock.now()).to.be.at.least(first);
    expect(Math.abs(clock.wallNow() - Date.now())).to.be.below(1000);
  });

  it('reads a clock that stands still while code runs without a break, and goes on after it', async () => {
    const { clock } = systemRuntime;
    const first = clock.now();
    const until = performance.now() + 3;
    while (performance.now() < until);
    expect(clock.now()).to.equal(first);
    await Promise.resolve();
    expect(clock.now()).to.be.at.least(first + 3);
  });

  it('fires a timer of its own, and none that was unsubscribed', () =>
    new Promise<void>((resolve, reject) => {
      systemRuntime.scheduler
        .schedule(() => {
          reject(new Error('fired'));
        })
        .unsubscribe();
      systemRuntime.scheduler.schedule(() => {
        resolve();
      }, 1);
    }));

  it('lets the process end once the waits are cancelled', () => {
    const runtimeFile = JSON.stringify(new URL('../../lib/core/runtime.ts', import.meta.url).href);
    const code = `
      import { startTimer, systemRuntime } from ${runtimeFile};
      const cancels = [10_000, 2 ** 31, Infinity].map((ms) => startTimer(systemRuntime, ms, () => console.log('fired')));
      for (const cancel of cancels) cancel();
    `;
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
      encoding: 'utf8',
      timeout: 5000,
    });
    expect(printed).to.equal('');
  });

  it('draws numbers from 0 up to 1', () => {
    for (let draw = 0; draw < 100; draw++) expect(systemRuntime.random()).to.be.within(0, 1 - Number.EPSILON / 2);
  });
});
