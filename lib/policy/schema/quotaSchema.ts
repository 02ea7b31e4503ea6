import type { z } from 'zod';
import { COOLDOWN_DEFAULTS } from '../../limits/Cooldown.ts';
import type { CooldownOptions } from '../../limits/Cooldown.ts';
import { QUOTA_DEFAULTS } from '../../limits/QuotaOptions.ts';
import { REFUND_CAUSES, REFUND_DEFAULTS, REFUNDS } from '../../limits/refunds.ts';
import type { Refund, RefundCause } from '../../limits/refunds.ts';
import type { LayerPolicy } from '../Policy.ts';
import { POLICY_DEFAULTS } from '../policyDefaults.ts';
import type { AccountInput, LayerInput, QuotaInput } from '../PolicyInput.ts';
import { above0, finite, finiteOrOff, named, oneOf, setting, strict, wholeOrOff } from './leaves.ts';

type RefundShape = Record<RefundCause, z.ZodOptional<z.ZodType<Refund>>>;

function refundShape(standard: boolean): RefundShape {
  const defaultOf = (cause: RefundCause): Refund | undefined =>
    standard ? (REFUND_DEFAULTS[cause] ?? 'none') : undefined;
  const settings = REFUND_CAUSES.map((cause) => [
    cause,
    setting(oneOf(REFUNDS), `What comes back after ${cause}.`, defaultOf(cause)),
  ]);
  return Object.fromEntries(settings) as RefundShape;
}

function cooldownSchema(C: Partial<typeof COOLDOWN_DEFAULTS>): z.ZodType<CooldownOptions> {
  return strict({
    unhintedMs: setting(finite(0), 'Pause after a rejection that named no wait.', C.unhintedMs),
    jitter: setting(finite(0), 'Added to a wait at random, as a share of it.', C.jitter),
    trialMs: setting(finite(0), 'Longest time that the first one back goes alone.', C.trialMs),
    staggerMs: setting(finite(0), 'Least time between two that come back.', C.staggerMs),
    rampMs: setting(finite(0), 'The stagger shrinks to nothing over this time.', C.rampMs),
  } satisfies Record<keyof CooldownOptions, unknown>);
}

/** The shape of rates: a tenant has them too. */
export const rates: Readonly<
  Record<'requestsPerMinute' | 'burstRequests' | 'tokensPerMinute' | 'burstTokens', z.ZodOptional<z.ZodType<number>>>
> = {
  requestsPerMinute: setting(above0(), 'Requests a minute. Not limited unless given.'),
  burstRequests: setting(finite(1), 'Requests at once after a rest. Default: one second of the rate, at least 1.'),
  tokensPerMinute: setting(above0(), 'Tokens a minute. Not limited unless given.'),
  burstTokens: setting(above0(), 'Tokens at once after a rest. Default: one minute of the rate.'),
};

/** `standard`: what is left out has the defaults, and not what the layer around it has. */
function rules(standard: boolean): {
  readonly [rule in keyof Omit<LayerInput, keyof LayerPolicy>]-?: z.ZodOptional<
    z.ZodType<NonNullable<LayerInput[rule]>>
  >;
} {
  const Q: Partial<typeof QUOTA_DEFAULTS> = standard ? QUOTA_DEFAULTS : {};
  const otherwise = standard ? '' : ' Default: as around it.';
  return {
    settle: setting(
      oneOf(['reserved', 'usage']),
      `Whether the provider counts what was reserved, or what was used.${otherwise}`,
      Q.settle,
    ),
    refundOn: setting(
      strict(refundShape(standard)),
      `What comes back when an attempt ends otherwise than by success.${otherwise}`,
    ),
    arrivalMarginMs: setting(
      finite(0),
      `How much closer together requests may arrive than they were sent.${otherwise}`,
      Q.arrivalMarginMs,
    ),
    cooldown: setting(
      cooldownSchema(standard ? COOLDOWN_DEFAULTS : {}),
      `How a pause that the provider asked for is held and left.${otherwise}`,
    ),
    exhaustedMs: setting(
      above0(),
      `How long an account that has run out is left alone, if the provider does not say.${otherwise}`,
      standard ? POLICY_DEFAULTS.exhaustedMs : undefined,
    ),
  };
}

export const layerSchema: z.ZodType<LayerInput> = strict({ ...rates, ...rules(false) });

const account: z.ZodType<AccountInput> = strict({
  ...rates,
  ...rules(true),
  maxWaiting: setting(wholeOrOff(0), 'Requests that may wait in line.', QUOTA_DEFAULTS.maxWaiting),
  maxWaitMs: setting(finiteOrOff(0), 'Longest wait in line.', QUOTA_DEFAULTS.maxWaitMs),
  passShare: setting(
    finite(0),
    'What may pass one that is too large for what there is, as a part of its tokens.',
    POLICY_DEFAULTS.passShare,
  ),
});

export const quotaSchema: z.ZodType<QuotaInput> = strict({
  account: setting(account, 'The layer of all clients that have none of their own, and the line in front of quotas.'),
  clients: setting(named(layerSchema, 'clients to a layer of their own'), 'Clients with an account of their own.'),
});
