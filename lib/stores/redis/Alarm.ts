import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';

/** At most one timer, for whatever is due next. */
export class Alarm {
  readonly #runtime: Runtime;
  readonly #ring: () => void;
  #atMs = Infinity;
  #stop: Cancel | undefined;

  constructor(runtime: Runtime, ring: () => void) {
    this.#runtime = runtime;
    this.#ring = ring;
  }

  /** `Infinity`: nothing is due. One that comes too early looks again; only one that comes too late is replaced. */
  set(atMs: number): void {
    if (atMs === Infinity ? this.#atMs === Infinity : this.#atMs <= atMs) return;
    this.#stop?.();
    this.#stop = undefined;
    this.#atMs = atMs;
    if (atMs === Infinity) return;
    this.#stop = startTimer(this.#runtime, atMs - this.#runtime.clock.now(), () => {
      this.#atMs = Infinity;
      this.#ring();
    });
  }
}
