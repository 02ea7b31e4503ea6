import type { Runtime } from '../../core/runtime.ts';
import { startTimer } from '../../core/runtime.ts';
import { sample } from '../../emulator/model/distribution.ts';
import type { Load, TraceCall } from '../scenario/Scenario.ts';
import { arrivalTimes } from './arrivalTimes.ts';
import { CallDrawer } from './CallDrawer.ts';
import type { SimulatedCall } from './CallDrawer.ts';

/** Makes a call as `draw` says; `ended` is to be called once, when it is over. */
export type MakeCall = (draw: (ordinal: number) => SimulatedCall, ended: () => void) => void;

/**
 * Makes the calls of one load, at their times. One timer, for the next of them. What is drawn depends on nothing that
 * becomes of the calls but, for workers, on when they end.
 */
export class LoadRun {
  readonly #load: Load;
  readonly #fromMs: number;
  readonly #untilMs: number;
  readonly #runtime: Runtime;
  readonly #random: () => number;
  readonly #make: MakeCall;
  readonly #drawer: CallDrawer;
  #workersCalls = 0;

  constructor(
    load: Load,
    name: string,
    untilMs: number,
    world: { readonly runtime: Runtime; readonly random: () => number },
    make: MakeCall,
  ) {
    this.#load = load;
    this.#fromMs = load.fromMs ?? 0;
    this.#untilMs = Math.min(untilMs, load.toMs ?? Infinity);
    this.#runtime = world.runtime;
    this.#random = world.random;
    this.#make = make;
    this.#drawer = new CallDrawer(load, name, world.random);
  }

  start(): void {
    const { arrivals } = this.#load;
    if (arrivals.kind === 'workers') {
      startTimer(this.#runtime, this.#fromMs, () => {
        for (let i = 0; i < arrivals.workers; i++) this.#work(arrivals);
      });
      return;
    }
    const times: Iterator<number | TraceCall, void> =
      arrivals.kind === 'trace'
        ? [...arrivals.calls].sort((a, b) => a.atMs - b.atMs).values()
        : arrivalTimes(arrivals, this.#untilMs - this.#fromMs, this.#random);
    this.#next(times);
  }

  /** Makes what is due, all of one instant without a break, and waits for the next. */
  #next(times: Iterator<number | TraceCall, void>): void {
    for (let next = times.next(); next.done !== true; next = times.next()) {
      const given = typeof next.value === 'number' ? undefined : next.value;
      const atMs = this.#fromMs + (given?.atMs ?? (next.value as number));
      if (atMs >= this.#untilMs) return;
      const waitMs = atMs - this.#runtime.clock.now();
      if (waitMs > 0) {
        startTimer(this.#runtime, waitMs, () => {
          this.#call(given);
          this.#next(times);
        });
        return;
      }
      this.#call(given);
    }
  }

  #call(given: TraceCall | undefined): void {
    this.#make(
      (ordinal) => this.#drawer.draw(ordinal, given),
      () => {},
    );
  }

  #work(arrivals: Load['arrivals'] & { readonly kind: 'workers' }): void {
    const { calls = Infinity, thinkMs = 0 } = arrivals;
    if (this.#workersCalls >= calls || this.#runtime.clock.now() >= this.#untilMs) return;
    this.#workersCalls++;
    this.#make(
      (ordinal) => this.#drawer.draw(ordinal),
      // By a timer, also without a pause: calls that end at once would overflow the stack.
      () => void startTimer(this.#runtime, sample(thinkMs, this.#random), () => this.#work(arrivals)),
    );
  }
}
