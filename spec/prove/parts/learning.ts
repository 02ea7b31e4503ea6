import OpenAI from 'openai';
import { createSluice, startTimer, systemRuntime } from '../../../lib/index.ts';
import type { Runtime } from '../../../lib/index.ts';
import type { EmulatorOptions, EmulatorReport, FaultRule, QuotaChange } from '../../../lib/emulator/index.ts';
import { LoopWatch } from './LoopWatch.ts';

export interface LearningPlan {
  readonly name: string;
  /** The provider's own numbers. */
  readonly perMinute: number;
  readonly burst: number;
  /** What the policy says. Default: nothing. */
  readonly configured?: number;
  readonly headers: boolean;
  readonly forMs: number;
  /** What is measured of it. */
  readonly from: number;
  /** The provider's rate is another in between. */
  readonly fallsTo?: { readonly perMinute: number; readonly fromMs: number; readonly toMs: number };
  /** The part that a client takes that nobody knows of. */
  readonly other?: number;
  /** Answers that begin within so long take 5 s longer. */
  readonly stallAtMs?: number;
  readonly workers: number;
}

export interface LearningResult {
  readonly requests: number;
  readonly rateLimited: number;
  readonly rejectedShare: number;
  /** Of what the provider would have let in. */
  readonly use: number;
  /** Most 429s in any 25 s, from `from` on. */
  readonly mostIn25s: number;
  /** Before `from`. */
  readonly rateLimitedBefore: number;
  /** The latest timer of the client's process meanwhile. */
  readonly lateMs: number;
}

/** What {@link runLearning} asks of the emulator, in this process or in another. */
export interface LearningProvider {
  readonly baseURL: string;
  report(): EmulatorReport | Promise<EmulatorReport>;
  script(faults: readonly FaultRule[]): void | Promise<void>;
  setQuota(change: QuotaChange): void | Promise<void>;
}

const MODEL = 'gpt-5.5';
const STALL_MS = 5000;

export function learningEmulator(plan: LearningPlan): EmulatorOptions {
  const { perMinute, burst, headers, other = 0 } = plan;
  return {
    models: { [MODEL]: { requestsPerMinute: perMinute, burstRequests: burst, noiseShare: other } },
    dialect: headers ? 'openai' : 'none',
    firstTokenMs: 100,
    tokens: 2,
    tokenMs: 5,
  };
}

/** Workers that never rest, each of which makes one attempt after another. */
export async function runLearning(
  plan: LearningPlan,
  provider: LearningProvider,
  runtime: Runtime = systemRuntime,
): Promise<LearningResult> {
  const { perMinute, configured, forMs, from, fallsTo, other = 0, stallAtMs, workers } = plan;
  const after = (ms: number, work: () => unknown): void => void startTimer(runtime, ms, () => void work());
  const openai = new OpenAI({ baseURL: provider.baseURL, apiKey: 'none' });
  const account = { maxWaitMs: 600_000, ...(configured === undefined ? {} : { requestsPerMinute: configured }) };
  const models = { default: { retry: { attempts: 1 } } };
  const policy = { deadlineMs: 600_000, maxInFlight: workers, quota: { account }, models };
  const sluice = createSluice(openai, policy, { runtime });
  const watch = new LoopWatch().start();
  const startMs = runtime.clock.now();
  const upMs = (await provider.report()).upMs;
  let running = true;
  const work = async (): Promise<void> => {
    while (running) {
      try {
        await sluice.chat({ model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }).forEach(() => {});
      } catch {
        // Counted by the provider.
      }
    }
  };
  const setRate = (requestsPerMinute: number): unknown =>
    provider.setQuota({ models: { [MODEL]: { requestsPerMinute } } });
  if (fallsTo) {
    after(fallsTo.fromMs, () => setRate(fallsTo.perMinute));
    after(fallsTo.toMs, () => setRate(perMinute));
  }
  if (stallAtMs !== undefined) {
    after(stallAtMs, () => provider.script([{ kind: 'stall', after: 'headers', forMs: STALL_MS, times: 'always' }]));
    after(stallAtMs + STALL_MS, () => provider.script([]));
  }
  const workersDone = Array.from({ length: 2 * workers }, () => work());
  await new Promise<void>((resolve) => after(forMs - (runtime.clock.now() - startMs), () => resolve()));
  running = false;
  const { log } = await provider.report();
  watch.stop();
  await sluice.close({ drainMs: 0 });
  await Promise.all(workersDone);

  const seen = log.map(({ arrivedMs, refusal }) => ({ atMs: arrivedMs - upMs, refused: refusal !== undefined }));
  const late = seen.filter(({ atMs }) => atMs >= from && atMs < forMs);
  const refused = late.filter((one) => one.refused);
  const fellMs = fallsTo ? Math.max(0, fallsTo.toMs - Math.max(from, fallsTo.fromMs)) : 0;
  const allowed = (perMinute * (1 - other) * (forMs - from - fellMs) + (fallsTo?.perMinute ?? 0) * fellMs) / 60_000;
  return {
    requests: seen.length,
    rateLimited: refused.length,
    rejectedShare: refused.length / Math.max(1, late.length),
    use: (late.length - refused.length) / allowed,
    mostIn25s: Math.max(
      0,
      ...refused.map(({ atMs }) => refused.filter((one) => one.atMs >= atMs && one.atMs < atMs + 25_000).length),
    ),
    rateLimitedBefore: seen.filter((one) => one.refused && one.atMs < from).length,
    lateMs: watch.lateMs,
  };
}
