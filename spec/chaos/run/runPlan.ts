import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { createSluice, parsePolicy, startTimer } from '../../../lib/index.ts';
import type { Policy, PolicyInput, Sluice } from '../../../lib/index.ts';
import type { CallObserver, CallStart } from '../../../lib/core/CallObserver.ts';
import { composeObservers } from '../../../lib/telemetry/composeObservers.ts';
import type { Invariant } from '../invariants/Invariant.ts';
import { invariants as all } from '../invariants/invariants.ts';
import type { ChaosPlan, Shock } from '../plan/ChaosPlan.ts';
import type { Sabotage } from '../sabotage/Sabotage.ts';
import { Caller } from './Caller.ts';
import { isOutside } from './Fact.ts';
import type { CallTrace } from './Fact.ts';
import type { FetchCallers } from './FetchCallers.ts';
import type { GatewayClients } from './GatewayClients.ts';
import { History } from './History.ts';
import type { Violation } from './History.ts';
import { snapshotCounts } from './snapshotCounts.ts';
import { spanWitness } from './spanWitness.ts';
import { virtualWorld } from './virtualWorld.ts';
import type { ProviderWitness, World } from './World.ts';

export interface ChaosResult {
  readonly violations: readonly Violation[];
  readonly calls: number;
  readonly answered: number;
  readonly left: number;
  /** Calls that failed, by code. */
  readonly failed: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly restarts: number;
}

export interface RunOptions {
  readonly invariants?: readonly Invariant[] | undefined;
  readonly sabotage?: Sabotage | undefined;
}

/** Plays a plan from its first call to an empty client, under the eyes of the invariants. */
export async function runPlan(plan: ChaosPlan, options: RunOptions = {}): Promise<ChaosResult> {
  const policyOf = (input: PolicyInput): Policy => parsePolicy(input, { clients: Object.keys(plan.providers) });
  const history: { now?: History } = {};
  const witness: ProviderWitness = { judged: (...judged) => history.now?.judged(...judged) };
  const world = await worldFor(plan, witness);
  try {
    const { clock } = world.runtime;
    const startMs = clock.now();
    history.now = new History(plan, policyOf(plan.policy), options.invariants ?? all, () => clock.now() - startMs);
    await new ChaosRun(plan, world, history.now, options.sabotage ?? {}, policyOf).play();
  } finally {
    await world.close();
  }
  return resultOf(history.now);
}

async function worldFor(plan: ChaosPlan, witness: ProviderWitness): Promise<World> {
  // What only they need takes longer to load than a virtual run takes.
  if (plan.world === 'virtual') {
    const sdks = plan.calls.some(({ by }) => by !== undefined) ? await import('./virtualSdks.ts') : undefined;
    return virtualWorld(plan, witness, sdks?.bySdks);
  }
  const { httpWorld } = await import('./httpWorld.ts');
  return httpWorld(plan, witness);
}

/** By then what was held for the last call has been given back, at the latest. */
const AT_REST_MS = 1_500;

/** By then a gateway has heard that its client is gone. */
const HEARD_WITHIN_MS = 2_000;

class ChaosRun {
  readonly #plan: ChaosPlan;
  readonly #world: World;
  readonly #history: History;
  readonly #sabotage: Sabotage;
  readonly #policyOf: (input: PolicyInput) => Policy;
  readonly #sluices: Sluice[];
  /** The call that something outside asks for. */
  readonly #asked = new AsyncLocalStorage<number>();
  #gateways: GatewayClients | undefined;
  #toCome: number;
  /** Timers of the plan itself. */
  #planned = 0;
  #unheard = 0;
  #timersAtRest = 0;
  #closing: Promise<unknown> | undefined;

  constructor(
    plan: ChaosPlan,
    world: World,
    history: History,
    sabotage: Sabotage,
    policyOf: (input: PolicyInput) => Policy,
  ) {
    this.#plan = plan;
    this.#world = world;
    this.#history = history;
    this.#sabotage = sabotage;
    this.#policyOf = policyOf;
    const processes = Math.max(1, world.stores.length);
    this.#sluices = Array.from({ length: processes }, (_, process) => this.#client(process));
    for (const sluice of this.#sluices) {
      this.#unheard++;
      sluice.events$.subscribe({ complete: () => this.#unheard-- });
    }
    this.#toCome = plan.calls.length;
  }

  async play(): Promise<void> {
    const { runtime } = this.#world;
    const { calls, shocks, close } = this.#plan;
    if (calls.some(({ by }) => by === 'gateway')) this.#gateways = await this.#startGateways();
    const caller = new Caller(this.#sluices, this.#history, {
      runtime,
      sabotage: this.#sabotage,
      gateways: this.#gateways,
      fetchers: calls.some(({ by }) => by === 'fetch') ? await this.#fetchers() : undefined,
      atRest: () => this.#atRest(),
    });
    calls.forEach((call, index) => {
      this.#at(call.atMs, () => {
        this.#toCome--;
        caller.make(call, index);
      });
    });
    for (const shock of shocks) this.#at(shock.atMs, () => this.#strike(shock));
    if (close) this.#at(close.atMs, () => void this.#close(close.drainMs));

