import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LayerOptions } from '../../../lib/index.ts';
import type { RedisStoreOptions } from '../../../lib/stores/redis/index.ts';

const program = fileURLToPath(new URL('storeWorkerChild.ts', import.meta.url));

/** What a worker is to be. All times are of {@link StoreWorkers.now}. */
export interface WorkerPlan {
  /** Over a quota of its own, over one in the store, or through a client under a policy with that store. */
  readonly way: 'local' | 'store' | 'client';
  readonly baseURL: string;
  readonly model: string;
  readonly redisPort: number;
  readonly store?: Omit<RedisStoreOptions, 'onChange'>;
  readonly rates: LayerOptions & { readonly maxWaitMs: number };
}

export type WorkerOrder =
  /** What is ordered from now on goes that way; tells when it is open. */
  | { readonly kind: 'way'; readonly way: WorkerPlan['way'] }
  /** Opens connections, so that what comes later does not have to. */
  | { readonly kind: 'warm' }
  /** A call at each of these times. */
  | { readonly kind: 'at'; readonly times: readonly number[] }
  /** So many that ask, read the answer, and ask again. */
  | { readonly kind: 'loops'; readonly count: number }
  /** No further calls until the next order; tells when all have ended. */
  | { readonly kind: 'end' };

export interface CallDone {
  readonly kind: 'call';
  readonly askedAt: number;
  sentAt: number | undefined;
  contentAt: number | undefined;
  /** Of its failure. */
  code: string | undefined;
}

interface Change {
  readonly kind: 'change';
  readonly type: 'store.lost' | 'store.returned';
  readonly at: number;
}

type Told = CallDone | Change | { readonly kind: 'ready' | 'warm' | 'ended' };

/** Processes that make calls, and what they tell of them. */
export class StoreWorkers {
  readonly calls: CallDone[] = [];
  readonly changes: Change[] = [];
  readonly #children: ChildProcess[] = [];

  /** The same clock in all processes. */
  static now(): number {
    return performance.timeOrigin + performance.now();
  }

  /** Starts `count` of them, with open connections. */
  static async start(count: number, plan: WorkerPlan): Promise<StoreWorkers> {
    const workers = new StoreWorkers();
    for (let i = 0; i < count; i++) workers.#children.push(fork(program, [JSON.stringify(plan)], { execArgv: [] }));
    await Promise.all(workers.#children.map((child) => workers.#heard(child, 'ready')));
    for (const child of workers.#children) child.on('message', (told: Told) => workers.#hear(told));
    await workers.#all({ kind: 'warm' }, 'warm');
    return workers;
  }

  order(worker: number, order: WorkerOrder): void {
    this.#children[worker]?.send(order);
  }

  /** Ends one as a crash does: nothing of it is told to anybody. */
  async kill(worker: number): Promise<void> {
    const child = this.#children[worker];
    if (!child) return;
    this.#children.splice(worker, 1);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** The same processes for another run: what the ones before have told is forgotten. */
  async again(way: WorkerPlan['way']): Promise<void> {
    this.calls.length = 0;
    this.changes.length = 0;
    await this.#all({ kind: 'way', way }, 'ready');
  }

  /** Lets all calls end. */
  async rest(): Promise<void> {
    await this.#all({ kind: 'end' }, 'ended');
  }

  /** Lets all calls end, and then all processes. */
  async end(): Promise<void> {
    await this.rest();
    this.close();
  }

  close(): void {
    for (const child of this.#children) if (child.connected) child.disconnect();
  }

  /** Sent within that time. */
  sentBetween(fromAt: number, untilAt: number): number {
    return this.calls.filter(({ sentAt = 0 }) => sentAt >= fromAt && sentAt < untilAt).length;
  }

  async #all(order: WorkerOrder, answer: 'ready' | 'warm' | 'ended'): Promise<void> {
    const heard = this.#children.map((child) => this.#heard(child, answer));
    for (const child of this.#children) child.send(order);
    await Promise.all(heard);
  }

  #hear(told: Told): void {
    if (told.kind === 'call') this.calls.push(told);
    if (told.kind === 'change') this.changes.push(told);
  }

  #heard(child: ChildProcess, kind: Told['kind']): Promise<void> {
    return new Promise((resolve, reject) => {
      const listen = (told: Told): void => {
        if (told.kind !== kind) return;
        child.off('message', listen);
        resolve();
      };
      child.on('message', listen);
      child.once('exit', (code) => reject(new Error(`a worker ended before it was ${kind}: exit code ${code}`)));
    });
  }
}
