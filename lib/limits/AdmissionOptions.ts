import { nonEmpty, positive, wholeNumber, wholeOrInfinity, zeroOrMore, zeroOrInfinity } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { AimdOptions } from './Aimd.ts';
import type { CircuitBreakerOptions } from './breakerRules.ts';
import type { CooldownOptions } from './Cooldown.ts';
import type { LayerOptions } from './QuotaLayer.ts';
import type { QuotaRules } from './QuotaOptions.ts';

/** How the provider behind a layer counts, and how it is approached. See {@link QuotaRules}. */
export type ProviderRules = Pick<QuotaRules, 'settle' | 'refundOn' | 'arrivalMarginMs'> & {
  readonly cooldown?: CooldownOptions | undefined;
  /** A deployment whose quota is exhausted is left alone so long, if the provider did not say. Above 0. Default: 60,000. */
  readonly exhaustedMs?: number | undefined;
};

/** The line in front of all quotas. See {@link QuotaRules}. */
export type LineOptions = Pick<QuotaRules, 'maxWaiting' | 'maxWaitMs'> & {
  /**
   * What may pass a waiter that is too large for what there is, as a part of its own tokens: it is held up by no more than
   * that part of the time its tokens take to come in. 0 or more. Default: 0.5.
   */
  readonly passShare?: number | undefined;
};

/** One place that serves a model: a key, a region, a vendor. */
export interface DeploymentOptions {
  /** Names the client that it is asked through. Default: `'main'`. */
  readonly client?: string | undefined;
  /** The name the model has there. Default: the name that was asked for. */
  readonly model?: string | undefined;
  /** A layer of its own, and the rules of its provider. Rules default to those of the account. */
  readonly quota?: (LayerOptions & ProviderRules) | undefined;
  /** Default: that of the model. */
  readonly breaker?: CircuitBreakerOptions | undefined;
  /** Default: that of the model. */
  readonly concurrency?: ConcurrencyOptions | undefined;
}

/** A limit that stands, or one that finds its size. */
export type ConcurrencyOptions =
  | ({ readonly limit: number } & { readonly [K in keyof AimdOptions]?: undefined })
  | (AimdOptions & { readonly limit?: undefined });

export interface ModelAdmissionOptions {
  /** The client of deployments that name none. Default: `'main'`. */
  readonly client?: string | undefined;
  /** Where the model is served; the least loaded is taken. Default: one, at `client`. */
  readonly deployments?: readonly DeploymentOptions[] | undefined;
  /** The layer of the model, over all its deployments. */
  readonly quota?: LayerOptions | undefined;
  /** For deployments that have none of their own. */
  readonly breaker?: CircuitBreakerOptions | undefined;
  /** For deployments that have none of their own. Default: no limit. */
  readonly concurrency?: ConcurrencyOptions | undefined;
}

/** What one tenant gets, over all models. */
export interface TenantAdmissionOptions extends LayerOptions {
  /** Whole, at least 1, or `Infinity`. Default: `Infinity`. */
  readonly maxInFlight?: number | undefined;
  /** Slots that it can always have; lent to others while it does not want them. Whole, 0 or more. Default: 0. */
  readonly reservedInFlight?: number | undefined;
  /** Its part of what is short, next to those of others. Above 0. Default: 1. */
  readonly weight?: number | undefined;
}

