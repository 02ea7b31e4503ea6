// CPU time of a call and of its chunks: against the SDK's own stream loop on the same bytes, by itself over a transport
// that is there at once, and for each operator against doing nothing. `FAST=1` shortens it to a trial.
import { map } from 'rxjs';
import { writeResults } from '../prove/parts/writeResults.ts';
import type { ResultsTable } from '../prove/parts/writeResults.ts';
import { ALL, operatorWays, sourceOf } from './parts/operatorWays.ts';
import type { Operator } from './parts/operatorWays.ts';
import { cpuRounds, median } from './parts/cpu.ts';
import { otherCode } from './parts/otherCode.ts';
import { besideSdk } from './parts/sdkPairs.ts';
import { FULL, SDK, sdkWays } from './parts/sdkWays.ts';
import type { SdkWay } from './parts/sdkWays.ts';
import { addedOf, measureSizes, ratioOf, SIZES, usOf } from './parts/sizes.ts';
import type { BySize, Size, SizePlan } from './parts/sizes.ts';
import { inCall, stackWays, TRANSPORT, WHOLE } from './parts/stackWays.ts';

const fast = process.env['FAST'] === '1';
const plan: SizePlan = fast
  ? { rounds: 5, chunksASample: 2_000, warmUpCalls: 1_000 }
  : { rounds: 11, chunksASample: 5_000, warmUpCalls: 20_000 };

function addedTable(sizes: BySize, to: string): ResultsTable['rows'] {
  const ways = Object.keys(sizes[1][0] ?? {});
  return [
    ['us', ...SIZES.map((size) => size.toLocaleString('en')), 'added by call', 'added by chunk'],
    ...ways.map((way) => {
      const { callUs, chunkUs } = addedOf(sizes, way, to);
      const added = way === to ? ['', ''] : [callUs.toFixed(1), chunkUs.toFixed(3)];
      return [way, ...SIZES.map((size) => usOf(sizes[size], way).toFixed(1)), ...added];
    }),
  ];
}

for (const size of SIZES) {
  const lengths = new Set(await Promise.all(Object.values(sdkWays(size)).map((way) => way())));
  if (lengths.size !== 1) throw new Error('all ways must read the same text');
}
const ways = (Object.keys(sdkWays(1)) as SdkWay[]).filter((way) => way !== SDK);
const sdk = {} as Record<SdkWay, BySize>;
for (const way of ways) sdk[way] = await besideSdk(way, plan);
const stack = await measureSizes(stackWays, plan);

const OTHER_FUNCTIONS = 1_500;
const other = otherCode(OTHER_FUNCTIONS);
const call = stackWays(1)[WHOLE];
const both = (): void => {
  other();
  call();
};
const cold = await cpuRounds({ call, other, both }, { times: 500, rounds: plan.rounds, warmUp: 10 });
const afterOther = median(cold.map((row) => row.both - row.other));
const byItself = median(cold.map((row) => row.call));

const NOTHING = 'nothing';
const PARSING = '`JSON.parse` of each chunk';
const json = JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content: ' word' } }] });
const parsing: Operator = (source) => source.pipe(map(() => JSON.parse(json) as unknown));
const rows: Readonly<Record<string, Operator>> = { [NOTHING]: (source) => source, [PARSING]: parsing, ...operatorWays };
const operators = await measureSizes(
  (size) =>
    Object.fromEntries(
      Object.entries(rows).map(([name, operator]) => {
        const piped$ = sourceOf(size).pipe(operator);
        return [name, () => inCall(piped$)];
      }),
    ),
  plan,
);

const GOALS: readonly (readonly [Size, number])[] = [
  [1, 1.1],
  [100, 0.4],
  [1_000, 0.3],
];
const whole = addedOf(stack, WHOLE, TRANSPORT);
const byHand = addedOf(operators, ALL, NOTHING);

