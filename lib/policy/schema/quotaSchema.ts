import type { z } from 'zod';
import { COOLDOWN_DEFAULTS } from '../../limits/Cooldown.ts';
import type { CooldownOptions } from '../../limits/Cooldown.ts';
import { QUOTA_DEFAULTS } from '../../limits/QuotaOptions.ts';
import { REFUND_CAUSES, REFUND_DEFAULTS, REFUNDS } from '../../limits/refunds.ts';
import type { Refund, RefundCause } from '../../limits/refunds.ts';
import type { AccountInput, LayerInput, QuotaInput } from '../PolicyInput.ts';
import { above0, finite, finiteOrOff, named, oneOf, setting, strict, wholeOrOff } from './leaves.ts';

type RefundShape = Record<RefundCause, z.ZodOptional<z.ZodType<Refund>>>;

const refundShape = Object.fromEntries(
  REFUND_CAUSES.map((cause) => [
    cause,
    setting(oneOf(REFUNDS), `What comes back after ${cause}.`, REFUND_DEFAULTS[cause] ?? 'none'),
  ]),
) as RefundShape;

const cooldown = strict({
  unhintedMs: setting(finite(0), 'Pause after a rejection that named no wait.', COOLDOWN_DEFAULTS.unhintedMs),
  jitter: setting(finite(0), 'Added to a wait at random, as a share of it.', COOLDOWN_DEFAULTS.jitter),
  trialMs: setting(finite(0), 'Longest time that the first one back goes alone.', COOLDOWN_DEFAULTS.trialMs),
  staggerMs: setting(finite(0), 'Least time between two that come back.', COOLDOWN_DEFAULTS.staggerMs),
  rampMs: setting(finite(0), 'The stagger shrinks to nothing over this time.', COOLDOWN_DEFAULTS.rampMs),
} satisfies Record<keyof CooldownOptions, unknown>);

/** The shape of rates: a tenant has them too. */
export const rates: Readonly<
  Record<'requestsPerMinute' | 'burstRequests' | 'tokensPerMinute' | 'burstTokens', z.ZodOptional<z.ZodType<number>>>
> = {
  requestsPerMinute: setting(above0(), 'Requests a minute. Not limited unless given.'),
  burstRequests: setting(finite(1), 'Requests at once after a rest. Default: one second’s worth, at least 1.'),
  tokensPerMinute: setting(above0(), 'Tokens a minute. Not limited unless given.'),
  burstTokens: setting(above0(), 'Tokens at once after a rest. Default: one minute’s worth.'),
};

const rules = {
  settle: setting(
    oneOf(['reserved', 'usage']),
    'Whether the provider counts what was reserved, or what was used.',
    QUOTA_DEFAULTS.settle,
  ),
  refundOn: setting(strict(refundShape), 'What comes back when an attempt ends otherwise than by success.'),
  arrivalMarginMs: setting(
    finite(0),
    'How much closer together requests may arrive than they were sent.',
    QUOTA_DEFAULTS.arrivalMarginMs,
  ),
  cooldown: setting(cooldown, 'How a pause that the provider asked for is held and left.'),
};

export const layerSchema: z.ZodType<LayerInput> = strict({ ...rates, ...rules });

const account: z.ZodType<AccountInput> = strict({
  ...rates,
  ...rules,
  maxWaiting: setting(wholeOrOff(0), 'Requests that may wait in line.', QUOTA_DEFAULTS.maxWaiting),
  maxWaitMs: setting(finiteOrOff(0), 'Longest wait in line.', QUOTA_DEFAULTS.maxWaitMs),
});

export const quotaSchema: z.ZodType<QuotaInput> = strict({
  account: setting(account, 'The layer of all clients that have none of their own, and the line in front of quotas.'),
  clients: setting(named(layerSchema, 'clients to a layer of their own'), 'Clients with an account of their own.'),
});
