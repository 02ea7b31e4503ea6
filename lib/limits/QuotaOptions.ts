import { oneOf, zeroOrInfinity, zeroOrMore, wholeNumber } from '../core/checks.ts';
import type { CooldownOptions } from './Cooldown.ts';
import { checkedRefunds } from './refunds.ts';
import type { RefundRules } from './refunds.ts';

/** Rules that hold for a quota as a whole. */
export interface QuotaRules {
  /**
   * `'reserved'`: the provider's limiter counts what was reserved, so usage corrects the reservation only upwards
   * (OpenAI and Azure). `'usage'`: usage corrects it both ways. Without a reported usage the estimate stands. Default:
   * `'reserved'`.
   */
  readonly settle?: 'usage' | 'reserved' | undefined;
  /** What comes back when an attempt ends otherwise than by success, per cause. Merged into `REFUND_DEFAULTS`. */
  readonly refundOn?: RefundRules | undefined;
  /**
   * How much less time two requests may lie apart when they arrive than when they were sent. What was taken comes back
   * this much late, so that once the first burst is spent no request arrives too early. 0 or more. Default: 100.
   */
  readonly arrivalMarginMs?: number | undefined;
  /** Requests that may wait. 0 or more, or `Infinity`. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
  /** Longest wait. 0 or more, or `Infinity`. Default: 30,000. */
  readonly maxWaitMs?: number | undefined;
  /** How a pause that the provider asked for is held and left. */
  readonly cooldown?: CooldownOptions | undefined;
}

export const QUOTA_DEFAULTS: {
  readonly settle: 'usage' | 'reserved';
  readonly arrivalMarginMs: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
} = { settle: 'reserved', arrivalMarginMs: 100, maxWaiting: 10_000, maxWaitMs: 30_000 };

export type CheckedQuotaRules = { readonly [rule in keyof QuotaRules]-?: NonNullable<QuotaRules[rule]> };

/** @throws SluiceError `invalid_option` if a rule is not as described. */
export function checkedQuotaRules(rules: QuotaRules): CheckedQuotaRules {
  const {
    settle = QUOTA_DEFAULTS.settle,
    refundOn = {},
    arrivalMarginMs = QUOTA_DEFAULTS.arrivalMarginMs,
    maxWaiting = QUOTA_DEFAULTS.maxWaiting,
    maxWaitMs = QUOTA_DEFAULTS.maxWaitMs,
    cooldown = {},
  } = rules;
  return {
    settle: oneOf('settle', settle, ['usage', 'reserved']),
    refundOn: checkedRefunds(refundOn),
    arrivalMarginMs: zeroOrMore('arrivalMarginMs', arrivalMarginMs),
    maxWaiting: maxWaiting === Infinity ? maxWaiting : wholeNumber('maxWaiting', maxWaiting, 0),
    maxWaitMs: zeroOrInfinity('maxWaitMs', maxWaitMs),
    cooldown,
  };
}
