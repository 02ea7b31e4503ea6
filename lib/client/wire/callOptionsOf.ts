import { invalidRequest } from '../../core/errors.ts';
import type { CallOptions } from '../CallOptions.ts';

const KNOWN = ['conversation', 'tenant', 'priority', 'deadline-ms'];

/**
 * What the headers of a request say of its call.
 *
 * @param ours - Those headers, by the part behind `x-sluice-`.
 * @param others - Names that there may be besides.
 * @throws SluiceError `invalid_request`
 */
export function callOptionsOf(ours: ReadonlyMap<string, string>, others: readonly string[] = []): CallOptions {
  const known = [...KNOWN, ...others];
  for (const [name, value] of ours) {
    if (!known.includes(name)) throw invalidRequest(`x-sluice-${name}`, `one of x-sluice-${known.join(', -')}`, value);
    if (value === '') throw invalidRequest(`x-sluice-${name}`, 'a string that is not empty', value);
  }
  return {
    conversation: ours.get('conversation'),
    tenant: ours.get('tenant'),
    priority: ours.get('priority'),
    deadlineMs: deadlineOf(ours.get('deadline-ms')),
  };
}

function deadlineOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const deadlineMs = Number(value);
  if (deadlineMs > 0) return deadlineMs;
  throw invalidRequest('x-sluice-deadline-ms', 'milliseconds above 0', value);
}
