import { estimateCost } from '../../wire/estimate.ts';
import type { CostEstimate } from '../../wire/estimate.ts';

type Fields = Readonly<Record<string, unknown>>;

interface KeptEstimate {
  readonly limit: unknown;
  readonly estimate: CostEstimate;
}

/**
 * `estimateCost` for requests as they are drawn, of which nothing but the messages and the output limit counts: what was
 * estimated of messages that are asked again is not estimated again.
 */
export function keptEstimates(): (request: Fields) => CostEstimate {
  const kept = new WeakMap<object, KeptEstimate>();
  return (request) => {
    const messages = request['messages'] as object;
    const limit = request['max_completion_tokens'];
    const known = kept.get(messages);
    if (known !== undefined && known.limit === limit) return known.estimate;
    const estimate = estimateCost(request);
    if (Object.isFrozen(messages)) kept.set(messages, { limit, estimate });
    return estimate;
  };
}
