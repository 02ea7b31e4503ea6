import type { CallStart } from '../core/CallObserver.ts';
import { SPAN_ATTRIBUTES } from './spanNames.ts';

/**
 * What kind of call it is, by the words of the GenAI conventions. A call that brings its own transport says so by its
 * `attributes`, under the name of the convention; `chat` otherwise.
 */
export function operationOf({ attributes }: Pick<CallStart, 'attributes'>): string {
  const named = attributes[SPAN_ATTRIBUTES.operation];
  return typeof named === 'string' ? named : 'chat';
}
