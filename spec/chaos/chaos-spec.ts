import { expect } from 'chai';
import { describeWithRedis } from '../helpers/redisServer.ts';
import type { WorldName } from './plan/ChaosPlan.ts';
import { drawPlan, worldOf } from './plan/drawPlan.ts';
import { reproduction, told } from './report.ts';
import { rotation } from './rotation.ts';
import { played } from './runSeed.ts';

const [from, to] = rotation(50, Date.now());
const seeds = Array.from({ length: to - from + 1 }, (_, i) => from + i);

async function holds(world: WorldName): Promise<void> {
  const drawn = seeds.filter((seed) => worldOf(seed) === world);
  const own = drawn.length > 0 ? drawn : [from];
  const failures: string[] = [];
  const play = async (seed: number): Promise<void> => {
    const plan = drawPlan(seed, world);
    const { violations, calls, ...result } = await played(plan);
    if (violations.length > 0) failures.push(`${reproduction(plan)}\n${told({ violations, calls, ...result })}`);
    else expect(calls, `calls of seed ${seed}`).to.be.above(0);
  };
  if (world === 'virtual') for (const seed of own) await play(seed);
  // Most of their time they wait.
  else await Promise.all(own.map(play));
  expect(failures.join('\n')).to.equal('');
}

describe(`chaos: all invariants hold for today's seeds, ${from} to ${to}`, () => {
  it('in virtual time', () => holds('virtual')).timeout(300_000);
  it('over HTTP', () => holds('http')).timeout(300_000);
});

describeWithRedis(`chaos: all invariants hold for today's seeds, ${from} to ${to}, with a store`, () => {
  it('over HTTP, with two clients of one Redis server', () => holds('redis')).timeout(300_000);
});
