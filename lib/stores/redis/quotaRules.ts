import { Cooldown, COOLDOWN_DEFAULTS } from '../../limits/Cooldown.ts';
import type { CooldownOptions } from '../../limits/Cooldown.ts';
import { checkedQuotaRules } from '../../limits/QuotaOptions.ts';
import type { CheckedQuotaRules, QuotaRules } from '../../limits/QuotaOptions.ts';
import type { SharedQuotaRules } from './QuotaCall.ts';

export interface SharedTimes {
  readonly aheadMs: number;
  readonly sliceMs: number;
  readonly leaseMs: number;
  readonly memberMs: number;
  readonly keepMs: number;
}

/** What holds for all routes of a quota: in this process, and wherever it is decided. */
export interface QuotaPlan {
  readonly own: CheckedQuotaRules;
  readonly shared: SharedQuotaRules;
}

/** What timers and the way to the server and back may be late without costing a turn. Part of the arrival margin. */
export const GRACE_MS = 20;
/** A call that plans so many takes some milliseconds of the server. */
const PLAN_MOST = 200;
/** A bound that is never met: numbers that JSON has no word for. */
const ENDLESS = 1e15;

/** @throws SluiceError `invalid_option` if a rule is not as described. */
export function quotaPlan(rules: QuotaRules, times: SharedTimes): QuotaPlan {
  const own = checkedQuotaRules(rules);
  return {
    own,
    shared: {
      maxWaiting: Math.min(own.maxWaiting, ENDLESS),
      cooldown: cooldownRules(own.cooldown),
      graceUs: GRACE_MS * 1000,
      aheadUs: times.aheadMs * 1000,
      sliceUs: times.sliceMs * 1000,
      planMost: PLAN_MOST,
      leaseUs: times.leaseMs * 1000,
      memberUs: times.memberMs * 1000,
      keepMs: times.keepMs,
    },
  };
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
