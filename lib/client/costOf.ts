import { zeroOrMore } from '../core/checks.ts';
import type { Cost } from '../core/ports.ts';
import { estimateCost } from '../wire/estimate.ts';
import type { CallPlan, Fields } from './CallPlan.ts';
import type { Engine } from './Engine.ts';

export interface PlannedCost extends Cost {
  readonly inputTokens: number;
}

/** What one attempt takes: named by the call, or by the hook, or else an estimate. */
export function costOf<T>(
  engine: Engine,
  { options }: CallPlan<T>,
  request: Fields | undefined,
  model: string,
): PlannedCost {
  if (options.cost !== undefined) return planned('cost', options.cost, true);
  if (request === undefined) return { requests: 1, tokens: 0, explicit: false, inputTokens: 0 };
  const { estimate } = engine.options;
  return estimate === undefined
    ? { requests: 1, ...estimateCost(request) }
    : planned('estimate', estimate(request, model), false);
}

function planned(
  name: string,
  cost:
    | number
    | {
        readonly requests?: number;
        readonly tokens?: number;
        readonly explicit?: boolean;
        readonly inputTokens?: number;
      },
  explicit: boolean,
): PlannedCost {
  const parts = typeof cost === 'number' ? { tokens: cost } : cost;
  const tokens = zeroOrMore(`${name}.tokens`, parts.tokens ?? 0);
  return {
    requests: zeroOrMore(`${name}.requests`, parts.requests ?? 1),
    tokens,
    explicit: parts.explicit ?? explicit,
    inputTokens: zeroOrMore(`${name}.inputTokens`, parts.inputTokens ?? tokens),
  };
}
