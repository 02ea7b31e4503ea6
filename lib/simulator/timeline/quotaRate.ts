import type { QuotaSettings } from '../../emulator/model/ProviderQuota.ts';
import type { Upstream } from '../scenario/Scenario.ts';

export type QuotaUnit = 'requests' | 'tokens';

/** A limit of a provider; of the account where no model is named. */
export interface QuotaName {
  readonly client: string;
  readonly model: string | undefined;
  readonly unit: QuotaUnit;
}

/** What a limit lets through per minute over time. */
export interface QuotaRate extends QuotaName {
  /** From each of these times on; the first is 0. */
  readonly steps: readonly { readonly fromMs: number; readonly perMinute: number }[];
}

const FIELDS = { requests: 'requestsPerMinute', tokens: 'tokensPerMinute' } as const;

/** All limits that a provider has, less what others use up. */
export function quotaRates(client: string, upstream: Upstream): QuotaRate[] {
  const layers = [undefined, ...Object.keys(upstream.models ?? {})];
  return layers.flatMap((model) =>
    (['requests', 'tokens'] as const).flatMap((unit) => {
      const steps = stepsOf(upstream, model, FIELDS[unit]);
      return steps === undefined ? [] : [{ client, model, unit, steps }];
    }),
  );
}

/** The mean from `fromMs` to `toMs`. */
export function meanRate({ steps }: QuotaRate, fromMs: number, toMs: number): number {
  let sum = 0;
  for (const [i, { fromMs: startMs, perMinute }] of steps.entries()) {
    const endMs = steps[i + 1]?.fromMs ?? Infinity;
    sum += perMinute * Math.max(0, Math.min(toMs, endMs) - Math.max(fromMs, startMs));
  }
  return sum / (toMs - fromMs);
}

function stepsOf(
  upstream: Upstream,
  model: string | undefined,
  field: 'requestsPerMinute' | 'tokensPerMinute',
): QuotaRate['steps'] | undefined {
  const limits: QuotaSettings | undefined = model === undefined ? upstream : upstream.models?.[model];
  const first = limits?.[field];
  if (first === undefined) return undefined;
  const free = 1 - (limits?.noiseShare ?? 0);
  const changes = (upstream.changes ?? [])
    .map(({ atMs, account, models }) => ({
      fromMs: atMs,
      perMinute: (model === undefined ? account : models?.[model])?.[field],
    }))
    .filter((change): change is { fromMs: number; perMinute: number } => change.perMinute !== undefined)
    .sort((a, b) => a.fromMs - b.fromMs);
  return [{ fromMs: 0, perMinute: first }, ...changes].map(({ fromMs, perMinute }) => ({
    fromMs,
    perMinute: free * perMinute,
  }));
}
