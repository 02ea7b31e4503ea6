import { positive } from '../core/checks.ts';
import type { LayerOptions } from './QuotaLayer.ts';
import type { QuotaRules } from './QuotaOptions.ts';

export interface QuotaOptions extends LayerOptions, QuotaRules {
  /**
   * Further layers, by name. A request takes its cost from every layer or from none. Rates given beside `layers` make
   * one more, named `account`, before them.
   */
  readonly layers?: Readonly<Record<string, LayerOptions>> | undefined;
  /** The layer that the provider's reports of its limits correct. Default: the last one that is not named `tenant`. */
  readonly reportsTo?: string | undefined;
}

/**
 * All layers that the options name, in order.
 * @throws SluiceError `invalid_option` where no rate is given at all.
 */
export function layersOf(options: QuotaOptions): [string, LayerOptions][] {
  const { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens, layers } = options;
  const own = [requestsPerMinute, burstRequests, tokensPerMinute, burstTokens].some((rate) => rate !== undefined);
  // Without this a misspelled rate would be no limit at all. `layers: {}` says that none is meant.
  if (!own && layers === undefined) positive('requestsPerMinute or tokensPerMinute', NaN);
  const account: LayerOptions = { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens };
  return [...(own ? [['account', account] as [string, LayerOptions]] : []), ...Object.entries(layers ?? {})];
}
