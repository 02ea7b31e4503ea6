import { seededRandom } from '../../../lib/testing/seededRandom.ts';
import { percentile } from '../../helpers/ProviderBucket.ts';
import type { EmulatorProcess } from './emulatorProcess.ts';
import type { Provider } from './fullSpeed.ts';
import { StoreWorkers } from './StoreWorkers.ts';
import type { WorkerPlan } from './StoreWorkers.ts';

/** Where calls go, and where the store is. */
export interface RedisWorld {
  readonly provider: Provider;
  readonly emulator: EmulatorProcess;
  readonly redisPort: number;
  /** Processes that are there already, as many as a run needs. Default: each run starts its own. */
  readonly workers?: StoreWorkers;
  /** Default: 3,000. */
  readonly leaseMs?: number;
}

export interface UsedResult {
  readonly calls: number;
  readonly answered: number;
  readonly rateLimited: number;
  /** Of the quota, from the first second to the last arrival. */
  readonly used: number;
  readonly p95Ms: number;
}

const MODEL = 'gpt-5.5';
const LEASE_MS = 3000;
const COMMAND_MS = 250;
/** Of the load, for each process. */
const SHARES = [0.6, 0.25, 0.1, 0.05] as const;
const ASKERS = 15;
/** Who is patient looks so often for so much of the quota to be used. */
const LOOKS = 8;
const ENOUGH = 0.6;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const perMs = ({ requestsPerMinute }: Provider): number => requestsPerMinute / 60_000;

function planOf({ provider, emulator, redisPort, leaseMs = LEASE_MS }: RedisWorld, way: WorkerPlan['way']): WorkerPlan {
  const { requestsPerMinute, burstRequests } = provider;
  return {
    way,
    baseURL: emulator.baseURL,
    model: MODEL,
    redisPort,
    store: { leaseMs, commandTimeoutMs: COMMAND_MS },
    rates: { requestsPerMinute, burstRequests, maxWaitMs: 60_000 },
  };
}

async function workersFor(world: RedisWorld, way: WorkerPlan['way'], count: number): Promise<StoreWorkers> {
  const { workers } = world;
  if (workers === undefined) return StoreWorkers.start(count, planOf(world, way));
  await workers.again(way);
  return workers;
}

/** `count` processes with open connections. */
export function startWorkers(world: RedisWorld, count: number): Promise<StoreWorkers> {
  return StoreWorkers.start(count, planOf(world, 'store'));
}

function endOf({ workers }: RedisWorld, used: StoreWorkers): Promise<void> {
  return workers === undefined ? used.end() : used.rest();
}

/** A tenth more calls than the quota allows, at random times, from as many processes as there are shares. */
export async function runLoadOver(
  world: RedisWorld,
  way: WorkerPlan['way'],
  overMs: number,
  shares: readonly number[],
): Promise<UsedResult> {
  const { provider, emulator } = world;
  const workers = await workersFor(world, way, shares.length);
  await emulator.reset();
  const random = seededRandom(7);
  const beginAt = StoreWorkers.now() + 200;
  const times: number[][] = shares.map(() => []);
  for (let call = 0; call < overMs * perMs(provider) * 1.1; call++) {
    let drawn = random();
    const worker = shares.findIndex((share) => (drawn -= share) < 0);
    times.at(worker)?.push(beginAt + random() * overMs);
  }
  times.forEach((each, worker) => workers.order(worker, { kind: 'at', times: each }));
  await sleep(200 + overMs);
  await endOf(world, workers);
  const { rateLimited } = await emulator.report();
  const answered = workers.calls.filter(({ contentAt }) => contentAt !== undefined);
  const fromAt = beginAt + 1000;
  const untilAt = beginAt + overMs;
  return {
    calls: workers.calls.length,
    answered: answered.length,
    rateLimited: rateLimited.total,
    used: workers.sentBetween(fromAt, untilAt) / ((untilAt - fromAt) * perMs(provider)),
    p95Ms: percentile(
      answered.map(({ askedAt, contentAt = 0 }) => contentAt - askedAt),
      0.95,
    ),
  };
}

export function runFour(world: RedisWorld, overMs: number, way: 'store' | 'client' = 'store'): Promise<UsedResult> {
  return runLoadOver(world, way, overMs, SHARES);
}

/** The same load in one process, over a quota of its own. */
export function runOne(world: RedisWorld, overMs: number): Promise<UsedResult> {
  return runLoadOver(world, 'local', overMs, [1]);
}