    await this.#world.pass(() => this.#toCome === 0 && caller.open === 0);
    // Gateways hear later than their clients that these have gone.
    const untilMs = runtime.clock.now() + HEARD_WITHIN_MS;
    await this.#world.pass(() => (this.#gateways?.inFlight ?? 0) === 0 || runtime.clock.now() > untilMs);
    const served = this.#gateways?.inFlight ?? 0;
    await this.#gateways?.close();
    const closed = this.#close(0);
    await this.#world.pass(() => caller.open === 0);
    for (const store of this.#world.stores) store.close();
    await this.#world.pass(() => runtime.pending === 0);
    const stuck = Symbol('stuck');
    const outcome = await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 2_000, stuck).unref())]);
    this.#history.end({
      counts: {
        ...snapshotCounts(this.#sluices),
        'requests that gateways still serve': served,
        'clients that do not close': outcome === stuck ? 1 : 0,
        'listeners on a signal that outlives its calls': getEventListeners(caller.signal, 'abort').length,
        'streams of events that do not complete': this.#unheard,
        'timers of the client when it is closed': runtime.pending,
        'timers of the client a while after its last call': this.#timersAtRest,
        ...(await this.#world.leftovers()),
      },
    });
  }

  async #startGateways(): Promise<GatewayClients> {
    const { GatewayClients } = await import('./GatewayClients.ts');
    const { runtime } = this.#world;
    return GatewayClients.start(
      this.#sluices,
      this.#asked,
      (listener) => this.#sabotage.gateway?.(listener, runtime) ?? listener,
    );
  }

  async #fetchers(): Promise<FetchCallers> {
    const { FetchCallers } = await import('./FetchCallers.ts');
    return new FetchCallers({
      sluices: this.#sluices,
      addresses: this.#world.addresses,
      asked: this.#asked,
      sabotage: this.#sabotage.fetch ?? ((fetch) => fetch),
    });
  }

  #at(atMs: number, work: () => void): void {
    this.#planned++;
    startTimer(this.#world.runtime, atMs, () => {
      this.#planned--;
      work();
    });
  }

  /** Every call has ended. Processes of a store go on to renew what they hold there. */
  #atRest(): void {
    if (this.#toCome > 0 || this.#world.stores.length > 0) return;
    this.#at(AT_REST_MS, () => (this.#timersAtRest = this.#world.runtime.pending - this.#planned));
  }

  #close(drainMs: number): Promise<unknown> {
    return (this.#closing ??= Promise.all(this.#sluices.map((sluice) => sluice.close({ drainMs }))));
  }

  #client(process: number): Sluice {
    const { stores, runtime } = this.#world;
    const sabotage = this.#sabotage;
    const { clients, fetch } = this.#world.connect(process, this.#history, sabotage);
    const telemetry = this.#observer(process);
    const { policy } = this.#plan;
    return createSluice(clients, sabotage.policy?.(policy) ?? policy, {
      runtime: sabotage.runtime?.(runtime) ?? runtime,
      telemetry: sabotage.telemetry?.(telemetry) ?? telemetry,
      fetch,
      ...(stores[process] && { store: stores[process] }),
    });
  }

  #observer(process: number): CallObserver {
    const history = this.#history;
    const calls = new Map<string, CallTrace>();
    const witness: CallObserver = {
      onCall: ({ callId, attributes }: CallStart): void => {
        const asked = attributes['call'] ?? this.#asked.getStore();
        const call = history.call(asked as number);
        calls.set(callId, call);
        if (isOutside(call.planned)) history.begun(call);
      },
      onEvent: (event) => history.tell({ kind: 'told', process, call: calls.get(event.callId), event }),
    };
    return composeObservers([witness, spanWitness((what, span) => history.tell({ kind: 'span', what, span }))]);
  }

  #strike(shock: Shock): void {
    switch (shock.kind) {
      case 'reload':
        return this.#reload(shock.policy);
      case 'stall':
        return this.#world.runtime.stall(shock.forMs);
      case 'store':
        this.#history.tell({ kind: 'stored', what: shock.what });
        return this.#world.shock(shock);
      case 'limits':
      case 'wall':
        return this.#world.shock(shock);
    }
  }

  #reload(policy: PolicyInput): void {
    // Those who wait may go by it before `reload` returns.
    this.#history.policy = this.#policyOf(policy);
    this.#history.tell({ kind: 'reloaded' });
    for (const sluice of this.#sluices) sluice.reload(this.#sabotage.policy?.(policy) ?? policy);
  }
}

function resultOf({ calls, violations, attempts }: History): ChaosResult {
  const failed: Record<string, number> = {};
  for (const { code, leftMs } of calls) {
    if (code !== undefined && leftMs === undefined) failed[code] = (failed[code] ?? 0) + 1;
  }
  return {
    violations,
    calls: calls.length,
    answered: calls.filter(({ endedMs, code }) => endedMs !== undefined && code === undefined).length,
    left: calls.filter(({ leftMs }) => leftMs !== undefined).length,
    failed,
    attempts,
    restarts: calls.reduce((sum, { restarts }) => sum + restarts, 0),
  };
}
