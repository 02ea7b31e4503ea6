import { Redis } from 'ioredis';
import { concat, lastValueFrom, NEVER, of, take } from 'rxjs';
import type { SluiceError } from '../../lib/core/errors.ts';
import type { ConcurrencyPort } from '../../lib/core/ports.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';
import { redisStore } from '../../lib/stores/redis/redisStore.ts';
import type { RedisStore } from '../../lib/stores/redis/redisStore.ts';
import { runModule } from '../helpers/runModule.ts';

const NAME = 'case';
const SLICE_MS = 20;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls under a concurrency limit that processes share, for reports about those. */
export class SlotsWorld {
  readonly results: string[] = [];
  readonly #client: Redis;
  readonly #store: RedisStore;
  readonly #limit: ConcurrencyPort;
  readonly #numbers: readonly number[];

  static async open(port: number, limit: number, leaseMs = 3000): Promise<SlotsWorld> {
    const client = new Redis(port, '127.0.0.1');
    await client.flushall();
    return new SlotsWorld(client, port, limit, leaseMs);
  }

  private constructor(client: Redis, port: number, limit: number, leaseMs: number) {
    this.#client = client;
    this.#numbers = [port, limit, leaseMs];
    this.#store = redisStore(client, { commandTimeoutMs: 5000, sliceMs: SLICE_MS, leaseMs });
    this.#limit = this.#store.concurrency(NAME, { limit });
  }

  async run({
    op,
    times = 1,
    ms = 0,
  }: {
    readonly op: string;
    readonly times?: number;
    readonly ms?: number;
  }): Promise<void> {
    if (op === 'wait_ms') await pause(ms);
    else if (op === 'process_takes_slot_then_SIGKILL') await this.#takeAndDie();
    else if (op === 'stream_then_unsubscribe_after_first') {
      for (let i = 0; i < times; i++)
        await this.#call(concat(of('first'), NEVER).pipe(limitConcurrency(this.#limit), take(1)));
    } else await this.#call(of('answer').pipe(limitConcurrency(this.#limit, { maxWaitMs: 1000 })));
  }

  /** As the store has counted, once what is idle has been given back. */
  async inFlight(): Promise<number> {
    await pause(10 * SLICE_MS);
    const held = await this.#client.hvals(`sluice:{${NAME}}:slots:holders`);
    return held.reduce((sum, holder) => sum + Number(holder.split(' ')[0]), 0);
  }

  async close(): Promise<void> {
    this.#store.close();
    await pause(SLICE_MS);
    this.#client.disconnect();
  }

  async #call(answer: Parameters<typeof lastValueFrom<string>>[0]): Promise<void> {
    const ended = lastValueFrom(answer).then(
      () => 'ok',
      (error: unknown) => (error as SluiceError).code,
    );
    this.results.push(await ended);
  }

  /** A process that takes a slot, says so, and keeps it until it is killed. */
  async #takeAndDie(): Promise<void> {
    const [port, limit, leaseMs] = this.#numbers;
    const code = `
      import { Redis } from 'ioredis';
      import { redisStore } from './lib/stores/redis/redisStore.ts';
      const store = redisStore(new Redis(${port}, '127.0.0.1'), { commandTimeoutMs: 5000, leaseMs: ${leaseMs} });
      store.concurrency('${NAME}', { limit: ${limit} }).acquire({}).subscribe(() => console.log('taken'));
    `;
    await runModule(code, {}, (_line, kill) => kill('SIGKILL'));
  }
}
