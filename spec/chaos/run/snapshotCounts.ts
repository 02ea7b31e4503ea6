import type { Sluice } from '../../../lib/index.ts';

/** What clients still count, by what it is; all of it is 0 in those at rest. */
export function snapshotCounts(sluices: readonly Sluice[]): Record<string, number> {
  const counts: Record<string, number> = {};
  const count = (what: string, ...values: readonly number[]): void => {
    // Below 0 is as wrong as above it, and must not make up for it.
    for (const value of values) counts[what] = (counts[what] ?? 0) + Math.abs(value);
  };
  for (const sluice of sluices) {
    const { calls, callsByTenant, conversations, admission } = sluice.snapshot();
    const models = Object.values(admission.models);
    const tenants = Object.values(admission.tenants);
    count('calls of the snapshot', calls, ...Object.values(callsByTenant));
    count('lanes of conversations', conversations.conversations, conversations.waiting);
    count('attempts in flight', admission.inFlight);
    count('attempts that wait', admission.waiting, ...models.map(({ waiting }) => waiting));
    const deployments = models.flatMap((model) => model.deployments);
    count('attempts in flight of a deployment', ...deployments.map(({ inFlight }) => inFlight));
    count(
      'attempts in flight or waiting of a tenant',
      ...tenants.flatMap(({ inFlight, waiting }) => [inFlight, waiting]),
    );
    count('attempts in flight of a priority', ...Object.values(admission.priorities).map(({ inFlight }) => inFlight));
  }
  return counts;
}
