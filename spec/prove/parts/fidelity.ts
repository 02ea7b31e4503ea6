import OpenAI from 'openai';
import { defer } from 'rxjs';
import type { AttemptSource } from '../../../lib/core/attempt.ts';
import { startTimer } from '../../../lib/core/runtime.ts';
import type { Runtime } from '../../../lib/core/runtime.ts';
import { seededRandom } from '../../../lib/core/seededRandom.ts';
import type { EmulatorOptions, EmulatorReport, QuotaChange } from '../../../lib/emulator/index.ts';
import { parseScenario } from '../../../lib/simulator/scenario/parseScenario.ts';
import { SCENARIO_DEFAULTS } from '../../../lib/simulator/scenario/Scenario.ts';
import type { Scenario, StrategyInput, Upstream } from '../../../lib/simulator/scenario/Scenario.ts';
import { ScenarioRun } from '../../../lib/simulator/ScenarioRun.ts';
import type { StrategyResult } from '../../../lib/simulator/ScenarioRun.ts';
import { SimulationRun } from '../../../lib/simulator/SimulationRun.ts';
import { strategyOf } from '../../../lib/simulator/strategies/strategyOf.ts';
import type { ProviderListener } from '../../../lib/simulator/upstream/providerSource.ts';
import { QuotaUse } from '../../../lib/simulator/upstream/QuotaUse.ts';
import { providerSeed } from '../../../lib/simulator/upstream/virtualSources.ts';
import { openaiTransport } from '../../../lib/sources/openaiTransport.ts';
import { percentile } from '../../helpers/ProviderBucket.ts';

/** What both ways of running a scenario are compared by. */
export interface Figures {
  readonly calls: number;
  readonly answered: number;
  readonly attempts: number;
  readonly rateLimited: number;
  /** The highest part of any limit. */
  readonly quotaUsed: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly failed: Readonly<Record<string, number>>;
}

