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
  const failures: string[] = [];
  for (const seed of seeds.filter((one) => worldOf(one) === world)) {
    const plan = drawPlan(seed);
    const result = await played(plan);
    expect(result.violations.length > 0 || result.calls > 0, `seed ${seed} makes calls`).to.equal(true);
    if (result.violations.length > 0) failures.push(`${reproduction(plan)}\n${told(result)}`);
  }
  expect(failures.join('\n')).to.equal('');
}

describe(`chaos: all invariants hold for today's seeds, ${from} to ${to}`, () => {
  it('in virtual time', () => holds('virtual')).timeout(60_000);
  it('over HTTP', () => holds('http')).timeout(60_000);
});

describeWithRedis(`chaos: all invariants hold for today's seeds, ${from} to ${to}, with a store`, () => {
  it('over HTTP, with two clients of one Redis server', () => holds('redis')).timeout(60_000);
});
