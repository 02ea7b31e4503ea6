// Decisions a second and round trips a decision, beside two peers on the same server in one run.
import Bottleneck from 'bottleneck';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { firstValueFrom } from 'rxjs';
import { SUCCESS } from '../../lib/core/outcome.ts';
import { redisStore } from '../../lib/stores/redis/index.ts';
import { startRedisServer } from '../helpers/redisServer.ts';
import { writeResults } from '../prove/parts/writeResults.ts';

const DECISIONS = 5_000;
const AT_ONCE = 50;

const server = await startRedisServer();
const client = new Redis(server.port, '127.0.0.1');
const store = redisStore(client, { commandTimeoutMs: 5_000 });
const quota = store.quota('bench', { requestsPerMinute: 60_000_000, burstRequests: 1_000_000 });
const flexible = new RateLimiterRedis({ storeClient: client, points: 1_000_000_000, duration: 60 });
const bottleneck = new Bottleneck({
  datastore: 'ioredis',
  clientOptions: { host: '127.0.0.1', port: server.port },
  reservoir: 1_000_000_000,
});
await bottleneck.ready();

const ways: Record<string, () => Promise<unknown>> = {
  sluice: async () =>
    (await firstValueFrom(quota.acquire({ cost: { requests: 1, tokens: 0, explicit: true } }))).release(SUCCESS),
  'rate-limiter-flexible': () => flexible.consume('bench'),
  bottleneck: () => bottleneck.schedule(async () => undefined),
};

async function tripsSoFar(): Promise<number> {
  const text = await client.info('commandstats');
  return [...text.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

const rows: (string | number)[][] = [['', 'decisions a second', 'round trips a decision']];
const trips = new Map<string, number>();
for (const [name, decide] of Object.entries(ways)) {
  for (let i = 0; i < 200; i++) await decide();
  const before = await tripsSoFar();
  const startMs = performance.now();
  let left = DECISIONS;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await decide();
    }),
  );
  const tookMs = performance.now() - startMs;
  const each = ((await tripsSoFar()) - before) / DECISIONS;
  trips.set(name, each);
  rows.push([name, Math.round((DECISIONS / tookMs) * 1_000), each.toFixed(2)]);
}
store.close();
await bottleneck.disconnect();
client.disconnect();
await server.close();

await writeResults({
  name: 'redis-peers',
  script: 'bench',
  title: 'Decisions over Redis, beside peers',
  text: `
${DECISIONS} decisions by ${AT_ONCE} that ask at once and again, in one process, where there is room for all: through \`store.quota\`,
\`RateLimiterRedis\` of rate-limiter-flexible, and Bottleneck's Redis mode, on one \`redis-server\` of this run, with \`ioredis\`. A round trip is a
script that the server ran. Run it with \`npm run bench redis\`.`,
  rows,
  claims: [['fewer than one round trip a decision', (trips.get('sluice') ?? Infinity) < 1]],
});
