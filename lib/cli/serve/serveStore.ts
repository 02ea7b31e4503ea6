import { redisStore } from '../../stores/redis/redisStore.ts';
import type { RedisClient, RedisStore } from '../../stores/redis/index.ts';
import { wrongFlag } from '../flags.ts';

export interface ServeStore {
  readonly store: RedisStore;
  close(): void;
}

interface OpenClient {
  readonly client: RedisClient;
  close(): void;
}

/**
 * The store at the address that the policy names. It may come later: until then it is lost, and the policy says what that
 * means.
 *
 * @throws SluiceError `invalid_option` where it is no address, or there is no package for it.
 */
export async function serveStore(url: string, tell: (line: string) => void): Promise<ServeStore> {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url))
    throw wrongFlag('store.url of the policy is no address of Redis');
  const open = (await nodeRedis(url)) ?? (await ioRedis(url));
  if (open === undefined) throw wrongFlag('the policy names a store, which needs a package: npm install redis');
  const store = redisStore(open.client, {
    onChange: ({ type, reason }) => tell(`the store is ${type}${reason === undefined ? '' : ` (${reason})`}`),
  });
  return {
    store,
    close() {
      store.close();
      open.close();
    },
  };
}

async function nodeRedis(url: string): Promise<OpenClient | undefined> {
  const module = await ifThere(() => import('redis'));
  if (module === undefined) return undefined;
  const client = module.createClient({ url });
  client.on('error', () => {});
  client.connect().catch(() => {});
  return { client, close: () => client.destroy() };
}

async function ioRedis(url: string): Promise<OpenClient | undefined> {
  const module = await ifThere(() => import('ioredis'));
  if (module === undefined) return undefined;
  const client = new module.Redis(url);
  return { client, close: () => client.disconnect() };
}

async function ifThere<T>(load: () => Promise<T>): Promise<T | undefined> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
