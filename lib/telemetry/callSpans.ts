import type { CallScope } from '../core/CallScope.ts';
import { CallSpan } from './CallSpan.ts';

/** The span of the call that a frame belongs to, while it runs. */
export function callSpanOf(scope: CallScope | undefined): CallSpan | undefined {
  const span = scope?.call.observed;
  return span instanceof CallSpan && !span.ended ? span : undefined;
}
