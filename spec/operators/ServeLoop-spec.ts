import { expect } from 'chai';
import { startTimer } from '../../lib/core/runtime.ts';
import { ServeLoop } from '../../lib/operators/ServeLoop.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

describe('ServeLoop', () => {
  let runtime: VirtualRuntime;
  let steps: (() => number | undefined)[];
  let ranAtMs: number[];

  beforeEach(() => {
    runtime = virtualRuntime();
    steps = [];
    ranAtMs = [];
  });

  /** Takes the next step each time; `Infinity` when there is none left. */
  const loop = (): ServeLoop =>
    new ServeLoop(runtime, () => {
      ranAtMs.push(runtime.clock.now());
      const step = steps.shift();
      return step === undefined ? Infinity : step();
    });
  const nothing = (): undefined => undefined;
  const until = (untilMs: number) => (): number => untilMs;

  it('goes on until there is nothing to do, and comes back when time will have changed something', () => {
    steps = [nothing, nothing, until(70), nothing];
    loop().run();
    expect(ranAtMs).to.deep.equal([0, 0, 0]);
    expect(runtime.pending).to.equal(1);
    runtime.run();
    expect(ranAtMs).to.deep.equal([0, 0, 0, 70, 70]);
    expect(runtime.pending).to.equal(0);
  });

  it('does not begin again within itself', () => {
    const serving = loop();
    let depth = 0;
    steps = [
      () => {
        depth++;
        serving.run();
        depth--;
        return undefined;
      },
      () => void expect(depth).to.equal(0),
    ];
    serving.run();
    expect(ranAtMs).to.have.length(3);
  });

  it('does what it is given first as a part of the same, and serves by the timer if that throws', () => {
    const serving = loop();
    expect(serving.isRunning).to.equal(false);
    serving.run(() => {
      expect([serving.isRunning, ranAtMs]).to.deep.equal([true, []]);
      serving.run();
      expect(ranAtMs).to.deep.equal([]);
    });
    expect([serving.isRunning, ranAtMs]).to.deep.equal([false, [0]]);
    const throws = (): never => {
      throw new Error('of the receiver');
    };
    expect(() => serving.run(throws)).to.throw('of the receiver');
    expect([serving.isRunning, ranAtMs, runtime.pending]).to.deep.equal([false, [0], 1]);
    runtime.run();
    expect(ranAtMs).to.deep.equal([0, 0]);
  });

  it('keeps a timer that comes early enough, and replaces one that comes too late', () => {
    const serving = loop();
    steps = [until(50), until(80), until(80), until(30)];
    serving.run();
    serving.run();
    expect(runtime.pending).to.equal(1);
    runtime.advance(50);
    expect(ranAtMs).to.deep.equal([0, 0, 50]);
    serving.run();
    runtime.run();
    expect(ranAtMs).to.deep.equal([0, 0, 50, 50, 50]);
  });

  it('replaces a timer that would come too late', () => {
    const serving = loop();
    steps = [until(80), until(30)];
    serving.run();
    serving.run();
    expect(runtime.pending).to.equal(1);
    runtime.run();
    expect(ranAtMs).to.deep.equal([0, 0, 30]);
  });

  it('stops its timer when there is nothing to wait for', () => {
    const serving = loop();
    steps = [until(80), until(Infinity), until(90)];
    serving.run();
    serving.run();
    expect(runtime.pending).to.equal(0);
    serving.run();
    runtime.run();
    expect(ranAtMs).to.deep.equal([0, 0, 0, 90]);
  });

  it('is due from the instant of its timer until that has run', () => {
    const serving = loop();
    const dues: boolean[] = [];
    startTimer(runtime, 49, () => dues.push(serving.isDue));
    startTimer(runtime, 50, () => dues.push(serving.isDue));
    steps = [until(50)];
    serving.run();
    runtime.run();
    expect(dues).to.deep.equal([false, true]);
    expect(serving.isDue).to.be.false;
  });

  it('serves the others in a moment where a receiver throws', () => {
    const serving = loop();
    steps = [
      () => {
        throw new Error('receiver');
      },
    ];
    expect(() => serving.run()).to.throw('receiver');
    expect(ranAtMs).to.deep.equal([0]);
    runtime.run();
    expect(ranAtMs).to.deep.equal([0, 0]);
  });
});
