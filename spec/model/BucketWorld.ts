import { TokenBucket } from '../../lib/limits/TokenBucket.ts';
import type { TokenBucketOptions } from '../../lib/limits/TokenBucket.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Taken {
  readonly atMs: number;
  readonly cost: number;
  readonly mark: number;
  /** `cost`, less what came back of it. */
  net: number;
  undone: boolean;
  /** The bucket has been full since: what had been taken came back, and to nobody's use. */
  gone: boolean;
}

const CAPACITY = 2;
const PER_MS = 0.5;
export const BUCKET: TokenBucketOptions = { capacity: CAPACITY, refillPerSecond: PER_MS * 1000 };
const COSTS = [1, 2] as const;

/** Callers that take one token or two of a bucket of two, and give some back, late or at once. */
export class BucketWorld implements World {
  readonly #clock = new ModelClock();
  readonly #bucket: TokenBucket;
  readonly #lagMs: number;
  readonly #taken: Taken[] = [];
  #left: number;
  /** By when a cost can be taken, if nobody else takes. */
  #promised: { readonly cost: number; readonly atMs: number } | undefined;

  constructor(takes: number, lagMs: number, make: (lagMs: number) => TokenBucket = bucketOf) {
    this.#left = takes;
    this.#lagMs = lagMs;
    this.#bucket = make(lagMs);
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    if (this.#left > 0) for (const cost of COSTS) deeds.push([`take ${cost}`, () => this.#take(cost)]);
    this.#taken.forEach((taken, at) => {
      if (!taken.undone) deeds.push([`number ${at + 1} gives back`, () => this.#giveBack(taken)]);
    });
    deeds.push(['1 ms passes', () => this.#pass()]);
    return deeds;
  }

  key(): string {
    const taken = this.#taken.map(({ atMs, cost, net, undone, gone }) => {
      return gone ? undone : [this.#clock.nowMs - atMs, cost, net.toFixed(6), undone].join(':');
    });
    return `${this.#left} ${taken.join()} ${(this.#promised?.atMs ?? this.#clock.nowMs) - this.#clock.nowMs}`;
  }

  wrong(): string | undefined {
    const { nowMs } = this.#clock;
    for (const { atMs: fromMs } of this.#taken) {
      let net = 0;
      for (const taken of this.#taken) {
        if (taken.atMs < fromMs) continue;
        net += taken.net;
        const most = CAPACITY + PER_MS * Math.max(0, taken.atMs - fromMs - this.#lagMs);
        if (net > most + 1e-9) return `${net} tokens in ${taken.atMs - fromMs} ms`;
      }
    }
    const level = this.#bucket.level(nowMs);
    return level >= 0 && level <= CAPACITY ? undefined : `the level is ${level}`;
  }

  ended(): boolean {
    return this.#left === 0 && this.#bucket.level(this.#clock.nowMs) === CAPACITY;
  }

  #pass(): void {
    this.#clock.nowMs++;
    if (this.#bucket.level(this.#clock.nowMs) === CAPACITY) for (const taken of this.#taken) taken.gone = true;
  }

  #take(cost: number): unknown {
    const { nowMs } = this.#clock;
    const promised = this.#promised;
    const decision = this.#bucket.take(nowMs, cost);
    if (decision.kind === 'wait') {
      const { waitMs } = decision;
      must(Number.isInteger(waitMs) && waitMs > 0, `is told to wait ${waitMs} ms`);
      must(
        !(promised && cost <= promised.cost && nowMs >= promised.atMs),
        'waits again, though it waited as long as it was told',
      );
      this.#promised = { cost, atMs: nowMs + waitMs };
      return waitMs;
    }
    this.#left--;
    this.#promised = undefined;
    this.#taken.push({ atMs: nowMs, cost, mark: decision.mark, net: cost, undone: false, gone: false });
    return 'granted';
  }

  #giveBack(taken: Taken): unknown {
    taken.undone = true;
    const { nowMs } = this.#clock;
    const before = this.#bucket.level(nowMs);
    const back = this.#bucket.giveBack(nowMs, taken.cost, taken.mark);
    must(back >= 0 && back <= taken.cost, `${back} come back of ${taken.cost}`);
    must(!taken.gone || back === 0, `${back} come back, which had been refilled`);
    must(
      Math.abs(this.#bucket.level(nowMs) - before - back) < 1e-9,
      `the level goes from ${before} to ${this.#bucket.level(nowMs)}, and ${back} came back`,
    );
    must(taken.atMs < nowMs || back === taken.cost, 'less comes back at once than was taken');
    taken.net -= back;
    return back.toFixed(6);
  }
}

export function bucketOf(refillLagMs: number): TokenBucket {
  return new TokenBucket({ ...BUCKET, refillLagMs }, 0);
}
