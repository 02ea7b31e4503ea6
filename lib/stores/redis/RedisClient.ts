import { invalidOption } from '../../core/errors.ts';

/** What is used of a client of the package `redis`: of a single server, a pool or a cluster. */
export interface NodeRedisClient {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** What is used of a client of the package `ioredis`: of a single server or a cluster. */
export interface IoRedisClient {
  evalsha(sha: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** A client that is connected, or connects by itself. It stays yours: it is never closed here. */
export type RedisClient = NodeRedisClient | IoRedisClient;

/** The two calls that the store makes. `eval` leaves the script in the server's cache, so that nothing has to be loaded. */
export interface ScriptCalls {
  evalsha(sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
}

/**
 * Tells by its shape which kind of client it is.
 * @throws SluiceError `invalid_option` if it is neither.
 */
export function scriptCallsOf(client: RedisClient): ScriptCalls {
  const calls = shaped(client);
  if (calls === undefined) throw invalidOption('client', 'a client of the package redis or ioredis', client);
  hearErrors(client);
  return calls;
}

function shaped(client: unknown): ScriptCalls | undefined {
  if (typeof client !== 'object' || client === null) return undefined;
  if (has<NodeRedisClient>(client, 'evalSha')) {
    return {
      evalsha: (sha, keys, args) => client.evalSha(sha, { keys: [...keys], arguments: [...args] }),
      eval: (script, keys, args) => client.eval(script, { keys: [...keys], arguments: [...args] }),
    };
  }
  if (has<IoRedisClient>(client, 'evalsha')) {
    return {
      evalsha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
      eval: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args),
    };
  }
  return undefined;
}

function has<T extends object>(client: object, method: keyof T & string): client is T {
  const methods = client as Record<string, unknown>;
  return typeof methods[method] === 'function' && typeof methods['eval'] === 'function';
}

const heard = new WeakSet<object>();

/** A client whose `error` nobody listens to ends the process, or prints; what the store has to know its calls tell it. */
function hearErrors(client: object): void {
  const { on } = client as { on?: unknown };
  if (typeof on !== 'function' || heard.has(client)) return;
  heard.add(client);
  on.call(client, 'error', () => {});
}
