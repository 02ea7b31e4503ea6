import type { Runtime } from '../../core/runtime.ts';
import type { NamedLayer, RouteOptions, SharedQuotas as SharedQuotasPort } from '../../limits/LimitStore.ts';
import type { QuotaRules } from '../../limits/QuotaOptions.ts';
import { Alarm } from './Alarm.ts';
import { QuotaCalls } from './QuotaCalls.ts';
import type { RouteAsk } from './quotaCallOf.ts';
import { QuotaDecider } from './QuotaDecider.ts';
import type { DeciderOptions, Decision } from './QuotaDecider.ts';
import { QuotaLayers } from './QuotaLayers.ts';
import { quotaPlan } from './quotaRules.ts';
import type { QuotaPlan, SharedTimes } from './quotaRules.ts';
import { QuotaTelling } from './QuotaTelling.ts';
import type { Script } from './Script.ts';
import { SharedRoute } from './SharedRoute.ts';
import type { RouteHost } from './SharedRoute.ts';
import type { StoreLink } from './StoreLink.ts';

/** Most that are asked about in one call, and how many routes on which nobody's turn has come. */
const MOST_LOOKS = 100;
const MOST_AHEAD = 10;
/** From so many routes on those are forgotten on which nothing is under way. */
const FIRST_SWEEP = 1024;

/**
 * One quota of several routes. All of them ask together, one call at a time. One timer, and none while nobody waits and
 * nothing is to be told.
 */
export class SharedQuotas implements SharedQuotasPort, RouteHost {
  readonly layers: QuotaLayers;
  readonly calls: QuotaCalls;
  readonly decider: QuotaDecider;
  readonly telling: QuotaTelling;
  readonly sliceMs: number;
  readonly #times: SharedTimes;
  readonly #runtime: Runtime;
  readonly #alarm: Alarm;
  readonly #routes = new Map<string, SharedRoute>();
  /** Those on which something is under way are among these. */
  readonly #busy = new Set<SharedRoute>();
  #plan: QuotaPlan;
  #sweepAt = FIRST_SWEEP;
  #calledAtMs = 0;
  #returned = false;
  #closed = false;

  /** @throws SluiceError `invalid_option` if a rule is not as described. */
  constructor(rules: QuotaRules, times: SharedTimes, link: StoreLink, script: Script, options: DeciderOptions) {
    this.#plan = quotaPlan(rules, times);
    this.layers = new QuotaLayers(this.#plan.own);
    this.sliceMs = times.sliceMs;
    this.#times = times;
    this.#runtime = link.runtime;
    this.#alarm = new Alarm(this.#runtime, () => this.#serve());
    const dueAnyway = (): boolean => this.#returned;
    this.calls = new QuotaCalls({
      beforeCall: () => this.#addLooks(),
      get dueAnyway() {
        return dueAnyway();
      },
      decide: (asks) => this.#decide(asks),
      heard: (decision, reply) => this.decider.heard(decision, reply),
      afterCalls: () => this.#watch(),
    });
    const planOf = (): QuotaPlan => this.#plan;
    this.decider = new QuotaDecider(link, script, options, {
      get plan() {
        return planOf();
      },
      layers: this.layers,
      changed: (first) => this.#askAnew(first),
      wanting: () => this.#waits(),
    });
    this.telling = new QuotaTelling(
      this.calls,
      this.decider,
      () => this.nowMs(),
      () => this.#watch(),
    );
  }

  get closed(): boolean {
    return this.#closed;
  }

  route(layers: readonly NamedLayer[], options: RouteOptions = {}): SharedRoute {
    const { version } = this.layers;
    this.layers.give(layers, options);
    const names = layers.map(({ name }) => name);
    const key = JSON.stringify(names);
    const known = this.#routes.get(key);
    if (known) known.reload(options);
    else if (this.#routes.size >= this.#sweepAt) this.#sweep(names);
    const route = known ?? new SharedRoute(names, options, this);
    this.#routes.set(key, route);
    if (version !== this.layers.version) this.#changed();
    return route;
  }

  reload(rules: QuotaRules): void {
    this.#plan = quotaPlan(rules, this.#times);
    this.layers.reload(this.#plan.own);
    this.#changed();
  }

  /** Ends those who wait with `closed`, and all that come. Grants that are out end as they would. */
  close(): void {
    this.#closed = true;
    for (const route of [...this.#busy]) route.close();
    this.calls.send();
  }

  nowMs(): number {
    return this.#runtime.clock.now();
  }

  busy(route: SharedRoute): void {
    this.#busy.add(route);
  }

  /** Those who wait hear of other rates at once. */
  #changed(): void {
    if (!this.#waits()) return;
    for (const route of this.#busy) route.moved();
    this.calls.send();
  }

  #waits(): boolean {
    for (const { line } of this.#busy) if (line.size > 0) return true;
    return false;
  }

  #askAnew(first: readonly RouteAsk[]): void {
    this.calls.reset();
    for (const { plan, op } of first) this.calls.add(plan, op);
    for (const route of [...this.#busy]) route.askAnew();
    this.#returned = this.decider.refusing === undefined;
    this.calls.send();
  }

  #addLooks(): void {
    const aheadMs = 2 * (this.decider.way?.leadMs ?? 0);
    let left = MOST_LOOKS;
    let ahead = MOST_AHEAD;
    for (const route of [...this.#busy]) {
      if (left <= 0) return;
      const due = route.dueWithin(aheadMs);
      if (!due && ahead-- <= 0) continue;
      left -= route.look(aheadMs, left);
      if (due) continue;
      // The others have their turn with the next calls.
      this.#busy.delete(route);
      this.#busy.add(route);
    }
  }

  #decide(asks: readonly RouteAsk[]): Decision {
    this.#calledAtMs = this.nowMs();
    this.#returned = false;
    this.telling.sent();
    return this.decider.decide(asks, this.#waits());
  }

  #serve(): void {
    for (const route of [...this.#busy]) route.serve();
    if (this.#callAtMs() <= this.nowMs()) this.calls.send();
    this.#watch();
  }

  #callAtMs(): number {
    let atMs = this.telling.laterAtMs;
    for (const { askAtMs } of this.#busy) atMs = Math.min(atMs, askAtMs);
    const renewAtMs = this.#waits() ? this.#calledAtMs + this.#plan.shared.leaseUs / 3000 : Infinity;
    return Math.min(atMs, renewAtMs);
  }

  #watch(): void {
    let tellAtMs = Infinity;
    for (const route of this.#busy) {
      if (route.idle) this.#busy.delete(route);
      else tellAtMs = Math.min(tellAtMs, route.line.tellAtMs);
    }
    // What is under way watches when it is back; those whose grant begins do not wait for that.
    const callAtMs = this.calls.busy ? Infinity : this.#callAtMs();
    this.#alarm.set(Math.min(tellAtMs, callAtMs));
  }

  #sweep(names: readonly string[]): void {
    const kept = new Set(names);
    for (const [key, route] of this.#routes) {
      if (this.#busy.has(route) && !route.idle) for (const name of route.names) kept.add(name);
      else this.#routes.delete(key);
    }
    this.layers.keep(kept);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#routes.size);
  }
}
