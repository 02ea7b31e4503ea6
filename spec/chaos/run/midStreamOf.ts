import { modelPolicy } from '../../../lib/policy/modelPolicy.ts';
import type { GatewayMidStream } from '../../../lib/policy/Policy.ts';
import type { CallTrace } from './Fact.ts';

/** What becomes of the stream of a call when an attempt at `model` breaks off. */
export function midStreamOf({ planned, policy }: CallTrace, model: string = planned.model): GatewayMidStream {
  const { by, api, midStream } = planned;
  if (api === 'complete' || by === 'fetch' || by === 'call') return 'fail';
  if (by === 'gateway') return midStream ?? policy.gateway.midStream ?? modelPolicy(policy, planned.model).midStream;
  return modelPolicy(policy, model).midStream;
}