/** How long requests were on their way to the provider. */
export interface Way {
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/** An emulator, in this process or in another. */
export interface Reached {
  readonly baseURL: string;
  report(): EmulatorReport | Promise<EmulatorReport>;
  setQuota(change: QuotaChange): void | Promise<void>;
  reset(): void | Promise<void>;
  close(): Promise<void>;
}

export type StartEmulator = (options: EmulatorOptions) => Promise<Reached>;

/** In virtual time. Messages take as long as `way` says, to where half and nineteen in twenty of them do. */
export function simulated(scenario: Scenario, strategy: StrategyInput, way: Way): Figures {
  const { p50Ms: median, p95Ms } = way;
  const networkMs = { median, sigma: Math.log(p95Ms / median) / 1.645, max: 3 * p95Ms };
  const checked = parseScenario({ ...scenario, networkMs });
  const result = new SimulationRun(checked, strategyOf(strategy)).run(strategy.kind, () => {});
  const { attempts, rateLimited, quotaUsed } = result;
  return figuresOf(result, attempts, rateLimited, Object.values(quotaUsed));
}

/**
 * In real time, before emulators that are reached by the SDK over HTTP. Calls are drawn, made and measured by what does it
 * in virtual time; what the provider saw is taken from its own report.
 */
export async function overHttp(
  scenario: Scenario,
  strategy: StrategyInput,
  start: StartEmulator,
  real: Runtime,
): Promise<Figures & { readonly way: Way }> {
  const checked = parseScenario(scenario);
  const { upstreams, forMs, seed = SCENARIO_DEFAULTS.seed } = checked;
  const emulators = new Map<string, Reached>();
  for (const [place, [client, { changes: _, ...provider }]] of Object.entries(upstreams).entries()) {
    emulators.set(client, await start({ ...provider, seed: providerSeed(seed, place), chunks: 'all' }));
  }
  try {
    await warmUp(emulators);
    const startMs = real.clock.now();
    const runtime: Runtime = {
      clock: { now: () => real.clock.now() - startMs, wallNow: () => real.clock.wallNow() },
      scheduler: real.scheduler,
      random: seededRandom(seed),
    };
    const sentMs: number[] = [];
    const run = new ScenarioRun(checked, strategyOf(strategy), runtime, (listenerOf) => {
      const sources = [...emulators].map(([client, { baseURL }]) => {
        const transport = openaiTransport(new OpenAI({ baseURL, apiKey: 'none' }), { runtime });
        const listener = listenerOf(client);
        return [client, heard(transport, listener, () => sentMs.push(runtime.clock.now()))] as const;
      });
      return Object.fromEntries(sources);
    });
    for (const [client, { changes = [] }] of Object.entries(upstreams)) {
      for (const { atMs, ...change } of changes) {
        startTimer(runtime, atMs, () => void emulators.get(client)?.setQuota(change));
      }
    }
    run.start();
    while (runtime.clock.now() < forMs || run.running > 0) {
      await new Promise<void>((resolve) => startTimer(runtime, 20, resolve));
    }
    const result = run.result(strategy.kind);
    const reports = await Promise.all(
      [...emulators].map(async ([client, one]) => [client, await one.report()] as const),
    );
    const seen = reports.map(([, report]) => report);
    const figures = figuresOf(
      result,
      sum(seen.map(({ requests }) => requests)),
      sum(seen.map(({ rateLimited }) => rateLimited.total)),
      reports.flatMap(([client, report]) => usedOf(upstreams[client] ?? {}, report) ?? []),
    );
    return { ...figures, way: wayOf(sentMs, seen) };
  } finally {
    await Promise.all([...emulators.values()].map((one) => one.close()));
  }
}

/** The first requests of a process pay for the compiler and for connections. */
async function warmUp(emulators: ReadonlyMap<string, Reached>): Promise<void> {
  for (const emulator of emulators.values()) {
    const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none', maxRetries: 0 });
    const ask = async (): Promise<void> => {
      const messages = [{ role: 'user' as const, content: 'Hello' }];
      try {
        const stream = await openai.chat.completions.create({ model: 'm', messages, stream: true });
        for await (const chunk of stream) void chunk;
      } catch {
        // A rejection warms up as well.
      }
    };
    for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 10 }, ask));
    await emulator.reset();
  }
}

/** The shortest way on this machine. That of a request is known only from what it is longer than others. */
const SHORTEST_MS = 0.3;

/** The n-th that was sent is the n-th to arrive, or near enough to it; the clocks differ by a constant. */
function wayOf(sentMs: readonly number[], reports: readonly EmulatorReport[]): Way {
  const arrivedMs = reports.flatMap(({ log }) => log.map((record) => record.arrivedMs)).sort((a, b) => a - b);
  const sent = [...sentMs].sort((a, b) => a - b);
  const ways = arrivedMs.map((atMs, i) => atMs - (sent[i] ?? Number.NaN));
  const offset = Math.min(...ways) - SHORTEST_MS;
  const p50Ms = percentile(ways, 0.5) - offset;
  return { p50Ms, p95Ms: Math.max(percentile(ways, 0.95) - offset, 1.001 * p50Ms) };
}

/** Only the sending is heard of here; the rest is in the provider's report. */
function heard(source: AttemptSource, listener: ProviderListener, sent: () => void): AttemptSource {
  return (attempt) =>
    defer(() => {
      sent();
      listener.sent(attempt);
      return source(attempt);
    });
}

function usedOf(upstream: Upstream, { log }: EmulatorReport): number | undefined {
  const use = new QuotaUse(upstream);
  for (const { model, reservedTokens, arrivedMs } of log) {
    if (model !== undefined && reservedTokens > 0) use.admitted(model, reservedTokens, arrivedMs);
  }
  return use.share;
}

function figuresOf(
  { calls, answered, firstContentMs, failed }: StrategyResult,
  attempts: number,
  rateLimited: number,
  used: readonly number[],
): Figures {
  const { p50, p95 } = firstContentMs;
  return { calls, answered, attempts, rateLimited, quotaUsed: Math.max(0, ...used), p50Ms: p50, p95Ms: p95, failed };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
