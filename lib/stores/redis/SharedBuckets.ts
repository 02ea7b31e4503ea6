import type { BucketRule } from './QuotaCall.ts';
import { SharedBucket } from './SharedBucket.ts';

/** The buckets of a shared quota, made as they are asked for. `quotaBuckets.lua` holds the same; change both. */
export class SharedBuckets {
  readonly #buckets = new Map<string, SharedBucket>();
  readonly #madeUs: number;
  #full: boolean;
  #emptyUntilUs = -Infinity;

  /** Full, or empty at that time. */
  constructor(nowUs: number, full: boolean) {
    this.#madeUs = nowUs;
    this.#full = full;
  }

  /** Whether what is new is full, and nobody has said otherwise. */
  get full(): boolean {
    return this.#full;
  }

  get(key: string): SharedBucket | undefined {
    return this.#buckets.get(key);
  }

  /** That of a rule, whose rates hold from now on. `changed`: they are others. */
  at(rule: BucketRule, nowUs: number): { readonly bucket: SharedBucket; readonly changed: boolean } {
    const known = this.#buckets.get(rule.key);
    if (known) return { bucket: known, changed: known.setRate(rule, nowUs) };
    const realUs = this.#full ? this.#madeUs : this.#madeUs + rule.sizeUs;
    const bucket = new SharedBucket(rule, Math.max(realUs, this.#emptyUntilUs + rule.sizeUs));
    this.#buckets.set(rule.key, bucket);
    return { bucket, changed: false };
  }

  /** They should have begun empty. */
  owe(): void {
    this.#full = false;
    for (const bucket of this.#buckets.values()) bucket.realUs += bucket.sizeUs;
  }

  /** All are empty until then. */
  emptyUntil(atUs: number): void {
    this.#full = false;
    this.#emptyUntilUs = Math.max(this.#emptyUntilUs, atUs);
    for (const bucket of this.#buckets.values()) bucket.realUs = Math.max(bucket.realUs, atUs + bucket.sizeUs);
  }
}
