import { invalidRequest } from '../../core/errors.ts';
import type { CallOptions } from '../CallOptions.ts';
import type { FetchCall } from './readFetchCall.ts';

const KNOWN = ['conversation', 'tenant', 'priority', 'deadline-ms'];

/**
 * What the headers of a request say of its call.
 * @throws SluiceError `invalid_request`
 */
export function callOptionsOf({ ours, init }: FetchCall): CallOptions {
  for (const [name, value] of ours) {
    if (!KNOWN.includes(name)) throw invalidRequest(`x-sluice-${name}`, `one of x-sluice-${KNOWN.join(', -')}`, value);
    if (value === '') throw invalidRequest(`x-sluice-${name}`, 'a string that is not empty', value);
  }
  return {
    conversation: ours.get('conversation'),
    tenant: ours.get('tenant'),
    priority: ours.get('priority'),
    deadlineMs: deadlineOf(ours.get('deadline-ms')),
    signal: init.signal ?? undefined,
    midStream: 'fail',
  };
}

function deadlineOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const deadlineMs = Number(value);
  if (deadlineMs > 0) return deadlineMs;
  throw invalidRequest('x-sluice-deadline-ms', 'milliseconds above 0', value);
}
