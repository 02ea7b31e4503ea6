import { zeroOrMore } from '../core/checks.ts';
import type { Cost } from '../core/ports.ts';

/** Tokens, or tokens and requests. A number, and an object that does not say otherwise, is explicit. */
export type CostOption = number | { readonly requests?: number; readonly tokens?: number; readonly explicit?: boolean };

/** Checks a constant now, and a function's answer each time. @throws SluiceError `invalid_option` */
export function costOption(cost: CostOption | (() => CostOption)): Cost | (() => Cost) {
  return typeof cost === 'function' ? () => checkedCost(cost()) : checkedCost(cost);
}

function checkedCost(cost: CostOption): Cost {
  const { requests = 1, tokens = 0, explicit = true } = typeof cost === 'number' ? { tokens: cost } : cost;
  return {
    requests: zeroOrMore('cost.requests', requests),
    tokens: zeroOrMore(typeof cost === 'number' ? 'cost' : 'cost.tokens', tokens),
    explicit,
  };
}