/** The part of the quota that is used in so long a time. Looks again, where it is to be patient and that was little. */
async function usedIn(
  workers: StoreWorkers,
  provider: Provider,
  forMs: number,
  patient: boolean,
): Promise<() => number> {
  for (let looked = 1; ; looked++) {
    const fromAt = StoreWorkers.now();
    await sleep(forMs);
    const untilAt = StoreWorkers.now();
    // Calls are told of once they have ended.
    const used = (): number => workers.sentBetween(fromAt, untilAt) / ((untilAt - fromAt) * perMs(provider));
    if (!patient || looked === LOOKS || used() >= ENOUGH) return used;
  }
}

export interface KilledResult {
  readonly rateLimited: number;
  /** Of the quota, before; and by those who are left, from a second after the lease on. */
  readonly usedBefore: number;
  readonly usedAfter: number;
  readonly leaseMs: number;
}

/** Four that always want more than there is, of which one is killed. The burst is used up after `startMs`. `patient` as in {@link Loss}. */
export async function runKilled(
  world: RedisWorld,
  beforeMs: number,
  afterMs: number,
  { startMs = 1500, patient = false }: { readonly startMs?: number; readonly patient?: boolean } = {},
): Promise<KilledResult> {
  const { provider, emulator, leaseMs = LEASE_MS } = world;
  const workers = await workersFor(world, 'store', 4);
  await emulator.reset();
  for (let worker = 0; worker < 4; worker++) workers.order(worker, { kind: 'loops', count: ASKERS });
  await sleep(startMs);
  const fromAt = StoreWorkers.now();
  await sleep(beforeMs);
  const killedAt = StoreWorkers.now();
  await workers.kill(0);
  await sleep(leaseMs + 1000);
  const usedAfter = await usedIn(workers, provider, afterMs, patient);
  await endOf(world, workers);
  const { rateLimited } = await emulator.report();
  const used = (from: number, until: number): number =>
    workers.sentBetween(from, until) / ((until - from) * perMs(provider));
  return {
    rateLimited: rateLimited.total,
    // What the killed one had sent last it could not tell any more.
    usedBefore: used(fromAt, killedAt - 1500),
    usedAfter: usedAfter(),
    leaseMs,
  };
}

export interface LossResult {
  readonly rateLimited: number;
  readonly failed: number;
  readonly lost: number;
  readonly returned: number;
  /** Of the quota: while it is away, from a second on, and once it has been back for two seconds. */
  readonly usedAway: number;
  readonly usedBack: number;
  readonly longestWaitMs: number;
  /** A turn in the common line, one in that of a process, and what may pass until each is found to be needed. */
  readonly boundMs: number;
}

/** Four that always want more than there is, while something happens to the store. */
export async function runThrough(world: RedisWorld, loss: Loss): Promise<LossResult> {
  const { provider, emulator } = world;
  const { breaking, awayMs, mending, afterMs, settleMs = 2000, patient = false } = loss;
  const workers = await workersFor(world, 'store', 4);
  await emulator.reset();
  for (let worker = 0; worker < 4; worker++) workers.order(worker, { kind: 'loops', count: ASKERS });
  const told = (type: 'store.lost' | 'store.returned'): number =>
    workers.changes.filter((change) => change.type === type).length;
  await sleep(settleMs);
  const brokenAt = StoreWorkers.now();
  await breaking();
  await sleep(awayMs);
  while (patient && told('store.lost') < 4) await sleep(20);
  const mendedAt = StoreWorkers.now();
  await mending();
  await sleep(settleMs);
  while (patient && told('store.returned') < told('store.lost')) await sleep(20);
  const usedBack = await usedIn(workers, provider, afterMs, patient);
  await endOf(world, workers);
  const { rateLimited } = await emulator.report();
  const used = (from: number, until: number): number =>
    workers.sentBetween(from, until) / ((until - from) * perMs(provider));
  const waits = workers.calls.map(({ askedAt, sentAt }) => (sentAt ?? Infinity) - askedAt);
  // All askers at once, each after the other.
  const turnMs = (4 * ASKERS) / perMs(provider);
  return {
    rateLimited: rateLimited.total,
    failed: workers.calls.filter(({ code }) => code !== undefined).length,
    lost: told('store.lost'),
    returned: told('store.returned'),
    usedAway: used(brokenAt + 1000, mendedAt),
    usedBack: usedBack(),
    longestWaitMs: Math.max(...waits),
    boundMs: 2 * turnMs + COMMAND_MS + 2000,
  };
}

export interface Loss {
  readonly breaking: () => unknown;
  readonly awayMs: number;
  readonly mending: () => unknown;
  readonly afterMs: number;
  /** What passes before it breaks, and after it was mended until `afterMs` begin. Default: 2,000. */
  readonly settleMs?: number;
  /** Waits for all four to notice, to be back, and to use the quota, as a busy machine needs. Default: only as long as is said. */
  readonly patient?: boolean;
}
