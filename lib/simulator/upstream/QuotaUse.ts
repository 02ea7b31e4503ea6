import type { QuotaSettings } from '../../emulator/model/ProviderQuota.ts';
import type { Upstream } from '../scenario/Scenario.ts';

const MINUTE_MS = 60_000;

/** What was taken of the limits of one provider, as a part of what they would have let through by then. */
export class QuotaUse {
  readonly #upstream: Upstream;
  readonly #taken = new Map<string | undefined, { requests: number; tokens: number; untilMs: number }>();

  constructor(upstream: Upstream) {
    this.#upstream = upstream;
  }

  /** A request that was let through. */
  admitted(model: string, tokens: number, atMs: number): void {
    this.#take(undefined, tokens, atMs);
    this.#take(model, tokens, atMs);
  }

  /** The highest part that was taken of any limit, from 0 to 1; undefined where there is no limit. */
  get share(): number | undefined {
    const shares: number[] = [];
    for (const [model, { requests, tokens, untilMs }] of this.#taken) {
      const limits = model === undefined ? this.#upstream : this.#upstream.models?.[model];
      if (limits === undefined) continue;
      const changes = this.#changesOf(model);
      const requestsLeft = room(
        limits,
        changes,
        untilMs,
        'requestsPerMinute',
        (rate) => limits.burstRequests ?? Math.max(1, rate / 60),
      );
      const tokensLeft = room(limits, changes, untilMs, 'tokensPerMinute', (rate) => limits.burstTokens ?? rate);
      if (requestsLeft !== undefined) shares.push(requests / requestsLeft);
      if (tokensLeft !== undefined) shares.push(tokens / tokensLeft);
    }
    return shares.length === 0 ? undefined : Math.min(1, Math.max(...shares));
  }

  #take(layer: string | undefined, tokens: number, atMs: number): void {
    let taken = this.#taken.get(layer);
    if (taken === undefined) this.#taken.set(layer, (taken = { requests: 0, tokens: 0, untilMs: 0 }));
    taken.requests++;
    taken.tokens += tokens;
    taken.untilMs = atMs;
  }

  #changesOf(model: string | undefined): readonly (readonly [atMs: number, limits: QuotaSettings])[] {
    return (this.#upstream.changes ?? []).flatMap(({ atMs, account, models }) => {
      const limits = model === undefined ? account : models?.[model];
      return limits === undefined ? [] : [[atMs, limits] as const];
    });
  }
}

/** What a limit lets through up to `untilMs`: its burst, and its rate for so long. */
function room(
  limits: QuotaSettings,
  changes: readonly (readonly [number, QuotaSettings])[],
  untilMs: number,
  name: 'requestsPerMinute' | 'tokensPerMinute',
  burstOf: (perMinute: number) => number,
): number | undefined {
  let perMinute = limits[name];
  if (perMinute === undefined) return undefined;
  const free = 1 - (limits.noiseShare ?? 0);
  let total = burstOf(perMinute);
  let fromMs = 0;
  for (const [atMs, changed] of changes) {
    if (atMs >= untilMs) break;
    total += (free * perMinute * (atMs - fromMs)) / MINUTE_MS;
    perMinute = changed[name] ?? perMinute;
    fromMs = atMs;
  }
  return total + (free * perMinute * Math.max(0, untilMs - fromMs)) / MINUTE_MS;
}
