import { Subscription } from 'rxjs';
import type { Attempt, AttemptSource } from '../core/attempt.ts';
import { startTimer } from '../core/runtime.ts';
import { seededRandom } from '../core/seededRandom.ts';
import { sample } from '../emulator/model/distribution.ts';
import type { Exchange } from '../emulator/model/Exchange.ts';
import { FakeProvider } from '../emulator/model/FakeProvider.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import { parsePolicy } from '../policy/parsePolicy.ts';
import { virtualRuntime } from '../testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../testing/virtualRuntime.ts';
import type { SimulatedCall } from './load/CallDrawer.ts';
import { LoadRun } from './load/LoadRun.ts';
import { Meter } from './Meter.ts';
import type { Price, RunFigures } from './Meter.ts';
import { Phases } from './Phases.ts';
import { SCENARIO_DEFAULTS } from './scenario/Scenario.ts';
import type { Scenario } from './scenario/Scenario.ts';
import type { Caller, Strategy } from './strategies/Strategy.ts';
import { providerSource } from './upstream/providerSource.ts';
import type { Network, ProviderListener } from './upstream/providerSource.ts';
import { QuotaUse } from './upstream/QuotaUse.ts';
import { unlimited } from './upstream/unlimited.ts';

export interface StrategyResult extends RunFigures {
  readonly name: string;
  /** Until the last call had ended, in virtual milliseconds. */
  readonly tookMs: number;
  /** The highest part of any limit that was used, from 0 to 1; by client, for those that have limits. */
  readonly quotaUsed: Readonly<Record<string, number>>;
}

/** Progress is told of so many times. */
const TELLINGS = 200;

/** One strategy's run of a scenario, in a virtual time of its own. */
export class SimulationRun {
  readonly #scenario: Scenario;
  readonly #seed: number;
  readonly #runtime: VirtualRuntime;
  readonly #meter: Meter;
  readonly #used = new Map<string, QuotaUse>();
  readonly #caller: Caller;
  #ordinal = 0;

  /** `free`: before providers without limits and faults, where `strategy` keeps them by itself. */
  constructor(scenario: Scenario, strategy: Strategy, free = false) {
    const { seed = SCENARIO_DEFAULTS.seed, policy = {}, upstreams } = scenario;
    const parsed = parsePolicy(policy, { clients: Object.keys(upstreams) });
    this.#scenario = scenario;
    this.#seed = seed;
    this.#runtime = virtualRuntime({ seed });
    const priceOf = (model: string): Price | undefined => modelPolicy(parsed, model).price;
    this.#meter = new Meter(this.#runtime.clock, priceOf, new Phases(scenario.phases));
    this.#caller = strategy({
      runtime: this.#runtime,
      sources: this.#sources(free),
      policy,
      clientOf: (model) => modelPolicy(parsed, model).client,
    });
  }

  run(name: string, tell: (atMs: number, calls: number) => void): StrategyResult {
    const { load, forMs } = this.#scenario;
    load.forEach((one, i) => {
      // Of its own, so that what one load draws does not depend on another.
      const world = { runtime: this.#runtime, random: seededRandom(this.#seed + 1000 + i) };
      new LoadRun(one, `load${i}`, forMs, world, (draw, ended) => this.#make(draw(this.#ordinal++), ended)).start();
    });
    const stepMs = forMs / TELLINGS;
    for (let i = 1; i <= TELLINGS; i++) {
      this.#runtime.run(i * stepMs);
      tell(i * stepMs, this.#meter.calls);
    }
    const tookMs = this.#runtime.run();
    const used = [...this.#used].flatMap(([client, { share }]) =>
      share === undefined ? [] : [[client, share] as const],
    );
    return { name, tookMs, ...this.#meter.figures(), quotaUsed: Object.fromEntries(used) };
  }

  #sources(free: boolean): Readonly<Record<string, AttemptSource>> {
    const { upstreams, networkMs = SCENARIO_DEFAULTS.networkMs, chunks = SCENARIO_DEFAULTS.chunks } = this.#scenario;
    const random = seededRandom(this.#seed + 1);
    const delayMs = (): number => sample(networkMs, random);
    const network: Network = { sendMs: delayMs, receiveMs: delayMs };
    const runtime = this.#runtime;
    const sources = Object.entries(upstreams).map(([client, upstream], i) => {
      const { changes = [], ...options } = free ? unlimited(upstream) : upstream;
      const provider = new FakeProvider({ ...options, seed: this.#seed + 100 + i, chunks }, runtime.clock);
      for (const { atMs, ...change } of changes) startTimer(runtime, atMs, () => provider.setQuota(change));
      const use = new QuotaUse(upstream);
      this.#used.set(client, use);
      return [client, providerSource(provider, network, this.#listener(use), runtime)] as const;
    });
    return Object.fromEntries(sources);
  }

  #listener(use: QuotaUse): ProviderListener {
    const meter = this.#meter;
    return {
      sent: (attempt: Attempt) => meter.sent(attempt),
      arrived: (exchange: Exchange, attempt: Attempt) => {
        meter.arrived(exchange, attempt);
        const { verdict, model, reservedTokens } = exchange;
        if (verdict === 'admitted' && model !== undefined)
          use.admitted(model, reservedTokens, this.#runtime.clock.now());
      },
      over: (exchange: Exchange) => meter.over(exchange),
    };
  }

  #make(call: SimulatedCall, ended: () => void): void {
    const meter = this.#meter;
    meter.asked(call);
    const subscription = new Subscription();
    const stop = startTimer(this.#runtime, call.leavesAfterMs, () => {
      subscription.unsubscribe();
      meter.left(call);
      ended();
    });
    const over = (): void => {
      stop();
      ended();
    };
    const calling = this.#caller(call).subscribe({
      next: (value) => meter.value(call, value),
      error: (error: unknown) => {
        meter.failed(call, error);
        over();
      },
      complete: () => {
        meter.completed(call);
        over();
      },
    });
    subscription.add(calling);
  }
}
