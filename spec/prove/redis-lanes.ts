import { crashHolder, spreadTurns, startLanes, stopHolder } from './parts/redisLanes.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const LEASE_MS = 3000;
const at = (values: readonly number[], share: number): number => values[Math.floor(share * (values.length - 1))] ?? NaN;

const world = await startLanes(LEASE_MS);
const spread = await spreadTurns(world, 40, 24);
const stopped = await stopHolder(world, LEASE_MS + 1000);
const crashed = await crashHolder(world);
await world.close();

await writeResults({
  name: 'redis-lanes',
  title: 'Conversations across processes',
  text: `
Four processes share lanes through one \`redis-server\` (lease ${LEASE_MS} ms) and ask one emulator, a process of its own. 40 conversations of 24
turns: two turns in a row are asked for in one process, the next two in another, all before the first has ended. The emulator judges what overlaps and in which
order it came. "Passed on": from the end of a turn, as its process saw it, to the start of the next, by the wall clock that the
processes share, in whole milliseconds.

Then one process stands still (SIGSTOP) in the middle of an answer for a second longer than its lease while more of the answer comes, and goes on (SIGCONT)
when another process has had its turn. Last, one is killed (\`kill -9\`) in the middle of an answer, with another turn of its own in line.`,
  rows: [
    ['what', 'result'],
    ['turns answered', `${spread.answered} of 960`],
    ['requests that overlapped another of their conversation', spread.overlaps],
    ['conversations whose requests arrived in order', `${spread.inOrder} of 40`],
    [
      'passed on within a process: median, 99th percentile',
      `${ms(at(spread.withinMs, 0.5))}, ${ms(at(spread.withinMs, 0.99))}`,
    ],
    [
      'passed on to another process: median, 99th percentile',
      `${ms(at(spread.betweenMs, 0.5))}, ${ms(at(spread.betweenMs, 0.99))}`,
    ],
    ['scripts run for a turn, looks and renewals included', spread.scriptsPerTurn.toFixed(1)],
    ['turns in the store afterwards', spread.left.turns],
    ['keys in the store afterwards, of all lanes together', spread.left.keys],
    ['stopped: the lane was free after', ms(stopped.freeAfterMs)],
    ['stopped: its turn ended with', stopped.result],
    ['stopped: after it went on', ms(stopped.endedAfterMs)],
    ['stopped: its turn that waited was', stopped.behind],
    ['killed: the lane was free after', ms(crashed.freeAfterMs)],
  ],
  claims: [
    ['no two calls of a conversation overlapped', spread.overlaps === 0],
    ['turns of every conversation kept their order', spread.inOrder === 40 && spread.answered === 960],
    [
      'to pass on to another process takes at most 50 ms more than within one, as the median',
      at(spread.betweenMs, 0.5) - at(spread.withinMs, 0.5) <= 50,
    ],
    ['nothing of a conversation was left', spread.left.turns === 0 && spread.left.keys <= 3],
    ['a slow process that lost its lease did not finish its turn', stopped.result === 'lane_lost'],
    ['its lane was free within the lease', stopped.freeAfterMs <= LEASE_MS + 100 && stopped.next === 'answered'],
    ['the lane of a killed process was free within the lease', crashed.freeAfterMs <= LEASE_MS + 100],
  ],
});