/** A policy, or the parts of one that say who may be sent when. */
export interface AdmissionOptions {
  /** Calls in flight, all together. Whole, at least 1, or `Infinity`. Default: `Infinity`. */
  readonly maxInFlight?: number | undefined;
  readonly quota?:
    | {
        /** The layer of all clients that have none of their own, and the bounds of the line in front of everything. */
        readonly account?: (LayerOptions & LineOptions & ProviderRules) | undefined;
        /** Clients with an account of their own. */
        readonly clients?: Readonly<Record<string, LayerOptions & ProviderRules>> | undefined;
      }
    | undefined;
  /** By name; `default` for those not listed, each its own. Default: one deployment at `main`, without a quota. */
  readonly models?: Readonly<Record<string, ModelAdmissionOptions>> | undefined;
  /** By name; `default` for those not listed, each its own. Calls without a tenant are bound by none of them. */
  readonly tenants?: Readonly<Record<string, TenantAdmissionOptions>> | undefined;
  readonly priorities?:
    | {
        /** The most urgent first, which is also the priority of calls that name none. Default: interactive, batch. */
        readonly order?: readonly string[] | undefined;
        /** Ceilings: calls of a priority in flight, over all models. Default: `Infinity`. */
        readonly levels?: Readonly<Record<string, { readonly maxInFlight?: number | undefined }>> | undefined;
        /**
         * A priority whose oldest waiter has waited this long, times its distance from the first, gets one turn in eight.
         * 0 or more, or `Infinity` for never. Default: 10,000.
         */
        readonly ageingMs?: number | undefined;
      }
    | undefined;
}

export const ADMISSION_DEFAULTS = {
  maxInFlight: Infinity as number,
  client: 'main',
  priorities: ['interactive', 'batch'] as readonly string[],
  tenantMaxInFlight: Infinity as number,
  reservedInFlight: 0,
  weight: 1,
  ageingMs: 10_000,
  passShare: 0.5,
  exhaustedMs: 60_000,
} as const;

export interface Level {
  readonly name: string;
  readonly maxInFlight: number;
}

export interface CheckedTenantRules {
  readonly maxInFlight: number;
  readonly reservedInFlight: number;
  readonly weight: number;
  readonly rates: LayerOptions;
}

export interface CheckedAdmissionRules {
  readonly maxInFlight: number;
  readonly levels: readonly Level[];
  readonly ageingMs: number;
  readonly passShare: number;
}

/** @throws SluiceError `invalid_option` */
export function checkedAdmissionRules(options: AdmissionOptions): CheckedAdmissionRules {
  const defaults = ADMISSION_DEFAULTS;
  const order = options.priorities?.order ?? defaults.priorities;
  if (order.length === 0) throw invalidOption('priorities.order', 'a list of at least one name', order);
  const levels = order.map((name) => ({
    name: nonEmpty('priorities.order', name),
    maxInFlight: wholeOrInfinity(
      `priorities.${name}.maxInFlight`,
      own(options.priorities?.levels, name)?.maxInFlight ?? Infinity,
    ),
  }));
  return {
    maxInFlight: wholeOrInfinity('maxInFlight', options.maxInFlight ?? defaults.maxInFlight),
    levels,
    ageingMs: zeroOrInfinity('priorities.ageingMs', options.priorities?.ageingMs ?? defaults.ageingMs),
    passShare: zeroOrMore('passShare', options.quota?.account?.passShare ?? defaults.passShare),
  };
}

/** @throws SluiceError `invalid_option` */
export function checkedTenantRules(name: string, options: TenantAdmissionOptions): CheckedTenantRules {
  const defaults = ADMISSION_DEFAULTS;
  const { maxInFlight, reservedInFlight, weight, ...rates } = options;
  const at = `tenants.${name}`;
  return {
    maxInFlight: wholeOrInfinity(`${at}.maxInFlight`, maxInFlight ?? defaults.tenantMaxInFlight),
    reservedInFlight: wholeNumber(`${at}.reservedInFlight`, reservedInFlight ?? defaults.reservedInFlight, 0),
    weight: positive(`${at}.weight`, weight ?? defaults.weight),
    rates,
  };
}

/** What is named, or else `default`. */
export function own<V>(record: Readonly<Record<string, V>> | undefined, name: string): V | undefined {
  if (record === undefined) return undefined;
  return Object.hasOwn(record, name) ? record[name] : Object.hasOwn(record, 'default') ? record['default'] : undefined;
}
