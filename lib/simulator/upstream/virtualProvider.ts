import type { AttemptSource } from '../../core/attempt.ts';
import type { Runtime } from '../../core/runtime.ts';
import { seededRandom } from '../../core/seededRandom.ts';
import { checkDistribution, sample } from '../../emulator/model/distribution.ts';
import type { Distribution } from '../../emulator/model/distribution.ts';
import { FakeProvider } from '../../emulator/model/FakeProvider.ts';
import type { QuotaChange } from '../../emulator/model/FakeProvider.ts';
import type { FaultRule } from '../../emulator/model/faults.ts';
import { PROVIDER_DEFAULTS } from '../../emulator/model/settings.ts';
import type { ProviderOptions } from '../../emulator/model/settings.ts';
import { SCENARIO_DEFAULTS } from '../scenario/Scenario.ts';
import { providerSource } from './providerSource.ts';

export interface VirtualProviderOptions extends ProviderOptions {
  /** One way, for each message. Default: 20. */
  readonly networkMs?: Distribution | undefined;
}

/** What a virtual provider saw. */
export interface VirtualProviderReport {
  /** Requests that arrived. */
  readonly requests: number;
  /** Those of them that its limits let through. */
  readonly admitted: number;
  readonly rateLimited: number;
  /** Answers by their status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Requests by the model that they asked. */
  readonly models: Readonly<Record<string, number>>;
  /** Requests that run there now, and the most that ever did. */
  readonly running: number;
  readonly maxRunning: number;
}

export interface VirtualProvider {
  /** Give it to `createSluice` in the place of an OpenAI client. */
  readonly source: AttemptSource;
  report(): VirtualProviderReport;
  /** Faults for the next requests, in the place of what is left of those before. */
  script(faults: readonly FaultRule[]): void;
  /** Changes the limits that are named, from now on. */
  setQuota(change: QuotaChange): void;
}

/**
 * The emulator's provider without a network, in the time of `runtime`: what tests of a policy ask in the place of a real
 * one. Requests arrive some time after they were sent, and so do answers.
 *
 * `chunks: 'ends'` makes long answers cheap: their first content comes, and then the rest in one.
 *
 * @throws SluiceError `invalid_option` for an option out of its range; so do `script` and `setQuota`.
 *
 * @example
 * ```ts
 * import { createSluice } from 'sluice';
 * import { virtualProvider } from 'sluice/simulator';
 * import { virtualRuntime } from 'sluice/testing';
 *
 * const runtime = virtualRuntime();
 * const provider = virtualProvider({ requestsPerMinute: 60, burstRequests: 1 }, runtime);
 * const quota = { requestsPerMinute: 60, burstRequests: 1 };
 * const sluice = createSluice(provider.source, { quota: { account: quota } }, { runtime });
 * const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }] };
 * for (let i = 0; i < 10; i++) sluice.chat(request).subscribe();
 * runtime.run();
 * const { requests, rateLimited } = provider.report();
 * console.log(`${requests} requests, ${rateLimited} 429s`); // => 10 requests, 0 429s
 * ```
 */
export function virtualProvider(options: VirtualProviderOptions, runtime: Runtime): VirtualProvider {
  const { networkMs = SCENARIO_DEFAULTS.networkMs, ...settings } = options;
  checkDistribution('networkMs', networkMs);
  const provider = new FakeProvider(settings, runtime.clock);
  const random = seededRandom((settings.seed ?? PROVIDER_DEFAULTS.seed) + 2);
  const delayMs = (): number => sample(networkMs, random);
  const statuses = new Map<string, number>();
  const models = new Map<string, number>();
  let [requests, admitted, maxRunning] = [0, 0, 0];
  const source = providerSource(
    provider,
    { sendMs: delayMs, receiveMs: delayMs },
    {
      sent: () => {},
      arrived({ verdict, model }, _, status) {
        requests++;
        if (verdict === 'admitted') admitted++;
        if (status !== undefined) count(statuses, String(status));
        if (model !== undefined) count(models, model);
        maxRunning = Math.max(maxRunning, provider.running);
      },
      over: () => {},
    },
    runtime,
  );
  return {
    source,
    report: () => ({
      requests,
      admitted,
      rateLimited: statuses.get('429') ?? 0,
      statuses: Object.fromEntries(statuses),
      models: Object.fromEntries(models),
      running: provider.running,
      maxRunning,
    }),
    script: (faults) => provider.script(faults),
    setQuota: (change) => provider.setQuota(change),
  };
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
