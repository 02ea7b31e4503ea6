import type { SimulationProgress } from '../../simulator/simulate.ts';
import type { StatusLine } from '../Command.ts';

const CLEAR = '\r\u001b[2K';
const BAR = 30;
const LEAST_MS = 100;

/** One line that is written over while a simulation runs. `now`: real time, in milliseconds. */
export class ProgressLine {
  readonly #line: StatusLine | undefined;
  readonly #now: () => number;
  #strategy: string | undefined;
  #beganMs = 0;
  #writtenMs = -Infinity;

  constructor(line: StatusLine | undefined, now: () => number) {
    this.#line = line;
    this.#now = now;
  }

  show(progress: SimulationProgress): void {
    if (this.#line === undefined) return;
    const nowMs = this.#now();
    const isNext = progress.strategy !== this.#strategy;
    if (isNext) this.#beganMs = nowMs;
    this.#strategy = progress.strategy;
    if (!isNext && nowMs - this.#writtenMs < LEAST_MS) return;
    this.#writtenMs = nowMs;
    this.#line.write(CLEAR + lineOf(progress, nowMs - this.#beganMs).slice(0, Math.max(0, this.#line.columns - 1)));
  }

  clear(): void {
    if (this.#strategy !== undefined) this.#line?.write(CLEAR);
    this.#strategy = undefined;
  }
}

function lineOf({ strategy, atMs, forMs, requests }: SimulationProgress, tookMs: number): string {
  const done = atMs / forMs;
  const bar = '#'.repeat(Math.round(BAR * done)).padEnd(BAR, '.');
  const rate = tookMs > 0 ? `, ${Math.round((requests * 1000) / tookMs).toLocaleString('en-US')} requests/s` : '';
  return `${bar} ${String(Math.floor(100 * done)).padStart(3)} % ${strategy}${rate}`;
}
