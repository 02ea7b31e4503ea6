import type { Observable, Observer, Subscription } from 'rxjs';
import type { Attempt, AttemptSource } from '../core/attempt.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { seededRandom } from '../core/seededRandom.ts';
import type { Exchange } from '../emulator/model/Exchange.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import { parsePolicy } from '../policy/parsePolicy.ts';
import type { SimulatedCall } from './load/CallDrawer.ts';
import { LoadRun } from './load/LoadRun.ts';
import { Meter } from './Meter.ts';
import type { RunFigures, Running } from './Meter.ts';
import { Phases } from './Phases.ts';
import { SCENARIO_DEFAULTS } from './scenario/Scenario.ts';
import type { Scenario } from './scenario/Scenario.ts';
import type { Caller, Strategy } from './strategies/Strategy.ts';
import type { Timeline } from './timeline/Timeline.ts';
import { TimelineRecorder } from './timeline/TimelineRecorder.ts';
import type { ProviderListener } from './upstream/providerSource.ts';
import { QuotaUse } from './upstream/QuotaUse.ts';

/** What became of all calls under one strategy, and of the providers' limits. */
export interface StrategyResult extends RunFigures {
  readonly name: string;
  /** Until the last call had ended, in virtual milliseconds. */
  readonly tookMs: number;
  /** What a month of this load would cost, at the prices of the policy. */
  readonly costPerMonth: number;
  /** The highest part of any limit that was used, from 0 to 1; by client, for those that have limits. */
  readonly quotaUsed: Readonly<Record<string, number>>;
  /** Where it was asked for. */
  readonly timeline?: Timeline | undefined;
}

const MONTH_MS = (365 / 12) * 86_400_000;

/** The ways to the providers of a scenario, by client. What they tell their listeners of is what is counted. */
export type Sources = (listenerOf: (client: string) => ProviderListener) => Readonly<Record<string, AttemptSource>>;

/**
 * The calls of a scenario, made by one strategy and measured. It knows neither what time it runs in, of which it needs only
 * that it begins at 0, nor how providers are reached.
 */
export class ScenarioRun {
  readonly #scenario: Scenario;
  readonly #runtime: Runtime;
  readonly #meter: Meter;
  readonly #timeline: TimelineRecorder | undefined;
  readonly #used = new Map<string, QuotaUse>();
  readonly #caller: Caller;
  #ordinal = 0;

  /** `timeline`: whether it writes down what happens when. */
  constructor(scenario: Scenario, strategy: Strategy, runtime: Runtime, sources: Sources, timeline = false) {
    const { policy = {}, upstreams, forMs } = scenario;
    const parsed = parsePolicy(policy, { clients: Object.keys(upstreams) });
    this.#scenario = scenario;
    this.#runtime = runtime;
    this.#timeline = timeline ? new TimelineRecorder(forMs, upstreams) : undefined;
    this.#meter = new Meter(
      runtime.clock,
      (model) => modelPolicy(parsed, model).price,
      new Phases(scenario.phases),
      this.#timeline,
    );
    this.#caller = strategy({
      runtime,
      sources: sources((client) => this.#listener(client)),
      policy,
      clientOf: (model) => modelPolicy(parsed, model).client,
    });
  }

  /** Calls made so far. */
  get calls(): number {
    return this.#meter.calls;
  }

  /** Requests that have reached a provider. */
  get requests(): number {
    return this.#meter.requests;
  }

  /** Those of them that have not ended. */
  get running(): number {
    return this.#meter.running;
  }

  /** Arms the first timer of each load. */
  start(): void {
    const { load, forMs, seed = SCENARIO_DEFAULTS.seed } = this.#scenario;
    load.forEach((one, i) => {
      // Of its own, so that what one load draws does not depend on another.
      const world = { runtime: this.#runtime, random: seededRandom(seed + 1000 + i) };
      new LoadRun(one, `load${i}`, forMs, world, (draw, ended) => this.#make(draw(this.#ordinal++), ended)).start();
    });
  }

  result(name: string): StrategyResult {
    const used = [...this.#used].flatMap(([client, { share }]) =>
      share === undefined ? [] : [[client, share] as const],
    );
    const tookMs = this.#runtime.clock.now();
    const figures = this.#meter.figures();
    // The last calls end after the load has, which is not longer for that.
    const costPerMonth = tookMs > 0 ? (figures.cost * MONTH_MS) / Math.min(tookMs, this.#scenario.forMs) : 0;
    return {
      name,
      tookMs,
      ...figures,
      costPerMonth,
      quotaUsed: Object.fromEntries(used),
      ...(this.#timeline && { timeline: this.#timeline.timeline() }),
    };
  }

  #listener(client: string): ProviderListener {
    const meter = this.#meter;
    const use = new QuotaUse(this.#scenario.upstreams[client] ?? {});
    this.#used.set(client, use);
    return {
      sent: (attempt: Attempt) => meter.sent(attempt),
      arrived: (exchange: Exchange, attempt: Attempt, status: number | undefined) => {
        meter.arrived(exchange, attempt, status);
        const { verdict, model, reservedTokens } = exchange;
        if (verdict !== 'admitted' || model === undefined) return;
        const nowMs = this.#runtime.clock.now();
        use.admitted(model, reservedTokens, nowMs);
        this.#timeline?.admitted(client, model, reservedTokens, nowMs);
      },
      over: (exchange: Exchange) => meter.over(exchange),
    };
  }

  #make(call: SimulatedCall, ended: () => void): void {
    new CallWatch(this.#meter, call, ended).start(this.#caller(call), this.#runtime);
  }
}

/** One call, from when it is made until it has ended or its user has left. A class, as every call has one. */
class CallWatch implements Observer<unknown> {
  readonly #meter: Meter;
  readonly #running: Running;
  readonly #ended: () => void;
  #subscription: Subscription | undefined;
  #stop: Cancel | undefined;

  constructor(meter: Meter, call: SimulatedCall, ended: () => void) {
    this.#meter = meter;
    this.#running = meter.asked(call);
    this.#ended = ended;
  }

  start(answer$: Observable<unknown>, runtime: Runtime): void {
    const { leavesAfterMs } = this.#running.call;
    if (leavesAfterMs !== Infinity) this.#stop = startTimer(runtime, leavesAfterMs, () => this.#leave());
    this.#subscription = answer$.subscribe(this);
  }

  next(value: unknown): void {
    this.#meter.value(this.#running, value);
  }

  error(error: unknown): void {
    this.#meter.failed(this.#running, error);
    this.#over();
  }

  complete(): void {
    this.#meter.completed(this.#running);
    this.#over();
  }

  #leave(): void {
    this.#subscription?.unsubscribe();
    this.#meter.left(this.#running);
    this.#ended();
  }

  #over(): void {
    this.#stop?.();
    this.#ended();
  }
}
