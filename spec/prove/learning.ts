import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { learningEmulator, runLearning } from './parts/learning.ts';
import type { LearningPlan, LearningResult } from './parts/learning.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const FOR_MS = 70_000;
const plan = (name: string, perMinute: number, more: Partial<LearningPlan>): LearningPlan => ({
  name,
  perMinute,
  burst: Math.max(1, perMinute / 60),
  headers: false,
  forMs: FOR_MS,
  from: 10_000,
  workers: perMinute >= 3000 ? 60 : 24,
  ...more,
});

const wrong = (perMinute: number): LearningPlan[] =>
  [false, true].flatMap((headers) => [
    plan('twice the real one', perMinute, { headers, configured: 2 * perMinute }),
    plan('none', perMinute, { headers }),
  ]);
const at600 = wrong(600);
const at3000 = wrong(3000);
const slow = [60, 120, 300].flatMap((perMinute) => [
  plan('twice the real one', perMinute, { configured: 2 * perMinute }),
  plan('none', perMinute, {}),
]);
const fallsTo = { perMinute: 300, fromMs: 25_000, toMs: 35_000 };
const halves = [false, true].map((headers) =>
  plan('right, halves for 10 s', 600, { headers, configured: 600, fallsTo, from: 45_000 }),
);
const shared = [false, true].map((headers) =>
  plan('right, but another client takes 40 %', 600, { headers, configured: 600, other: 0.4 }),
);
const stalls = [plan('right, stalls for 5 s', 600, { configured: 600, stallAtMs: 25_000, from: 0, workers: 32 })];

const run = async (one: LearningPlan): Promise<readonly [LearningPlan, LearningResult]> => {
  const emulator = await startEmulatorProcess(learningEmulator(one));
  try {
    return [one, await runLearning(one, emulator)];
  } finally {
    await emulator.close();
  }
};
// Side by side as far as the machine has room for it: what a row needs is that no timer is late.
const results: (readonly [LearningPlan, LearningResult])[] = [];
for (const group of [[...at600, ...shared], [...slow, ...halves, ...stalls], at3000.slice(0, 2), at3000.slice(2)]) {
  results.push(...(await Promise.all(group.map(run))));
}

const of = (plans: readonly LearningPlan[]): LearningResult[] =>
  results.filter(([one]) => plans.includes(one)).map(([, result]) => result);
const fast = of([...at600, ...at3000]);
await writeResults({
  name: 'learning',
  title: 'A quota that is wrong',
  text: `
Workers that never rest ask a provider through \`createSluice\`, for 70 s. *Configured* is what the policy says of the quota. The
provider is the emulator, each row with one of its own in a process of its own; it counts what it rejects and lets a second's
worth through at once. *Headers*: whether it reports its limits; otherwise it says nothing, also not how long to wait. One attempt
a call, so that each 429 is one.

*429s at first*: within the first 10 s (where the quota halves: 45 s). The other columns are of the rest. *Use* is what was
let in, of what the quota allowed. *Latest timer* is how late a timer of the client's process came at worst: where it is
above 100 ms the table shows the machine. Rows of 600 a minute and less ran side by side, those of 3,000 two at a time.

On a machine with other work, the program needs the processor before it (\`chrt -r 10 npm run prove learning\` on Linux): otherwise
the table shows the machine.`,
  rows: [
    ['configured', 'real', 'headers', '429s at first', '429s', 'share', 'use', 'most in 25 s', 'latest timer'],
    ...results.map(([one, result]) => [
      one.name,
      one.perMinute,
      one.headers ? 'yes' : 'no',
      result.rateLimitedBefore,
      result.rateLimited,
      `${(100 * result.rejectedShare).toFixed(2)} %`,
      `${(100 * result.use).toFixed(1)} %`,
      result.mostIn25s,
      ms(result.lateMs),
    ]),
  ],
  claims: [
    [
      'twice the real quota or none configured, 600 and 3,000 a minute, with headers and without: under 2 % of 429s after 10 s, and at least 95 % used',
      fast.length === 8 && fast.every(({ rejectedShare, use }) => rejectedShare < 0.02 && use >= 0.95),
    ],
    ['below 600 a minute: at most one 429 in 25 s', of(slow).every(({ mostIn25s }) => mostIn25s <= 1)],
    [
      'halved for 10 s: under 2 % of 429s over all, and at least 95 % used from 10 s after the return on',
      of(halves).every(
        ({ rateLimitedBefore, rateLimited, requests, use }) =>
          (rateLimitedBefore + rateLimited) / requests < 0.02 && use >= 0.95,
      ),
    ],
    [
      'another client takes 40 %: under 2 % of 429s, and at least 95 % of the rest used',
      of(shared).every(({ rejectedShare, use }) => rejectedShare < 0.02 && use >= 0.95),
    ],
    ['a stall of 5 s: no 429, neither then nor afterwards', of(stalls).every(({ rateLimited }) => rateLimited === 0)],
  ],
});
