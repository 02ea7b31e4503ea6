import type { Observable } from 'rxjs';
import { oneOf } from '../core/checks.ts';
import type { RateLimitHints } from '../core/hints.ts';
import type { Grant, QuotaPort, QuotaRequest, QuotaSnapshot } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { Cooldown } from '../limits/Cooldown.ts';
import { QuotaLayer } from '../limits/QuotaLayer.ts';
import type { LayerOptions } from '../limits/QuotaLayer.ts';
import { layersOf } from '../limits/layersOf.ts';
import type { QuotaOptions } from '../limits/layersOf.ts';
import { checkedQuotaRules } from '../limits/QuotaOptions.ts';
import { QuotaRoute } from '../limits/QuotaRoute.ts';
import { QuotaDesk } from './QuotaDesk.ts';

export type { QuotaOptions } from '../limits/layersOf.ts';

/** A quota of this process. */
export interface LocalQuota extends QuotaPort {
  /**
   * Changes the rates of one layer, for those who wait too. Levels stay, as far as they fit.
   * @throws SluiceError `invalid_option` for a wrong rate, a layer that is not there, and a rate of a kind that the
   * layer was made without.
   */
  setRate(layer: string, rates: LayerOptions): void;
}

/**
 * A quota of this process: layered token buckets in requests and tokens per minute, with a line before them. Give it to
 * {@link throttleByBucket}; everything that is given the same one shares it.
 *
 * First come, first served; nobody overtakes one that waits. A pause that the provider asks for holds everyone;
 * afterwards the first one goes alone, and the others follow it one by one. One timer while somebody waits, none
 * otherwise.
 *
 * `acquire` emits as errors: `cost_too_large` for an explicit cost above one minute's rate; `queue_full`;
 * `queue_timeout` and `timeout_deadline`, on entry if the wait is known not to fit; all but the first with
 * `retryAfterMs`. `invalid_option` for a cost that is not finite and 0 or more.
 *
 * @param options - Rates of one layer, or several `layers`, and rules for the whole; see {@link QuotaOptions}.
 * @throws SluiceError `invalid_option` for a wrong option, and where no rate is given at all.
 *
 * @example Two layers
 * ```ts
 * import { of } from 'rxjs';
 * import { createQuota, throttleByBucket } from 'sluice';
 *
 * const quota = createQuota({
 *   layers: {
 *     account: { requestsPerMinute: 60, burstRequests: 8, tokensPerMinute: 1_000_000 },
 *     model: { requestsPerMinute: 48, burstRequests: 6 },
 *   },
 * });
 * of('answer').pipe(throttleByBucket(quota, { cost: 1200 })).subscribe(console.log);
 * ```
 */
export function createQuota(options: QuotaOptions, runtime: Runtime = systemRuntime): LocalQuota {
  const rules = checkedQuotaRules(options);
  const nowMs = runtime.clock.now();
  const layers = layersOf(options).map(([name, rates]) => new QuotaLayer(name, rates, rules.arrivalMarginMs, nowMs));
  const names = layers.map(({ name }) => name);
  const { reportsTo = names.findLast((name) => name !== 'tenant') } = options;
  if (reportsTo !== undefined) oneOf('reportsTo', reportsTo, names);
  const reported = layers.find(({ name }) => name === reportsTo);
  const cooldown = new Cooldown(rules.cooldown, runtime.random);
  const route = new QuotaRoute(layers, cooldown, reported);
  const desk = new QuotaDesk(rules, runtime);

  return {
    acquire: (request: QuotaRequest): Observable<Grant> => desk.acquire(request, () => route),
    observe: (hints) => observeOn(route, desk, hints),
    snapshot: () => snapshotOf(route, desk.waiting, runtime),
    setRate(layer, rates) {
      oneOf('layer', layer, names);
      (layers.find(({ name }) => name === layer) as QuotaLayer).setRate(runtime.clock.now(), rates);
      desk.serve();
    },
  };
}

/** A report or hint that came by another way than a grant. */
export function observeOn(route: QuotaRoute, desk: QuotaDesk, hints: RateLimitHints): void {
  const nowMs = desk.runtime.clock.now();
  route.report(nowMs, hints, undefined);
  route.cooldown.hint(nowMs, hints.retryAfterMs ?? 0);
  desk.serve();
}

export function snapshotOf(route: QuotaRoute, waiting: number, runtime: Runtime): QuotaSnapshot {
  const nowMs = runtime.clock.now();
  return {
    waiting,
    cooldownMs: route.cooldown.certainMs(nowMs),
    layers: route.layers.map((layer) => layer.snapshot(nowMs)),
  };
}
