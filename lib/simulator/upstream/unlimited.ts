import type { Upstream } from '../scenario/Scenario.ts';

const LIMITS = {
  requestsPerMinute: undefined,
  burstRequests: undefined,
  tokensPerMinute: undefined,
  burstTokens: undefined,
  noiseShare: undefined,
  maxConcurrent: undefined,
} as const;

/** The provider with neither limits nor faults: how fast it answers is all that is left. */
export function unlimited(upstream: Upstream): Upstream {
  const models = Object.entries(upstream.models ?? {}).map(([name, model]) => [name, { ...model, ...LIMITS }] as const);
  return {
    ...upstream,
    ...LIMITS,
    ...(upstream.models && { models: Object.fromEntries(models) }),
    script: [],
    randomFaults: [],
    outages: [],
    changes: [],
  };
}
