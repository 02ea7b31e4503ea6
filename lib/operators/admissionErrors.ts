import { SluiceError } from '../core/errors.ts';
import type { AdmissionRefusal } from '../limits/admissionRefusals.ts';

export function openError(name: string, retryAfterMs: number): SluiceError {
  return new SluiceError('circuit_open', `the circuit breaker ${name} is open`, { retryAfterMs, while: 'queue' });
}

export function refusedError(
  { code, limit, requested, retryAfterMs, unit }: AdmissionRefusal,
  model: string,
  stage: 'entry' | 'queue',
): SluiceError {
  const messages: Record<AdmissionRefusal['code'], string> = {
    circuit_open: 'no deployment of the model can be asked now',
    cost_too_large: `a cost of ${requested ?? 0} ${unit} can never pass: the quota is ${limit ?? 0} ${unit} a minute`,
    queue_full: `${limit ?? 0} requests are waiting already, and no more may`,
    queue_timeout: `there is no room within ${limit ?? 0} ms`,
    timeout_deadline: `there is no room before the deadline in ${limit ?? 0} ms`,
  };
  return new SluiceError(code, messages[code], { while: stage, limit, requested, retryAfterMs, model });
}
