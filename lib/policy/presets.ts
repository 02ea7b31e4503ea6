import type { PolicyInput, PresetName } from './PolicyInput.ts';

export type Preset = Omit<PolicyInput, 'preset'>;

/**
 * Policies to start from; `preset: firstAid` in a policy puts its own values over them.
 *
 * - `firstAid`: the published first-aid settings for a service that 429s are taking down.
 * - `interactive`: people wait. Few and short retries, a deadline of 15 s, batch work kept to a quarter of the slots.
 * - `batch`: nobody waits. Long lines, long hints and long waits, so that everything is answered in the end.
 *
 * @example
 * ```ts
 * import { parsePolicy, presets } from 'sluice';
 *
 * console.log(presets.firstAid.deadlineMs); // => 8000
 * console.log(parsePolicy({ preset: 'firstAid', deadlineMs: 10_000 }).maxInFlight); // => 48
 * ```
 */
export const presets: Readonly<Record<PresetName, Preset>> = {
  firstAid: {
    deadlineMs: 8000,
    maxInFlight: 48,
    models: {
      default: {
        retry: { attempts: 3, baseMs: 250, capMs: 2500, jitter: 'full' },
        breaker: { errorRatio: 0.25, openMs: 15_000, halfOpenShare: 0.1 },
      },
    },
    tenants: { default: { maxInFlight: 12 } },
  },
  interactive: {
    deadlineMs: 15_000,
    maxInFlight: 60,
    quota: { account: { maxWaiting: 1000, maxWaitMs: 10_000 } },
    models: {
      default: {
        retry: { attempts: 3, baseMs: 300, capMs: 2500, jitter: 'full' },
        breaker: { errorRatio: 0.25, windowMs: 30_000, openMs: 15_000, halfOpenShare: 0.1 },
        concurrency: { initial: 60, min: 4, max: 128, decrease: 0.7, maxOverMeasured: 1.2 },
        timeouts: { idleMs: 15_000 },
      },
    },
    priorities: { order: ['interactive', 'batch'], batch: { maxInFlight: 15 } },
    conversations: { maxWaiting: 5, maxWaitMs: 10_000 },
  },
  batch: {
    deadlineMs: 600_000,
    quota: { account: { maxWaiting: 100_000, maxWaitMs: 600_000 } },
    models: {
      default: {
        retry: { attempts: 5, baseMs: 1000, capMs: 32_000, jitter: 'full', maxHintMs: 300_000 },
        concurrency: { initial: 64, min: 4, max: 128 },
        timeouts: { firstContentMs: 120_000, idleMs: 60_000 },
      },
    },
    conversations: { maxWaiting: 1000, maxWaitMs: 600_000 },
  },
};

export const PRESET_NAMES: readonly PresetName[] = Object.keys(presets) as PresetName[];
