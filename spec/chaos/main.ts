import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ChaosPlan, WorldName } from './plan/ChaosPlan.ts';
import { drawPlan, worldOf } from './plan/drawPlan.ts';
import { played, shrunk } from './runSeed.ts';
import { oneLine, reproduction, told } from './report.ts';

// `npm run chaos -- --seed 17`, `--seeds 1..1000`, `--plan file.json`; `--virtual`, `--http` or `--redis` where the seed
// would choose another world; `--print` shows the plan; `--keep` leaves a failing plan as it is.

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    plan: { type: 'string' },
    virtual: { type: 'boolean' },
    http: { type: 'boolean' },
    redis: { type: 'boolean' },
    print: { type: 'boolean' },
    keep: { type: 'boolean' },
  },
});
/** A failing plan is made smaller for so long at most. */
const SHRINKS_FOR_MS = 60_000;

const world: WorldName | undefined = values.virtual
  ? 'virtual'
  : values.http
    ? 'http'
    : values.redis
      ? 'redis'
      : undefined;
const tally = { plans: 0, calls: 0, attempts: 0, failed: 0 };
const startedMs = performance.now();
for (const plan of plans()) await play(plan);
const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
console.log(
  `${tally.plans} plans, ${tally.calls} calls, ${tally.attempts} attempts in ${seconds} s: ${tally.failed === 0 ? 'all held' : `${tally.failed} FAILED`}`,
);
if (tally.failed > 0) process.exitCode = 1;

async function play(plan: ChaosPlan): Promise<void> {
  if (values.print) console.log(JSON.stringify(plan, undefined, 2));
  const beganMs = performance.now();
  const result = await played(plan);
  tally.plans++;
  tally.calls += result.calls;
  tally.attempts += result.attempts;
  const tookMs = performance.now() - beganMs;
  if (result.violations.length === 0) {
    if (values.seeds === undefined || plan.world !== 'virtual') console.log(oneLine(plan, result, tookMs));
    return;
  }
  tally.failed++;
  console.log(`${oneLine(plan, result, tookMs)}\n${told(result)}`);
  console.log(
    `  again:    ${values.plan === undefined ? reproduction(plan) : `npm run chaos -- --plan ${values.plan}`}`,
  );
  if (values.keep) return;
  const smaller = await shrunk(plan, result, SHRINKS_FOR_MS);
  const folder = join(tmpdir(), 'sluice-chaos');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${plan.world}-${plan.seed}.json`);
  writeFileSync(file, JSON.stringify(smaller, undefined, 2));
  console.log(`  smallest: npm run chaos -- --plan ${file}`);
  console.log(`            ${smaller.calls.length} of ${plan.calls.length} calls; ${JSON.stringify(smaller)}`);
}

function* plans(): Generator<ChaosPlan> {
  if (values.plan !== undefined) {
    yield JSON.parse(readFileSync(values.plan, 'utf8')) as ChaosPlan;
    return;
  }
  const [from = NaN, to = from] = (values.seeds ?? values.seed ?? '').split('..').map(Number);
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from > to) {
    throw new Error('name what to play: --seed N, --seeds FROM..TO or --plan file.json');
  }
  for (let seed = from; seed <= to; seed++) yield drawPlan(seed, world ?? worldOf(seed));
}
