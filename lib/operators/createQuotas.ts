import { nonEmpty } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { QuotaPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { Cooldown } from '../limits/Cooldown.ts';
import { QuotaLayer } from '../limits/QuotaLayer.ts';
import type { LayerOptions } from '../limits/QuotaLayer.ts';
import { checkedQuotaRules } from '../limits/QuotaOptions.ts';
import type { CheckedQuotaRules, QuotaRules } from '../limits/QuotaOptions.ts';
import { QuotaRoute } from '../limits/QuotaRoute.ts';
import { observeOn, snapshotOf } from './createQuota.ts';
import { QuotaDesk } from './QuotaDesk.ts';

export interface QuotasOptions extends QuotaRules {
  /** Shared by all models. Default: no such layer. */
  readonly account?: LayerOptions | undefined;
  /** One layer for each model, by its name; `default` for those not listed, each its own. */
  readonly models?: Readonly<Record<string, LayerOptions>> | undefined;
  /** One layer for each tenant, over all models, by its name; `default` for those not listed, each its own. */
  readonly tenants?: Readonly<Record<string, LayerOptions>> | undefined;
}

export interface LocalQuotas {
  /** The quota of one model: its own layer, that of the account, and that of the tenant who asks. */
  of(model: string): QuotaPort;
}

/**
 * Quotas of several models that share an account, and of tenants. `maxWaiting` bounds all of them together. A pause that
 * a provider asks for holds its model only; one model's line does not hold up another's, but where the account itself is
 * short, whoever came first goes first, whatever the model.
 *
 * A tenant is forgotten when nothing of it is left to remember.
 *
 * @throws SluiceError `invalid_option` for a wrong option.
 *
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { createQuotas, throttleByBucket } from 'sluice';
 *
 * const quotas = createQuotas({
 *   account: { requestsPerMinute: 600, tokensPerMinute: 1_000_000 },
 *   models: { 'gpt-5.5': { requestsPerMinute: 480 }, default: { requestsPerMinute: 300 } },
 *   tenants: { default: { requestsPerMinute: 120 }, acme: { requestsPerMinute: 400, burstRequests: 50 } },
 * });
 * of('answer').pipe(throttleByBucket(quotas.of('gpt-5.5'), { tenant: 'acme' })).subscribe(console.log);
 * ```
 */
export function createQuotas(options: QuotasOptions, runtime: Runtime = systemRuntime): LocalQuotas {
  const rules = checkedQuotaRules(options);
  const { account: accountRates, models: modelRates, tenants: tenantRates } = options;
  // Without this a misplaced rate would be no limit at all. An empty `account` says that none is meant.
  if (!accountRates && !modelRates && !tenantRates)
    throw invalidOption('account, models or tenants', 'given', undefined);
  const desk = new QuotaDesk(rules, runtime);
  const layer = (name: string, rates: LayerOptions | undefined): QuotaLayer | undefined =>
    rates && new QuotaLayer(name, rates, rules.arrivalMarginMs, runtime.clock.now());
  // Made to be thrown away: a wrong rate must be found now, not at the first call that meets it.
  for (const part of ['models', 'tenants'] as const) {
    for (const [name, rates] of Object.entries(options[part] ?? {})) layer(`${part}.${name}`, rates);
  }
  const account = layer('account', options.account);
  // Stryker disable next-line StringLiteral: nothing shows the name of this layer
  const tenants = new Tenants((name) => layer('tenant', ratesOf(options.tenants, name)), runtime);
  const models = new Map<string, QuotaPort>();

  return {
    of(model) {
      const known = models.get(nonEmpty('model', model));
      if (known) return known;
      const made = modelQuota(account, layer('model', ratesOf(options.models, model)), tenants, desk, rules);
      models.set(model, made);
      return made;
    },
  };
}

function modelQuota(
  account: QuotaLayer | undefined,
  model: QuotaLayer | undefined,
  tenants: Tenants,
  desk: QuotaDesk,
  rules: CheckedQuotaRules,
): QuotaPort {
  const { runtime } = desk;
  const shared = [account, model].filter((layer) => layer !== undefined);
  const cooldown = new Cooldown(rules.cooldown, runtime.random);
  const reported = model ?? account;
  const open = new QuotaRoute(shared, cooldown, reported);
  return {
    acquire: (request) =>
      desk.acquire(request, (tenant) =>
        tenants.routeOf(tenant, open, (layer) => new QuotaRoute([...shared, layer], cooldown, reported)),
      ),
    observe: (hints) => observeOn(open, desk, hints),
    snapshot: () => snapshotOf(open, open.line.size + tenants.waitingOn(open), runtime),
  };
}

interface Tenant {
  readonly layer: QuotaLayer;
  /** Its ways through the models, by that of the model without a tenant. */
  readonly routes: Map<QuotaRoute, QuotaRoute>;
}

const FIRST_SWEEP = 1024;

/** The tenants that there is something to remember of. */
class Tenants {
  readonly #layerOf: (name: string) => QuotaLayer | undefined;
  readonly #runtime: Runtime;
  readonly #tenants = new Map<string, Tenant>();
  #sweepAt = FIRST_SWEEP;

  constructor(layerOf: (name: string) => QuotaLayer | undefined, runtime: Runtime) {
    this.#layerOf = layerOf;
    this.#runtime = runtime;
  }

  routeOf(name: string | undefined, open: QuotaRoute, make: (layer: QuotaLayer) => QuotaRoute): QuotaRoute {
    const tenant = name === undefined ? undefined : (this.#tenants.get(name) ?? this.#remember(name));
    if (tenant === undefined) return open;
    const known = tenant.routes.get(open);
    if (known) return known;
    const made = make(tenant.layer);
    tenant.routes.set(open, made);
    return made;
  }

  waitingOn(open: QuotaRoute): number {
    let waiting = 0;
    for (const { routes } of this.#tenants.values()) waiting += routes.get(open)?.line.size ?? 0;
    return waiting;
  }

  #remember(name: string): Tenant | undefined {
    const layer = this.#layerOf(name);
    if (layer === undefined) return undefined;
    // Stryker disable next-line EqualityOperator: one more or less
    if (this.#tenants.size >= this.#sweepAt) this.#sweep();
    const tenant = { layer, routes: new Map<QuotaRoute, QuotaRoute>() };
    this.#tenants.set(name, tenant);
    return tenant;
  }

  #sweep(): void {
    const nowMs = this.#runtime.clock.now();
    for (const [name, { layer, routes }] of this.#tenants) {
      const idle = [...routes.values()].every((route) => route.open === 0 && route.line.size === 0);
      if (idle && layer.atRest(nowMs)) this.#tenants.delete(name);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#tenants.size);
  }
}

function ratesOf(rates: Readonly<Record<string, LayerOptions>> | undefined, name: string): LayerOptions | undefined {
  if (rates === undefined) return undefined;
  if (name === '') throw invalidOption('tenant', 'a string that is not empty', name);
  return Object.hasOwn(rates, name) ? rates[name] : Object.hasOwn(rates, 'default') ? rates['default'] : undefined;
}