await writeResults({
  name: 'performance',
  script: 'bench',
  title: 'CPU time of a call',
  text: `
CPU time in microseconds (user and system, garbage collection and compilation included) of one streamed call, from the call to the end
of its answer, for answers of 1, 10, 100 and 1,000 chunks. Each way reads the same bytes: chunks as the API sends them today, each in
a read of its own, then usage and \`[DONE]\`, from a \`fetch\` without a network. All ways build and send the request by the SDK. Each
takes turns with the SDK's own loop in a process of the two, as a service has one way, after ${plan.warmUpCalls.toLocaleString('en')} calls of each; a figure is the
median over ${plan.rounds} rounds, a ratio the median of the ratios within the rounds. The row of the SDK's own loop has its medians of all
these processes.

- _The SDK's own loop_: \`for await\` over \`client.chat.completions.create({ stream: true })\`.
- _Full policy_: account, model and tenant quota for requests and tokens, concurrency, breaker, retries with a budget, fallbacks,
  deadline, conversation, priorities, tenants with a reserve, prices and a spend cap. Nothing makes a call wait.
- _Request, reads and \`JSON.parse\` alone_: what nothing that goes through the SDK can go below.

The goals are ratios of ${GOALS.map(([size, most]) => `${most} at ${size.toLocaleString('en')}`).join(', ')} for the full policy.`,
  rows: [
    ['us', ...SIZES.flatMap((size) => [size.toLocaleString('en'), 'ratio'])],
    [SDK, ...SIZES.flatMap((size) => [median(ways.map((way) => usOf(sdk[way][size], SDK))).toFixed(0), '1.00'])],
    ...ways.map((way) => [
      way,
      ...SIZES.flatMap((size) => [usOf(sdk[way][size], way).toFixed(0), ratioOf(sdk[way][size], way, SDK).toFixed(2)]),
    ]),
  ],
  more: [
    {
      title: 'The stack itself',
      text: `
The same policies, in one process, over a transport that has the whole answer parsed and there at once: what is left is what Sluice does, from the call
to the consumer, without telemetry. _Added_: to the transport alone, for the first chunk with all around it, and for each further one. The goals for
the full policy are 25 us a call and 0.3 us a chunk; here it is ${whole.callUs.toFixed(1)} us and ${whole.chunkUs.toFixed(2)} us.

A call by itself, over and over, finds all its code at hand. One that comes after ${OTHER_FUNCTIONS.toLocaleString('en')} small functions of other code, as calls of a
service do and those of the first table after the SDK's own work, took ${afterOther.toFixed(1)} us here where one by itself took ${byItself.toFixed(1)} us.`,
      rows: addedTable(stack, TRANSPORT),
    },
    {
      title: 'Each operator',
      text: `
Each operator over a source that is there at once, against the same source without it. _All_ is the whole stack in the documented
order: ${byHand.callUs.toFixed(1)} us a call and ${byHand.chunkUs.toFixed(2)} us a chunk.`,
      rows: addedTable(operators, NOTHING),
    },
  ],
  claims: [
    ...GOALS.map(([size, most]): readonly [string, boolean] => {
      const ratio = ratioOf(sdk[FULL][size], FULL, SDK);
      return [
        `at most ${most} times the SDK's own loop with a full policy, at ${size.toLocaleString('en')} chunk${size === 1 ? '' : 's'} (${ratio.toFixed(2)})`,
        ratio <= most,
      ];
    }),
    [`the stack itself takes at most 25 us a call (${whole.callUs.toFixed(1)})`, whole.callUs <= 25],
    [`the stack itself takes at most 0.3 us a chunk (${whole.chunkUs.toFixed(2)})`, whole.chunkUs <= 0.3],
    [
      'the operators together add less to a chunk than half of what parsing a small one costs',
      byHand.chunkUs < addedOf(operators, PARSING, NOTHING).chunkUs / 2,
    ],
  ],
});
