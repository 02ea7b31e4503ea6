import { invariants } from '../chaos/invariants/invariants.ts';
import type { WorldName } from '../chaos/plan/ChaosPlan.ts';
import { drawPlan, worldOf } from '../chaos/plan/drawPlan.ts';
import { oneLine, told } from '../chaos/report.ts';
import { played } from '../chaos/runSeed.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { writeResults } from './parts/writeResults.ts';

const SEEDS = 1_000;
/** Plans that are not virtual wait most of their time. */
const AT_ONCE = 4;
const WORLDS: readonly (readonly [WorldName, string])[] = [
  ['virtual', 'virtual time'],
  ['http', 'HTTP'],
  ['redis', 'HTTP, two clients of one Redis'],
];

const sums = new Map(
  WORLDS.map(([world]) => [
    world,
    {
      plans: 0,
      calls: 0,
      by: { call: 0, fetch: 0, gateway: 0 },
      answered: 0,
      failed: 0,
      left: 0,
      attempts: 0,
      restarts: 0,
      shocks: 0,
    },
  ]),
);
const broken = new Map<string, number>();
let line = 'starting';
await withLiveLine(
  () => line,
  async () => {
    let plans = 0;
    const play = async (seed: number): Promise<void> => {
      const plan = drawPlan(seed);
      const beganMs = performance.now();
      const result = await played(plan);
      const tookMs = performance.now() - beganMs;
      line = `${++plans} of ${SEEDS} plans`;
      if (result.violations.length > 0) console.log(`${oneLine(plan, result, tookMs)}\n${told(result)}`);
      for (const { invariant } of result.violations) broken.set(invariant, (broken.get(invariant) ?? 0) + 1);
      const sum = sums.get(plan.world);
      if (sum === undefined) return;
      sum.plans++;
      sum.calls += result.calls;
      for (const { by } of plan.calls) if (by !== undefined) sum.by[by]++;
      sum.answered += result.answered;
      sum.failed += Object.values(result.failed).reduce((total, count) => total + count, 0);
      sum.left += result.left;
      sum.attempts += result.attempts;
      sum.restarts += result.restarts;
      sum.shocks += plan.shocks.length;
    };
    const seeds = Array.from({ length: SEEDS }, (_, i) => i + 1);
    for (const seed of seeds.filter((one) => worldOf(one) === 'virtual')) await play(seed);
    const others = seeds.filter((one) => worldOf(one) !== 'virtual');
    const worker = async (): Promise<void> => {
      for (let seed = others.shift(); seed !== undefined; seed = others.shift()) await play(seed);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  },
);

await writeResults({
  name: 'chaos',
  title: 'A thousand plans of chaos',
  text: `
Seeds 1 to 1,000. Each draws a policy, providers with limits and faults, calls with tenants, conversations, priorities, deadlines and
callers that leave, and shocks: policies reloaded, limits changed without a word, clocks corrected, a process that stands still, a Redis server
emptied, silent or gone. Every fact of a run is shown to all invariants as it happens. How it works, and how to run one seed:
[Chaos](../reference/chaos.md). *Shocks* are those of the plans; what providers do wrong comes on top. Over HTTP, and in
a fifth of the plans in virtual time, some calls are made by \`sluice.call\`, by SDKs that have \`sluice.fetch\`, and by clients of a
gateway where there are sockets; the others by methods of the client.`,
  rows: [
    [
      'played in',
      'plans',
      'calls',
      'by `call`',
      'by `fetch`',
      'by a gateway',
      'answered',
      'failed',
      'left by callers',
      'attempts',
      'restarts',
      'shocks',
    ],
    ...WORLDS.map(([world, title]) => {
      const sum = sums.get(world);
      return [
        title,
        ...(sum
          ? [
              sum.plans,
              sum.calls,
              sum.by.call,
              sum.by.fetch,
              sum.by.gateway,
              sum.answered,
              sum.failed,
              sum.left,
              sum.attempts,
              sum.restarts,
              sum.shocks,
            ]
          : []),
      ];
    }),
  ],
  claims: [
    ['all plans were played to their end', !broken.has('everyPlanCanBePlayed')],
    ...invariants.map(({ name, promise }): [string, boolean] => [`\`${name}\`: ${promise}`, !broken.has(name)]),
  ],
});
