import type { Admission } from '../../limits/Admission.ts';
import type { AdmissionOptions } from '../../limits/AdmissionOptions.ts';
import type { AdmissionPool } from '../../limits/AdmissionPool.ts';
import type { AdmissionTarget } from '../../limits/AdmissionTarget.ts';
import { SharedTarget } from './SharedTarget.ts';
import type { SharedParts } from './SharedTarget.ts';

const FIRST_SWEEP = 1024;

/** The deployments as all processes share them, by those of this process. */
export class SharedTargets {
  readonly #machine: Admission;
  readonly #parts: SharedParts;
  readonly #known = new Map<AdmissionTarget, SharedTarget>();
  /** Those that have something waiting or in flight are among these. */
  readonly #busy = new Set<AdmissionPool>();
  #options: AdmissionOptions;
  #sweepAt = FIRST_SWEEP;

  constructor(machine: Admission, options: AdmissionOptions, parts: SharedParts) {
    this.#machine = machine;
    this.#options = options;
    this.#parts = parts;
    this.#knowAll();
  }

  /** Takes other options, after the machine has them. */
  reload(options: AdmissionOptions): void {
    this.#options = options;
    this.#forget();
    for (const target of this.#known.values()) target.reload(options);
    this.#knowAll();
  }

  /** The machine has this pool now. */
  know(pool: AdmissionPool, model: string): void {
    this.#busy.add(pool);
    for (const target of pool.targets) {
      if (this.#known.has(target)) continue;
      if (this.#known.size >= this.#sweepAt) this.#forget();
      const shared = new SharedTarget(target, model, this.#options, this.#parts);
      target.gate = shared;
      this.#known.set(target, shared);
    }
  }

  /** `undefined` where nothing has been asked of it. */
  knownAt(target: AdmissionTarget): SharedTarget | undefined {
    return this.#known.get(target);
  }

  at(target: AdmissionTarget): SharedTarget {
    return this.#known.get(target) as SharedTarget;
  }

  of(pool: AdmissionPool): readonly SharedTarget[] {
    return pool.targets.map((target) => this.at(target));
  }

  /** Why nobody can be sent anywhere for this model. */
  refusing(pool: AdmissionPool): string | undefined {
    const [first, ...others] = this.of(pool).map(({ ceiling }) => ceiling.refusing);
    return others.every((reason) => reason !== undefined) ? first : undefined;
  }

  /** Tells the store what this process has in flight, and wants. Returns how many wait, of each priority. */
  update(): readonly number[] {
    const waitingAt = this.#machine.rules.levels.map(() => 0);
    for (const pool of this.#busy) {
      let inFlight = 0;
      for (const target of pool.targets) {
        this.#known.get(target)?.ceiling.use(target.inFlight, pool.waiting);
        inFlight += target.inFlight;
      }
      pool.queues.forEach(({ size }, level) => (waitingAt[level] = (waitingAt[level] ?? 0) + size));
      if (inFlight === 0 && pool.waiting === 0) this.#busy.delete(pool);
    }
    return waitingAt;
  }

  close(): void {
    for (const { ceiling } of this.#known.values()) ceiling.close();
  }

  #knowAll(): void {
    for (const [model, pool] of this.#machine.pools) this.know(pool, model);
  }

  #forget(): void {
    const served = new Set([...this.#machine.pools.values()].flatMap(({ targets }) => targets));
    for (const [target, shared] of this.#known) {
      if (served.has(target)) continue;
      shared.ceiling.close();
      this.#known.delete(target);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#known.size);
  }
}
