import { systemRuntime } from '../../lib/index.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { overHttp, simulated } from './parts/fidelity.ts';
import type { Figures } from './parts/fidelity.ts';
import { FIDELITY_STRATEGIES, fidelityCases } from './parts/fidelityScenarios.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const FOR_MS = 30_000;
/** Of small counts a few more or less say nothing. */
const FEW = 5;
const COUNTS = ['answered', 'attempts', 'rateLimited'] as const;
type Figure = (typeof COUNTS)[number] | 'calls' | 'quotaUsed' | 'p50Ms' | 'p95Ms';
/** What is simulated of the way there, as parts of what was measured. */
const WAYS = [0.7, 0.85, 1, 1.15, 1.3];
const rows: string[][] = [];
const apart: string[] = [];
const slowApart: string[] = [];

for (const { name, scenario } of fidelityCases(FOR_MS)) {
  const real = await withLiveLine(
    () => name,
    () =>
      Promise.all(
        FIDELITY_STRATEGIES.map((strategy) => overHttp(scenario, strategy, startEmulatorProcess, systemRuntime)),
      ),
  );
  FIDELITY_STRATEGIES.forEach((strategy, i) => {
    const http = real[i]!;
    const { p50Ms, p95Ms } = http.way;
    const virtual = WAYS.map((factor) =>
      simulated(scenario, strategy, { p50Ms: factor * p50Ms, p95Ms: factor * p95Ms }),
    );
    const title = `${name}, ${strategy.kind}`;
    for (const key of COUNTS) if (!agrees(key, http, virtual, 0.05, FEW)) apart.push(`${title}: ${key}`);
    if (!agrees('quotaUsed', http, virtual, 0.05)) apart.push(`${title}: quotaUsed`);
    if (!agrees('p95Ms', http, virtual, 0.1)) slowApart.push(title);
    rows.push(
      [name, `${strategy.kind}, HTTP`, ...cells([http]), `${p50Ms.toFixed(1)} / ${p95Ms.toFixed(1)} ms`],
      ['', `${strategy.kind}, simulated`, ...cells(virtual), ''],
    );
  });
}

/** Whether what was measured lies within what was simulated, or no further from it than a part of itself, or than so few. */
function agrees(key: Figure, http: Figures, virtual: readonly Figures[], part: number, few = 0): boolean {
  const values = virtual.map((one) => one[key]);
  const off = Math.max(few, part * http[key]);
  return http[key] >= Math.min(...values) - off && http[key] <= Math.max(...values) + off;
}

/** One number, or the ends of what several came to. */
function cells(several: readonly Figures[]): string[] {
  const cell = (key: Figure, shown: (value: number) => string): string => {
    const values = several.map((one) => one[key]);
    const [least, most] = [shown(Math.min(...values)), shown(Math.max(...values))];
    return least === most ? least : `${least} – ${most}`;
  };
  return [
    cell('calls', String),
    ...COUNTS.map((key) => cell(key, String)),
    cell('quotaUsed', (value) => `${(100 * value).toFixed(1)} %`),
    cell('p50Ms', ms),
    cell('p95Ms', ms),
  ];
}

await writeResults({
  name: 'fidelity',
  title: 'The simulator beside real HTTP',
  text: `
The same scenarios twice: in virtual time, and for ${FOR_MS / 1000} s over real HTTP, through the OpenAI SDK, before the emulator in a process
of its own. Load, strategies, policy and measuring are the same code, and draw the same calls; over HTTP every chunk of an answer is
sent, and what the provider saw is taken from its own report. The three strategies of a scenario run at the same time, each before an
emulator of its own.

The quota is 1,800 requests a minute and 30 at once; bursts come every 5 s to a quota of 1,200 and 20. The policy keeps to the
quota of the beginning, with a deadline of 8 s and without a fallback. *Quota used* is the highest part of any limit. *Way there* is how long half and 95 % of the
requests took to the provider in that run over HTTP, from the n-th that was sent and the n-th that arrived: it is what the simulation is told of the network, both ways.

Each simulation is run five times, with ways of 0.7 to 1.3 times that. Where they do not come to the same, both ends are shown: there it is chance that
decides. Retries that all wait equally long meet again and again, and a millisecond decides who of them is answered; and a breaker that opens, or does not, decides for all.`,
  rows: [
    ['scenario', '', 'calls', 'answered', 'requests', '429s', 'quota used', 'first content, p50', 'p95', 'way there'],
    ...rows,
  ],
  claims: [
    [
      `answered, requests, 429s and quota used over HTTP are within 5 % of what was simulated, or within ${FEW} where there are few${told(apart)}`,
      apart.length === 0,
    ],
    [`p95 of the time to first content is within 10 % of what was simulated${told(slowApart)}`, slowApart.length === 0],
  ],
});

function told(cases: readonly string[]): string {
  return cases.length === 0 ? '' : `; not so ${cases.join('; ')}`;
}
