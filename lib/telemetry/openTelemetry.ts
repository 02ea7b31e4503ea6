import type { CallObserver } from '../core/CallObserver.ts';
import { composeObservers } from './composeObservers.ts';

/** Reports the calls of a client to OpenTelemetry. */
export function openTelemetry(): CallObserver {
  return composeObservers([]);
}
