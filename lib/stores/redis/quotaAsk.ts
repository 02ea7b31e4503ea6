import { zeroOrInfinity, zeroOrMore } from '../../core/checks.ts';
import type { QuotaRequest } from '../../core/ports.ts';
import type { LayerCost } from '../../limits/QuotaLayer.ts';
import type { RouteOp } from './QuotaCall.ts';
import type { RoutePlan } from './QuotaLayers.ts';
import type { QuotaWaiter } from './QuotaWaiter.ts';
import { tooLarge } from './refusals.ts';
import type { WaitBound } from './refusals.ts';

/** A wait that JSON has a number for. */
const ENDLESS_US = 1e15;

/**
 * What a request takes; a guess is clamped to what can pass.
 * @throws SluiceError `cost_too_large`, and `invalid_option` for a cost that is not finite and 0 or more.
 */
export function costOf(plan: RoutePlan, { cost }: QuotaRequest): LayerCost {
  const asked = {
    requests: zeroOrMore('cost.requests', cost.requests),
    tokens: zeroOrMore('cost.tokens', cost.tokens),
  };
  for (const unit of ['requests', 'tokens'] as const) {
    const limit = plan.most[unit];
    if (asked[unit] > limit && cost.explicit) throw tooLarge(unit, asked[unit], limit);
    asked[unit] = Math.min(asked[unit], limit);
  }
  return asked;
}

/** What ends its wait. Below 0: there is no time left at all. */
export function boundOf(plan: RoutePlan, request: QuotaRequest, nowMs: number): WaitBound {
  const { maxWaitMs = plan.own.maxWaitMs, deadlineAtMs = Infinity } = request;
  const leftMs = deadlineAtMs - nowMs;
  if (leftMs > zeroOrInfinity('maxWaitMs', maxWaitMs)) return { code: 'queue_timeout', limitMs: maxWaitMs };
  // At the deadline itself there is no time left for an answer.
  return { code: 'timeout_deadline', limitMs: leftMs > 0 ? leftMs : -1 };
}

/** Asks for a grant or a place in line, and for `spare` more. */
export function enterOp(
  { id, cost, expiresAtMs }: QuotaWaiter,
  plan: RoutePlan,
  nowMs: number,
  spare: number,
): RouteOp {
  // Reserved tokens may come back early: then only the wait itself can tell.
  const limitMs = plan.own.settle === 'usage' ? Infinity : expiresAtMs - nowMs;
  const limitUs = Math.min(ENDLESS_US, Math.max(0, Math.floor(limitMs * 1000)));
  return ['enter', id, cost.requests, cost.tokens, limitUs, spare, cost.tokens];
}
