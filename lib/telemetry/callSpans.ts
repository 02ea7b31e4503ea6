import type { CallScope, CallState } from '../core/CallScope.ts';
import type { CallSpan } from './CallSpan.ts';

const spans = new WeakMap<CallState, CallSpan>();

/** The span of the call that a frame belongs to, while it runs. */
export function callSpanOf(scope: CallScope | undefined): CallSpan | undefined {
  const span = scope && spans.get(scope.call);
  return span?.ended ? undefined : span;
}

export function rememberCallSpan(scope: CallScope, span: CallSpan): void {
  spans.set(scope.call, span);
}
