import { SluiceError } from '../../core/errors.ts';
import type { BreakerState } from '../../core/events.ts';

export interface WaitBound {
  readonly code: 'queue_timeout' | 'timeout_deadline';
  readonly limitMs: number;
}

export function tooLarge(unit: 'requests' | 'tokens', requested: number, limit: number): SluiceError {
  const message = `a cost of ${requested} ${unit} can never pass: the quota is ${limit} ${unit} a minute`;
  return new SluiceError('cost_too_large', message, { while: 'entry', limit, requested });
}

export function lineFull(limit: number, retryAfterMs: number): SluiceError {
  const message = `${limit} requests are waiting for the quota already, and no more may`;
  return new SluiceError('queue_full', message, { while: 'queue', limit, retryAfterMs });
}

export function noRoom({ code, limitMs }: WaitBound, retryAfterMs: number | undefined): SluiceError {
  const bound = code === 'queue_timeout' ? `within ${limitMs} ms` : `before the deadline in ${limitMs} ms`;
  const message = `the shared quota has no room ${bound}`;
  return new SluiceError(code, message, { while: 'queue', limit: limitMs, retryAfterMs });
}

/** `reason` is a word of the protocol or the system: never an address, a user or a password. */
export function storeUnavailable(reason: string): SluiceError {
  return new SluiceError('limiter_unavailable', `the shared store is not there: ${reason}`, { while: 'queue' });
}

export function storeClosed(): SluiceError {
  return new SluiceError('closed', 'the store has been closed', { while: 'queue' });
}

export function circuitOpen(
  breaker: string,
  state: BreakerState,
  leftMs: number,
  stage: 'entry' | 'queue',
  model: string | undefined,
): SluiceError {
  const message = `the circuit breaker ${breaker} is ${state.replace('_', '-')}`;
  return new SluiceError('circuit_open', message, {
    retryAfterMs: Math.max(1, Math.ceil(leftMs)),
    model,
    while: stage,
  });
}
