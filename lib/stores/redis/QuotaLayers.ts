import { nonEmpty, oneOf } from '../../core/checks.ts';
import type { LayerSnapshot } from '../../core/ports.ts';
import type { NamedLayer, RouteOptions } from '../../limits/LimitStore.ts';
import { coveredMarginMs } from '../../limits/MinuteBucket.ts';
import type { MinuteBucket } from '../../limits/MinuteBucket.ts';
import { QuotaLayer } from '../../limits/QuotaLayer.ts';
import type { LayerOptions } from '../../limits/QuotaLayer.ts';
import { checkedQuotaRules } from '../../limits/QuotaOptions.ts';
import type { CheckedQuotaRules } from '../../limits/QuotaOptions.ts';
import type { BucketRule } from './QuotaCall.ts';
import { GRACE_MS } from './quotaRules.ts';

/** What a process knows of a route by itself. */
export interface RoutePlan {
  readonly own: CheckedQuotaRules;
  /** Names the pause: layers that the provider knows nothing of make none of their own. */
  readonly cooldown: string;
  readonly buckets: readonly BucketRule[];
  /** Index of the bucket that a report corrects, -1 for none. */
  readonly reported: { readonly requests: number; readonly tokens: number };
  /** More can never pass as one attempt. */
  readonly most: { readonly requests: number; readonly tokens: number };
  /** `drainUs`: until a bucket is full, by its key. */
  snapshot(drainUs: (key: string) => number): LayerSnapshot[];
}

const MINUTE_US = 60_000_000;

/** The layers that the routes of a quota are made of, by name and as they were last given. */
export class QuotaLayers {
  #own: CheckedQuotaRules;
  readonly #options = new Map<string, LayerOptions>();
  readonly #buckets = new Map<string, readonly BucketRule[]>();
  #version = 0;

  constructor(own: CheckedQuotaRules) {
    this.#own = own;
  }

  /** Another one after each change: plans that were made before are old. */
  get version(): number {
    return this.#version;
  }

  /** Takes other rules. */
  reload(own: CheckedQuotaRules): void {
    this.#own = own;
    for (const [name, options] of this.#options) this.#buckets.set(name, bucketsOf(name, options, own));
    this.#version++;
  }

  /**
   * Takes the rates of these layers.
   * @throws SluiceError `invalid_option`; then nothing has changed.
   */
  give(layers: readonly NamedLayer[], options: RouteOptions): void {
    const { reportsTo } = options;
    const names = layers.map(({ name }) => nonEmpty('layer.name', name));
    if (reportsTo !== undefined) oneOf('reportsTo', reportsTo, names);
    rulesOf(this.#own, options);
    const made = layers.map((layer) => bucketsOf(layer.name, layer, this.#own));
    layers.forEach(({ name, ...options }, i) => {
      this.#options.set(name, options);
      const before = this.#buckets.get(name);
      this.#buckets.set(name, made[i] as readonly BucketRule[]);
      if (JSON.stringify(before) !== JSON.stringify(made[i])) this.#version++;
    });
  }

  /** Forgets all but these. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#options.keys()) {
      if (names.has(name)) continue;
      this.#options.delete(name);
      this.#buckets.delete(name);
    }
  }

  /** All buckets of all layers. */
  buckets(): BucketRule[] {
    return [...this.#buckets.values()].flat();
  }

  /** A bucket as it is now. */
  current(rule: BucketRule): BucketRule {
    return this.#buckets.get(rule.key.slice(2))?.find(({ key }) => key === rule.key) ?? rule;
  }

  plan(layers: readonly string[], options: RouteOptions): RoutePlan {
    const { reportsTo = layers.findLast((name) => !isTenant(name)) } = options;
    const buckets = layers.flatMap((name) => this.#buckets.get(name) ?? []);
    const least = (unit: string): number =>
      Math.min(Infinity, ...buckets.filter(({ key }) => key.startsWith(unit)).map(({ perMinute }) => perMinute));
    return {
      own: rulesOf(this.#own, options),
      cooldown: JSON.stringify(layers.filter((name) => !isTenant(name))),
      buckets,
      reported: {
        requests: buckets.findIndex(({ key }) => key === `r:${reportsTo ?? ''}`),
        tokens: buckets.findIndex(({ key }) => key === `t:${reportsTo ?? ''}`),
      },
      most: { requests: least('r:'), tokens: least('t:') },
      snapshot: (drainUs) => layers.map((name) => shown(name, buckets, drainUs)),
    };
  }
}

/** @throws SluiceError `invalid_option` if one is not as described. */
function rulesOf(own: CheckedQuotaRules, { settle, refundOn }: RouteOptions): CheckedQuotaRules {
  return checkedQuotaRules({ ...own, ...(settle && { settle }), ...(refundOn && { refundOn }) });
}

function isTenant(layer: string): boolean {
  return layer === 'tenant' || layer.startsWith('tenant:');
}

/** @throws SluiceError `invalid_option` if a rate is not as described. */
function bucketsOf(name: string, options: LayerOptions, { arrivalMarginMs }: CheckedQuotaRules): BucketRule[] {
  const { requests, tokens } = new QuotaLayer(name, options, arrivalMarginMs, 0);
  return [
    ...(requests ? [ruleOf(`r:${name}`, requests, 1, arrivalMarginMs)] : []),
    ...(tokens ? [ruleOf(`t:${name}`, tokens, tokens.burst, arrivalMarginMs)] : []),
  ];
}

/** Refill of a bucket in whole microseconds for what it holds. */
function ruleOf(key: string, { perMinute, burst }: MinuteBucket, largest: number, arrivalMarginMs: number): BucketRule {
  const marginMs = coveredMarginMs({ perMinute, burst }, largest, arrivalMarginMs + GRACE_MS);
  const sizeUs = Math.floor((burst * MINUTE_US) / perMinute);
  return { key, perMinute, sizeUs, lagUs: Math.floor(marginMs * 1000) };
}

function shown(layer: string, buckets: readonly BucketRule[], drainUs: (key: string) => number): LayerSnapshot {
  const of = (key: string): LayerSnapshot['requests'] => {
    const bucket = buckets.find((each) => each.key === key);
    if (bucket === undefined) return undefined;
    const { perMinute, sizeUs } = bucket;
    const level = ((sizeUs - drainUs(key)) * perMinute) / MINUTE_US;
    return { level, burst: (sizeUs * perMinute) / MINUTE_US, perMinute };
  };
  return { layer, requests: of(`r:${layer}`), tokens: of(`t:${layer}`) };
}
