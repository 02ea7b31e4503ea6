import { SluiceError } from '../core/errors.ts';
import type { SlotRefusal } from './ConcurrencyLimit.ts';

export function slotRefused(
  { code, retryAfterMs }: SlotRefusal,
  request: { readonly model?: string | undefined },
): SluiceError {
  const message = {
    queue_full: 'as many wait for a slot of the concurrency limit as may',
    queue_timeout: 'no slot of the concurrency limit came free in time',
    timeout_deadline: 'the deadline came before a slot of the concurrency limit',
  }[code];
  return new SluiceError(code, message, { retryAfterMs, model: request.model, while: 'queue' });
}
