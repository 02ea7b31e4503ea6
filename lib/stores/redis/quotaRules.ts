import { oneOf } from '../../core/checks.ts';
import type { LayerSnapshot } from '../../core/ports.ts';
import { Cooldown, COOLDOWN_DEFAULTS } from '../../limits/Cooldown.ts';
import type { CooldownOptions } from '../../limits/Cooldown.ts';
import { coveredMarginMs } from '../../limits/MinuteBucket.ts';
import type { MinuteRate } from '../../limits/MinuteBucket.ts';
import { QuotaLayer } from '../../limits/QuotaLayer.ts';
import { layersOf } from '../../limits/layersOf.ts';
import type { QuotaOptions } from '../../limits/layersOf.ts';
import { checkedQuotaRules } from '../../limits/QuotaOptions.ts';
import type { CheckedQuotaRules } from '../../limits/QuotaOptions.ts';
import type { BucketRule, SharedQuotaRules } from './QuotaCall.ts';

/** What a process knows of a quota by itself. */
export interface QuotaPlan {
  readonly own: CheckedQuotaRules;
  readonly shared: SharedQuotaRules;
  /** Index of the bucket that a report corrects. */
  readonly reported: { readonly requests: number; readonly tokens: number };
  /** More can never pass as one attempt. */
  readonly most: { readonly requests: number; readonly tokens: number };
  /** `drainUs`: until each bucket is full. */
  snapshot(drainUs: readonly number[]): LayerSnapshot[];
}

export interface SharedTimes {
  readonly aheadMs: number;
  readonly sliceMs: number;
  readonly leaseMs: number;
  readonly memberMs: number;
  readonly keepMs: number;
}

const MINUTE_US = 60_000_000;
/** What timers and the way to the server and back may be late without costing a turn. Part of the arrival margin. */
const GRACE_MS = 20;
/** A bound that is never met: numbers that JSON has no word for. */
const ENDLESS = 1e15;

/** @throws SluiceError `invalid_option` if an option is not as described. */
export function quotaPlan(options: QuotaOptions, times: SharedTimes): QuotaPlan {
  const own = checkedQuotaRules(options);
  const layers = layersOf(options).map(([name, rates]) => new QuotaLayer(name, rates, own.arrivalMarginMs, 0));
  const names = layers.map(({ name }) => name);
  const { reportsTo = names.findLast((name) => name !== 'tenant') } = options;
  if (reportsTo !== undefined) oneOf('reportsTo', reportsTo, names);

  const buckets = layers.flatMap(({ name, requests, tokens }) => [
    ...(requests ? [bucketRule(name, 'requests', requests, 1, own.arrivalMarginMs)] : []),
    ...(tokens ? [bucketRule(name, 'tokens', tokens, tokens.burst, own.arrivalMarginMs)] : []),
  ]);
  const least = (unit: BucketRule['unit']): number =>
    Math.min(Infinity, ...buckets.filter((bucket) => bucket.unit === unit).map(({ perMinute }) => perMinute));

  return {
    own,
    shared: {
      buckets,
      maxWaiting: Math.min(own.maxWaiting, ENDLESS),
      cooldown: cooldownRules(own.cooldown),
      graceUs: GRACE_MS * 1000,
      aheadUs: times.aheadMs * 1000,
      sliceUs: times.sliceMs * 1000,
      leaseUs: times.leaseMs * 1000,
      memberUs: times.memberMs * 1000,
      keepMs: times.keepMs,
    },
    reported: { requests: indexOf(buckets, reportsTo, 'requests'), tokens: indexOf(buckets, reportsTo, 'tokens') },
    most: { requests: least('requests'), tokens: least('tokens') },
    snapshot: (drainUs) => layers.map(({ name }) => shown(name, buckets, drainUs)),
  };
}

/** The same with every rate divided by `processes`. */
export function shareOf(rules: SharedQuotaRules, processes: number): SharedQuotaRules {
  const buckets = rules.buckets.map((bucket) => ({ ...bucket, perMinute: bucket.perMinute / processes }));
  return { ...rules, buckets, sliceUs: 0, aheadUs: 0 };
}

/** Refill of a bucket in whole microseconds for what it holds. */
function bucketRule(
  layer: string,
  unit: BucketRule['unit'],
  { perMinute, burst }: MinuteRate,
  largest: number,
  arrivalMarginMs: number,
): BucketRule {
  const marginMs = coveredMarginMs({ perMinute, burst }, largest, arrivalMarginMs + GRACE_MS);
  const sizeUs = Math.floor((burst * MINUTE_US) / perMinute);
  return { key: `${layer}.${unit}`, unit, perMinute, sizeUs, lagUs: Math.floor(marginMs * 1000) };
}

function shown(layer: string, buckets: readonly BucketRule[], drainUs: readonly number[]): LayerSnapshot {
  const of = (unit: BucketRule['unit']): LayerSnapshot['requests'] => {
    const at = indexOf(buckets, layer, unit);
    const bucket = buckets[at];
    if (bucket === undefined) return undefined;
    const { perMinute, sizeUs } = bucket;
    const level = ((sizeUs - (drainUs[at] ?? 0)) * perMinute) / MINUTE_US;
    return { level, burst: (sizeUs * perMinute) / MINUTE_US, perMinute };
  };
  return { layer, requests: of('requests'), tokens: of('tokens') };
}

function indexOf(buckets: readonly BucketRule[], layer: string | undefined, unit: BucketRule['unit']): number {
  return buckets.findIndex(({ key }) => key === `${layer ?? ''}.${unit}`);
}

/** @throws SluiceError `invalid_option` if an option is not as described. */
function cooldownRules(options: CooldownOptions): SharedQuotaRules['cooldown'] {
  new Cooldown(options, () => 0);
  const { unhintedMs, jitter, trialMs, staggerMs, rampMs } = COOLDOWN_DEFAULTS;
  return {
    unhintedMs: options.unhintedMs ?? unhintedMs,
    jitter: options.jitter ?? jitter,
    trialMs: options.trialMs ?? trialMs,
    staggerMs: options.staggerMs ?? staggerMs,
    rampMs: options.rampMs ?? rampMs,
  };
}
