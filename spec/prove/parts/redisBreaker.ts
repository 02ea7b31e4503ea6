import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FaultRule, RequestRecord } from '../../../lib/emulator/index.ts';
import type { BreakerInput } from '../../../lib/index.ts';
import { startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';
import { startEmulatorProcess } from './emulatorProcess.ts';
import type { EmulatorProcess } from './emulatorProcess.ts';

const program = fileURLToPath(new URL('breakerChild.ts', import.meta.url));
const LOOPS = 3;
const DOWN: FaultRule = { kind: 'error', error: 'overloaded', times: 'always' };
const SILENT: FaultRule = { kind: 'stall', after: 'connect', times: 'always' };

/** Of one process. */
export interface BreakerPlan {
  readonly name: string;
  readonly baseURL: string;
  readonly redisPort: number;
  /** Whether its breaker is that of all processes. */
  readonly shared: boolean;
  readonly breaker: BreakerInput;
  readonly leaseMs: number;
  /** Calls at one time, and the pause after each. */
  readonly loops: number;
  readonly pauseMs: number;
}

export type BreakerOrder = 'go' | 'end';

export type BreakerTold =
  | { readonly kind: 'ready' }
  | { readonly kind: 'call'; readonly loop: string; readonly at: number; readonly code: string | undefined };

type CallTold = Extract<BreakerTold, { kind: 'call' }>;

export interface BreakerWorld {
  /** How many ask. */
  readonly processes: number;
  readonly redis: RedisServer;
  readonly emulator: EmulatorProcess;
  close(): Promise<void>;
}

export async function startBreakerWorld(processes = 4): Promise<BreakerWorld> {
  const redis = await startRedisServer();
  const emulator = await startEmulatorProcess({
    firstTokenMs: 20,
    tokenMs: 0,
    tokens: 4,
    recordHeaders: ['x-process'],
  });
  return {
    processes,
    redis,
    emulator,
    async close() {
      await emulator.close();
      await redis.close();
    },
  };
}

export interface OutageSettings {
  readonly shared: boolean;
  readonly breaker: BreakerInput & { readonly openMs: number };
  /** How many of them. */
  readonly probes: number;
}

export interface OutageResult {
  /** Requests that met the outage before every process knew of it. */
  readonly opening: number;
  /** Those after that: each of them is a probe. */
  readonly probes: number;
  /** Processes that made them. */
  readonly probers: number;
  /** Shortest and longest time from one to the next, as the provider saw them. */
  readonly leastGapMs: number;
  readonly longestGapMs: number;
  /** From the end of the outage until every process had had an answer. */
  readonly backAfterMs: number;
}

/** Processes ask a provider that goes down, and comes back when it has met so many probes. */
export async function runOutage(world: BreakerWorld, settings: OutageSettings): Promise<OutageResult> {
  const { emulator } = world;
  await emulator.script([]);
  await emulator.reset();
  const workers = await Workers.start(world, settings.shared, settings.breaker, 10_000);
  try {
    workers.go();
    await workers.all(({ code }) => code === undefined);
    await emulator.script([DOWN]);
    // Each asks one thing after the other: none of them has one on its way that was let pass before.
    await workers.all(({ code }) => code === 'circuit_open');
    const known = (await met(emulator)).length;
    let records = await met(emulator);
    while (records.length < known + settings.probes) records = await again(() => met(emulator));
    await emulator.script([]);
    const healedAt = now();
    await workers.all(({ code, at }) => code === undefined && at > healedAt);
    const backAfterMs = now() - healedAt;
    workers.end();
    const probes = records.slice(known);
    const gaps = probes.slice(1).map(({ arrivedMs }, i) => arrivedMs - (probes[i]?.arrivedMs ?? NaN));
    return {
      opening: known,
      probes: probes.length,
      probers: new Set(probes.map(proberOf)).size,
      leastGapMs: Math.min(...gaps),
      longestGapMs: Math.max(...gaps),
      backAfterMs,
    };
  } finally {
    await workers.close();
  }
}

export interface DeadProberResult {
  readonly leaseMs: number;
  /** From the death of the process whose probe it was to the arrival of the next one. */
  readonly nextAfterMs: number;
  readonly fromAnother: boolean;
  /** Requests that arrived while the probe was out: itself. */
  readonly meanwhile: number;
}

/** The process that probes is killed while its probe hangs. */
export async function runDeadProber(world: BreakerWorld, leaseMs: number): Promise<DeadProberResult> {
  const { emulator } = world;
  const breaker = { ...ONE_PROBE, openMs: 400 };
  await emulator.script([]);
  await emulator.reset();
  const workers = await Workers.start(world, true, breaker, leaseMs);
  try {
    workers.go();
    await workers.all(({ code }) => code === undefined);
    await emulator.script([DOWN]);
    await workers.all(({ code }) => code === 'circuit_open');
    await emulator.script([SILENT]);
    const hung = async (): Promise<readonly RequestRecord[]> =>
      (await met(emulator)).filter(({ fault }) => fault === 'stall');
    let probes = await hung();
    while (probes.length === 0) probes = await again(hung);
    // Others ask meanwhile, and are refused.
    await workers.all(({ code }) => code === 'circuit_open', 1);
    await pause(2 * breaker.openMs);
    probes = await hung();
    const meanwhile = probes.length;
    const prober = probes[0] && proberOf(probes[0]);
    await workers.kill(prober ?? '');
    const killedAt = now();
    while (probes.length === meanwhile) probes = await again(hung);
    const nextAfterMs = now() - killedAt;
    const next = probes[meanwhile];
    return { leaseMs, nextAfterMs, fromAnother: next !== undefined && proberOf(next) !== prober, meanwhile };
  } finally {
    await workers.close();
  }
}

/** All processes together: one probe at a time, and open times that stay as they are. */
export const ONE_PROBE: BreakerInput = {
  consecutiveFailures: 5,
  errorRatio: null,
  openFactor: 1,
  halfOpenMaxProbes: 1,
  rampMs: 300,
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const now = (): number => performance.timeOrigin + performance.now();

async function again<T>(look: () => Promise<T>): Promise<T> {
  await pause(10);
  return look();
}

/** What met a fault, in the order of arrival. */
async function met(emulator: EmulatorProcess): Promise<readonly RequestRecord[]> {
  const { log } = await emulator.report();
  return log.filter(({ fault }) => fault !== undefined).sort((a, b) => a.arrivedMs - b.arrivedMs);
}

function proberOf({ headers }: RequestRecord): string | undefined {
  return headers?.['x-process'];
}

function loopsOf(name: string): string[] {
  return Array.from({ length: LOOPS }, (_, i) => `${name}/${i}`);
}

class Workers {
  readonly #children = new Map<string, ChildProcess>();
  readonly #calls: CallTold[] = [];
  readonly #listeners = new Set<() => void>();

  static async start(world: BreakerWorld, shared: boolean, breaker: BreakerInput, leaseMs: number): Promise<Workers> {
    const workers = new Workers();
    const ready = Array.from({ length: world.processes }, (_, i) => {
      const name = `p${i}`;
      const { baseURL } = world.emulator;
      const plan: BreakerPlan = {
        name,
        baseURL,
        redisPort: world.redis.port,
        shared,
        breaker,
        leaseMs,
        loops: LOOPS,
        pauseMs: 10,
      };
      const child = fork(program, [JSON.stringify(plan)], { execArgv: [] });
      workers.#children.set(name, child);
      child.on('message', (told: BreakerTold) => workers.#hear(told));
      return once(child, 'message');
    });
    await Promise.all(ready);
    return workers;
  }

  go(): void {
    this.#order('go');
  }

  end(): void {
    this.#order('end');
  }

  /** Until each of those who ask, but so many, has had a call like this. */
  all(isLike: (call: CallTold) => boolean, but = 0): Promise<void> {
    return new Promise((resolve) => {
      const missing = new Set([...this.#children.keys()].flatMap((name) => loopsOf(name)));
      let looked = this.#calls.length;
      const look = (): void => {
        for (; looked < this.#calls.length; looked++) {
          const call = this.#calls[looked];
          if (call !== undefined && isLike(call)) missing.delete(call.loop);
        }
        if (missing.size > but) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
    });
  }

  async kill(name: string): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined) throw new Error(`there is no process ${name}`);
    this.#children.delete(name);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async close(): Promise<void> {
    const exits = [...this.#children.values()].map((child) => once(child, 'exit'));
    for (const child of this.#children.values()) child.disconnect();
    await Promise.all(exits);
  }

  #order(order: BreakerOrder): void {
    for (const child of this.#children.values()) child.send(order);
  }

  #hear(told: BreakerTold): void {
    if (told.kind !== 'call') return;
    this.#calls.push(told);
    for (const listener of this.#listeners) listener();
  }
}
