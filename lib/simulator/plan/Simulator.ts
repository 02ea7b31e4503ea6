import { SluiceError } from '../../core/errors.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import { SimulationRun } from '../SimulationRun.ts';
import type { StrategyResult } from '../SimulationRun.ts';
import type { Strategy } from '../strategies/Strategy.ts';

/** The process is held up no longer than this at a time, and the length of a step. */
const BREATH_MS = 50;

/** Makes runs with pauses, in which the process can do what else it has to, such as ending. */
export class Simulator {
  readonly #runtime: Runtime;
  readonly #signal: AbortSignal | undefined;
  #breathedMs: number;
  #runs = 0;
  #calls = 0;

  /** `runtime`: that of the process. */
  constructor(runtime: Runtime, signal: AbortSignal | undefined) {
    this.#runtime = runtime;
    this.#signal = signal;
    this.#breathedMs = runtime.clock.now();
  }

  get runs(): number {
    return this.#runs;
  }

  /** Of all runs. */
  get calls(): number {
    return this.#calls;
  }

  /**
   * `free`: before providers without limits and faults. `tell` hears the part that is done, from 0 to 1.
   * @throws SluiceError `aborted`
   */
  async run(
    scenario: Scenario,
    strategy: Strategy,
    { free = false, tell = () => {} }: { readonly free?: boolean; readonly tell?: (done: number) => void } = {},
  ): Promise<StrategyResult> {
    const steps = new SimulationRun(scenario, strategy, { free }).steps('plan');
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        this.#runs++;
        this.#calls += step.value.calls;
        return step.value;
      }
      tell(step.value.atMs / scenario.forMs);
      await this.#breathe();
    }
  }

  async #breathe(): Promise<void> {
    this.#stopIfAborted();
    if (this.#runtime.clock.now() - this.#breathedMs < BREATH_MS) return;
    await new Promise<void>((resolve) => void startTimer(this.#runtime, 0, resolve));
    this.#breathedMs = this.#runtime.clock.now();
    this.#stopIfAborted();
  }

  #stopIfAborted(): void {
    if (this.#signal?.aborted === true) throw new SluiceError('aborted', 'the plan was aborted');
  }
}
