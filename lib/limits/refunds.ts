import { oneOf } from '../core/checks.ts';
import { invalidOption, UPSTREAM_CODES } from '../core/errors.ts';
import type { UpstreamErrorCode } from '../core/errors.ts';
import type { Outcome } from '../core/outcome.ts';

/** What comes back of a reservation. */
export type Refund = 'all' | 'requests' | 'tokens' | 'none';

export const REFUNDS: readonly Refund[] = ['all', 'requests', 'tokens', 'none'];

/**
 * How an attempt ended: `unsent`: cancelled before it was dispatched; `unanswered`: the connection failed before a
 * response began; `cancelled`: by the caller after dispatch; else the code of its failure.
 */
export type RefundCause = 'unsent' | 'unanswered' | 'cancelled' | UpstreamErrorCode;

export type RefundRules = { readonly [cause in RefundCause]?: Refund | undefined };

/** Causes that are not listed refund nothing. A 429 above all: providers count it, and its tokens would be phantoms. */
export const REFUND_DEFAULTS: RefundRules = {
  unsent: 'all',
  unanswered: 'all',
  server_error: 'tokens',
  overloaded: 'tokens',
};

export const REFUND_CAUSES: readonly RefundCause[] = ['unsent', 'unanswered', 'cancelled', ...UPSTREAM_CODES];

/** @throws SluiceError `invalid_option` if a cause or a refund is not one of those above. */
export function checkedRefunds(rules: RefundRules): RefundRules {
  for (const [cause, refund] of Object.entries(rules)) {
    if (!(REFUND_CAUSES as readonly string[]).includes(cause)) {
      throw invalidOption('refundOn', `keyed by ${REFUND_CAUSES.join(', ')}`, cause);
    }
    if (refund !== undefined) oneOf(`refundOn.${cause}`, refund, REFUNDS);
  }
  return rules;
}

/** `answered`: a response had begun. */
export function refundFor(outcome: Outcome, answered: boolean, rules: RefundRules): Refund {
  const cause = causeOf(outcome, answered);
  // Stryker disable next-line ConditionalExpression: there is no rule for no cause
  return cause === undefined ? 'none' : (rules[cause] ?? REFUND_DEFAULTS[cause] ?? 'none');
}

function causeOf(outcome: Outcome, answered: boolean): RefundCause | undefined {
  if (outcome.kind === 'success') return undefined;
  if (outcome.kind === 'dropped') return outcome.dispatched ? 'cancelled' : 'unsent';
  const { code, status } = outcome.error;
  if (code === 'connection' && !answered && status === undefined) return 'unanswered';
  return code as UpstreamErrorCode;
}
