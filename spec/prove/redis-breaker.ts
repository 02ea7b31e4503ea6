import { ONE_PROBE, runDeadProber, runOutage, startBreakerWorld } from './parts/redisBreaker.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const OPEN_MS = 1000;
const LEASE_MS = 3000;
const PROBES = 8;

const world = await startBreakerWorld();
const { halfOpenMaxProbes: _, ...asShared } = ONE_PROBE;
const one = await runOutage(world, { shared: true, breaker: { ...ONE_PROBE, openMs: OPEN_MS }, probes: PROBES });
const share = await runOutage(world, { shared: true, breaker: { ...asShared, openMs: OPEN_MS }, probes: PROBES });
const apart = await runOutage(world, { shared: false, breaker: { ...ONE_PROBE, openMs: OPEN_MS }, probes: PROBES });
const dead = await runDeadProber(world, LEASE_MS);
await world.close();

await writeResults({
  name: 'redis-breaker',
  title: 'One breaker for four processes',
  text: `
Four processes, three calls at a time in each and 10 ms between two, ask one emulator through \`createSluice\`, with one \`redis-server\`. The
provider goes down (503). Once every one of the twelve has been refused with \`circuit_open\`, all that still arrives is a probe: the
provider's own log says when, and of which process. After ${PROBES} of them it is up again.

The breaker opens after 5 failures in a row, for ${OPEN_MS} ms each time. "One probe" has \`halfOpenMaxProbes: 1\`: after a probe has failed the
next one may arrive ${OPEN_MS} ms later, whichever process sends it. "A tenth probes" is the default of \`halfOpenShare\`: while a probe is out,
every tenth that asks is one as well. "Apart": the same processes without a store. Last, the process whose probe the provider leaves without an answer
is killed (\`kill -9\`); its probe is leased for ${LEASE_MS} ms.`,
  rows: [
    ['what', 'one probe', 'a tenth probes', 'apart'],
    ['requests before all knew', one.opening, share.opening, apart.opening],
    ['probes seen', one.probes, share.probes, apart.probes],
    ['processes that made them', one.probers, share.probers, apart.probers],
    ['shortest time between two', ms(one.leastGapMs), ms(share.leastGapMs), ms(apart.leastGapMs)],
    ['longest', ms(one.longestGapMs), ms(share.longestGapMs), ms(apart.longestGapMs)],
    ['all answered, after the end of the outage', ms(one.backAfterMs), ms(share.backAfterMs), ms(apart.backAfterMs)],
    ['requests while a probe had no answer', dead.meanwhile, '', ''],
    ['next probe after the death of its process', ms(dead.nextAfterMs), '', ''],
  ],
  claims: [
    ['all processes together sent one probe in each open time', one.leastGapMs >= OPEN_MS],
    ['processes apart did not', apart.leastGapMs < OPEN_MS / 2],
    ['while a probe had no answer there was no other', dead.meanwhile === 1],
    ['the probe of a dead process was free within its lease', dead.fromAnother && dead.nextAfterMs <= LEASE_MS + 200],
    ['all processes went on within two open times', one.backAfterMs <= 2 * OPEN_MS],
  ],
});
