import { startTimer } from '../../../lib/core/runtime.ts';
import type { Runtime } from '../../../lib/core/runtime.ts';
import type { LanesCall, LanesRules } from '../../../lib/stores/redis/LanesCall.ts';
import { LANES_KEYS } from '../../../lib/stores/redis/LanesCall.ts';
import type { NodeRedisClient } from '../../../lib/stores/redis/RedisClient.ts';
import { SharedTurns } from '../../../lib/stores/redis/SharedTurns.ts';

/** The way of one process to the server. */
export interface Way {
  readonly client: NodeRedisClient;
  /** `hangs`: commands arrive, and no answer does; `cut`: nothing arrives or comes back. */
  state: 'up' | 'hangs' | 'cut';
}

const TRIP_MS = 0.5;

/** A server for lanes in virtual time: it decides as the script does, and can be lost in all the ways of a real one. */
export class LanesServer {
  /** Calls for lanes that have arrived. */
  calls = 0;
  readonly #runtime: Runtime;
  #turns: SharedTurns | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  way(): Way {
    const run = (_: string, { keys, arguments: args }: { keys: string[]; arguments: string[] }): Promise<unknown> =>
      new Promise((resolve) => {
        if (way.state === 'cut') return;
        startTimer(this.#runtime, TRIP_MS, () => {
          const reply = keys.length === LANES_KEYS.length ? this.#call(args) : 'OK';
          if (way.state === 'up') startTimer(this.#runtime, TRIP_MS, () => resolve(reply));
        });
      });
    const way: Way = { client: { evalSha: run, eval: run }, state: 'up' };
    return way;
  }

  /** Everything is gone, as after FLUSHALL or a restart. */
  flush(): void {
    this.#turns = undefined;
  }

  #call([rules = '', call = '']: readonly string[]): unknown {
    this.calls++;
    const asked = JSON.parse(call) as LanesCall;
    const nowUs = Math.floor(this.#runtime.clock.wallNow() * 1000);
    this.#turns ??= new SharedTurns(JSON.parse(rules) as LanesRules, nowUs, asked.known);
    return this.#turns.call(nowUs, asked);
  }
}
