import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { lastValueFrom, take } from 'rxjs';
import { createSluice, isSluiceError, text } from '../../../lib/index.ts';
import type { PolicyInput, Runtime, Sluice } from '../../../lib/index.ts';
import { FakeProvider } from '../../../lib/emulator/model/FakeProvider.ts';
import { providerSource } from '../../../lib/simulator/upstream/providerSource.ts';
import { composeObservers } from '../../../lib/telemetry/composeObservers.ts';
import { openTelemetry } from '../../../lib/telemetry/index.ts';
import { heapInUse } from '../../helpers/heap.ts';
import { percentile } from '../../helpers/ProviderBucket.ts';
import { OpenSpans } from './OpenSpans.ts';

export interface SoakSample {
  /** Made by then. */
  readonly calls: number;
  readonly heapBytes: number;
  /** Of the answered ones since the sample before, from the call to the end of its answer. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface SoakResult {
  readonly calls: number;
  readonly answered: number;
  readonly cancelled: number;
  /** Of calls that failed, by code. */
  readonly failed: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly samples: readonly SoakSample[];
  /** Calls, conversations, tenants, waiters and slots that something is held of in the end, and spans that have not ended. */
  readonly left: number;
}

const MUCH = 1e8;
const AT_ONCE = 100;
const TENANTS = 50;

/** Every part of a policy. What has to wait waits for milliseconds. */
const policyOf = (openMs: number): PolicyInput => ({
  deadlineMs: 60_000,
  maxInFlight: 80,
  quota: { account: { requestsPerMinute: MUCH, tokensPerMinute: MUCH * 100, settle: 'usage' } },
  models: {
    main: {
      quota: { requestsPerMinute: MUCH },
      retry: { attempts: 3, baseMs: 1, capMs: 4 },
      breaker: { consecutiveFailures: 4, openMs },
      concurrency: { initial: 60, min: 20, max: 80 },
      fallback: ['spare'],
      price: { inputPerMTok: 2, outputPerMTok: 8 },
      timeouts: { firstContentMs: 1_000, idleMs: 1_000 },
      midStream: 'restart',
    },
    spare: { retry: { attempts: 3, baseMs: 1, capMs: 4 }, breaker: { openMs } },
  },
  tenants: { default: { maxInFlight: 20, requestsPerMinute: MUCH } },
  priorities: { order: ['interactive', 'batch'], batch: { maxInFlight: 40 } },
  retryBudget: { ratio: 0.5, minPerSecond: 100 },
  conversations: { maxWaiting: 10, maxWaitMs: 60_000 },
  spend: { perTenantPerDay: { default: MUCH } },
});

/** Many calls through everything, over a provider without a network: in the end there must be nothing left of them. */
export async function runSoak(
  calls: number,
  runtime: Runtime,
  progress: (text: string) => void = () => {},
): Promise<SoakResult> {
  const spans = new OpenSpans();
  const meters = new MeterProvider({ readers: [new SilentReader()] });
  const sluice = createSluice(upstream(runtime), policyOf(20), {
    runtime,
    telemetry: composeObservers([spans.telemetry, openTelemetry({ meterProvider: meters, spans: false })]),
  });
  const run = new SoakRun(sluice, runtime);
  const samples: SoakSample[] = [];
  for (let tenth = 1; tenth <= 10; tenth++) {
    await run.until((calls / 10) * tenth);
    const waits = run.waitsMs.splice(0);
    const p50Ms = percentile(waits, 0.5);
    const p99Ms = percentile(waits, 0.99);
    samples.push({ calls: run.made, heapBytes: await heapInUse(), p50Ms, p99Ms });
    progress(`${run.made} calls`);
    // Settings that change under way.
    sluice.reload(policyOf(20 + tenth));
  }
  const { conversations, callsByTenant, calls: open, admission } = sluice.snapshot();
  const held = conversations.conversations + conversations.waiting + open + admission.inFlight + admission.waiting;
  const left = held + Object.keys(callsByTenant).length + spans.count;
  await sluice.close();
  await meters.shutdown();
  const { answered, cancelled, failed, attempts } = run;
  return { calls: run.made, answered, cancelled, failed, attempts, samples, left };
}

function upstream(runtime: Runtime) {
  const provider = new FakeProvider(
    {
      tokens: 4,
      firstTokenMs: 2,
      tokenMs: 0.5,
      models: { main: {}, spare: {} },
      seed: 7,
      randomFaults: [
        { kind: 'error', error: 'server_error', model: 'main', probability: 0.02 },
        { kind: 'error', error: 'overloaded', model: 'main', probability: 0.01 },
        { kind: 'cut', after: 2, model: 'main', probability: 0.01 },
        { kind: 'stall', after: 'headers', model: 'main', probability: 0.0005 },
      ],
    },
    runtime.clock,
  );
  const network = { sendMs: () => 0, receiveMs: () => 0 };
  const unheard = { sent: () => {}, arrived: () => {}, over: () => {} };
  return providerSource(provider, network, unheard, runtime);
}

class SoakRun {
  readonly #sluice: Sluice;
  readonly #runtime: Runtime;
  readonly waitsMs: number[] = [];
  readonly failed: Record<string, number> = {};
  made = 0;
  answered = 0;
  cancelled = 0;
  attempts = 0;

  constructor(sluice: Sluice, runtime: Runtime) {
    this.#sluice = sluice;
    this.#runtime = runtime;
    sluice.events$.subscribe(({ type }) => {
      if (type === 'attempt.started') this.attempts++;
    });
  }

  async until(calls: number): Promise<void> {
    const work = async (): Promise<void> => {
      while (this.made < calls) await this.#call(this.made++);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  async #call(at: number): Promise<void> {
    const startMs = this.#runtime.clock.now();
    const leaves = at % 10 === 3;
    const answer$ = this.#sluice.chat(
      { model: 'main', messages: [{ role: 'user', content: 'Hello' }] },
      {
        tenant: `tenant-${at % TENANTS}`,
        conversation: `conversation-${Math.floor(at / 50) * 10 + (at % 10)}`,
        priority: at % 4 === 0 ? 'batch' : 'interactive',
      },
    );
    try {
      // One in ten leaves once it has seen some text.
      await lastValueFrom(leaves ? answer$.pipe(text(), take(1)) : answer$.pipe(text()));
      if (leaves) this.cancelled++;
      else {
        this.answered++;
        this.waitsMs.push(this.#runtime.clock.now() - startMs);
      }
    } catch (error) {
      const code = isSluiceError(error) ? error.code : 'not ours';
      this.failed[code] = (this.failed[code] ?? 0) + 1;
    }
  }
}

/** Metrics are made and kept by the SDK, and go nowhere. */
class SilentReader extends MetricReader {
  protected override onForceFlush(): Promise<void> {
    return Promise.resolve();
  }
  protected override onShutdown(): Promise<void> {
    return Promise.resolve();
  }
}
