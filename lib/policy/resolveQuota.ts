import { COOLDOWN_DEFAULTS } from '../limits/Cooldown.ts';
import { QUOTA_DEFAULTS } from '../limits/QuotaOptions.ts';
import { REFUND_CAUSES, REFUND_DEFAULTS } from '../limits/refunds.ts';
import type { Refund, RefundCause } from '../limits/refunds.ts';
import type { LayerPolicy, QuotaRulesPolicy } from './Policy.ts';
import { POLICY_DEFAULTS } from './policyDefaults.ts';
import type { AccountInput, LayerInput } from './PolicyInput.ts';

/** `null` is how JSON writes that there is no bound. */
export function bound(value: number | null | undefined, standard: number): number {
  return value === null ? Infinity : (value ?? standard);
}

export function layerOf(input: LayerPolicy): LayerPolicy {
  const { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens } = input;
  return {
    ...(requestsPerMinute !== undefined && {
      requestsPerMinute,
      burstRequests: burstRequests ?? Math.max(1, requestsPerMinute / 60),
    }),
    ...(tokensPerMinute !== undefined && { tokensPerMinute, burstTokens: burstTokens ?? tokensPerMinute }),
  };
}

/** The rules of the last of the inputs that has them. */
export function rulesOf(...inputs: readonly (LayerInput | AccountInput | undefined)[]): QuotaRulesPolicy {
  const rules: LayerInput = Object.assign({}, ...inputs) as LayerInput;
  const refundOn = { ...REFUND_DEFAULTS, ...(Object.assign({}, ...inputs.map((input) => input?.refundOn)) as object) };
  return {
    settle: rules.settle ?? QUOTA_DEFAULTS.settle,
    refundOn: Object.fromEntries(REFUND_CAUSES.map((cause) => [cause, refundOn[cause] ?? 'none'])) as Record<
      RefundCause,
      Refund
    >,
    arrivalMarginMs: rules.arrivalMarginMs ?? QUOTA_DEFAULTS.arrivalMarginMs,
    cooldown: Object.assign(
      {},
      COOLDOWN_DEFAULTS,
      ...inputs.map((input) => input?.cooldown),
    ) as typeof COOLDOWN_DEFAULTS,
    exhaustedMs: rules.exhaustedMs ?? POLICY_DEFAULTS.exhaustedMs,
  };
}
