import { isSluiceError } from '../core/errors.ts';
import { resultRows } from '../simulator/report/resultRows.ts';
import { invalidScenario } from '../simulator/scenario/parseScenario.ts';
import { readScenarioFile } from '../simulator/scenario/loadScenario.ts';
import type { ScenarioReading } from '../simulator/scenario/parseScenario.ts';
import type { Scenario } from '../simulator/scenario/Scenario.ts';
import { simulate } from '../simulator/simulate.ts';
import type { SimulationProgress } from '../simulator/simulate.ts';
import { alignColumns } from './alignColumns.ts';
import type { Command, Terminal } from './Command.ts';
import { numberFlag, parseFlags, wrongFlag } from './flags.ts';
import { wholeNumber } from '../core/checks.ts';

const help = `Usage: sluice simulate <scenario.yaml> [flags]

Says what would happen: runs a load through a policy against a model of the provider, in virtual time. Ends with 1 if
something is wrong with the scenario.

  --compare      the other strategies of the scenario as well, each with the same calls
  --seed N       draws other calls, delays and faults
  --chunks       simulates every chunk of an answer, rather than its first content and its end
  --json         prints the figures as JSON`;

const FLAGS = {
  compare: { type: 'boolean' },
  seed: { type: 'string' },
  chunks: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

/** `sluice simulate`. */
export const simulateCommand: Command = {
  help,
  run: (args, terminal) => Promise.resolve(run(args, terminal)),
};

function run(args: readonly string[], terminal: Terminal): number {
  const { values, positionals } = parseFlags(args, FLAGS, 1);
  const [path] = positionals;
  if (path === undefined) throw wrongFlag('name the file of the scenario');
  const seed = numberFlag('seed', values.seed, (option, value) => wholeNumber(option, value, 0));
  const { scenario, problems } = readFile(path);
  if (scenario === undefined) {
    if (values.json === true) terminal.print(JSON.stringify({ ok: false, problems }, undefined, 2));
    else terminal.complain(invalidScenario(path, problems).message);
    return 1;
  }
  const asked: Scenario = {
    ...scenario,
    ...(seed !== undefined && { seed }),
    ...(values.chunks === true && { chunks: 'all' }),
    ...(values.compare !== true && { strategies: onlySluice(scenario) }),
  };
  const quiet = values.json === true;
  const result = simulate(asked, quiet ? {} : { onProgress: progressOn(terminal) });
  if (quiet) terminal.print(JSON.stringify({ ok: true, ...result }, undefined, 2));
  else terminal.print(`${result.scenario}\n\n${alignColumns(resultRows(result))}`);
  return 0;
}

function onlySluice({ strategies = [] }: Scenario): Scenario['strategies'] {
  const ours = strategies.filter(({ kind }) => kind === 'sluice');
  return ours.length > 0 ? ours : [{ kind: 'sluice' }];
}

const CLEAR_LINE = '\r\u001b[2K';
const BAR = 30;

/** On a terminal a bar that is written over; in a pipe nothing, as the result is what is wanted there. */
function progressOn(terminal: Terminal): (progress: SimulationProgress) => void {
  const { live } = terminal;
  if (live === undefined) return () => {};
  return ({ strategy, atMs, forMs, calls }) => {
    const done = Math.round((BAR * atMs) / forMs);
    const line = `${'#'.repeat(done)}${'.'.repeat(BAR - done)} ${strategy}: ${calls.toLocaleString('en-US')} calls`;
    terminal.write(atMs >= forMs ? CLEAR_LINE : CLEAR_LINE + line.slice(0, live.columns - 1));
  };
}

/** A file that cannot be read is the command line's fault. */
function readFile(path: string): ScenarioReading {
  try {
    return readScenarioFile(path);
  } catch (error) {
    throw isSluiceError(error) ? wrongFlag(error.message) : error;
  }
}
