import type { Distribution } from '../../emulator/model/distribution.ts';
import { PROVIDER_DEFAULTS } from '../../emulator/model/settings.ts';
import type { ModelSettings } from '../../emulator/model/settings.ts';
import { SCENARIO_DEFAULTS } from '../scenario/Scenario.ts';
import type { Load, Scenario } from '../scenario/Scenario.ts';

const MINUTE_MS = 60_000;

/** On average; for workers about so many, if nothing holds them up. */
export function callsPerMinute({ arrivals, model }: Load, upstreams: Scenario['upstreams']): number {
  switch (arrivals.kind) {
    case 'constant':
    case 'poisson':
    case 'daily':
      return arrivals.perMinute;
    case 'bursts':
      return (arrivals.size * MINUTE_MS) / arrivals.everyMs;
    case 'workers': {
      const {
        firstTokenMs = PROVIDER_DEFAULTS.firstTokenMs,
        tokenMs = PROVIDER_DEFAULTS.tokenMs,
        tokens,
      } = settingsOf(model, upstreams);
      const answerMs = meanOf(tokens === 'max' ? PROVIDER_DEFAULTS.tokens : (tokens ?? PROVIDER_DEFAULTS.tokens));
      const turnMs = meanOf(arrivals.thinkMs ?? 0) + meanOf(firstTokenMs) + answerMs * meanOf(tokenMs);
      return (arrivals.workers * MINUTE_MS) / Math.max(1, turnMs);
    }
    case 'trace': {
      const times = arrivals.calls.map(({ atMs }) => atMs);
      const spanMs = times.reduce((most, atMs) => Math.max(most, atMs), MINUTE_MS);
      return (times.length * MINUTE_MS) / spanMs;
    }
  }
}

/** Tokens that a provider counts for a call, on average: its prompt, and the output that it reserves. */
export function tokensPerCall({ model, promptTokens, outputLimit }: Load, upstreams: Scenario['upstreams']): number {
  const { reservedOutputTokens = PROVIDER_DEFAULTS.reservedOutputTokens } = settingsOf(model, upstreams);
  return meanOf(promptTokens ?? SCENARIO_DEFAULTS.promptTokens) + (outputLimit ?? reservedOutputTokens);
}

/** Of the first provider that lists the model, or of the first one. */
function settingsOf(model: string, upstreams: Scenario['upstreams']): ModelSettings {
  const providers = Object.values(upstreams);
  const own = providers.find(({ models = {} }) => Object.hasOwn(models, model)) ?? providers[0] ?? {};
  return { ...own, ...own.models?.[model] };
}

/** Without the tail that `max` cuts off. */
function meanOf(distribution: Distribution): number {
  if (typeof distribution === 'number') return distribution;
  const { median, sigma, max = Infinity } = distribution;
  return Math.min(max, median * Math.exp(sigma ** 2 / 2));
}
