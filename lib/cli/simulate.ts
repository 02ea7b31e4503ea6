import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { wholeNumber } from '../core/checks.ts';
import { isSluiceError } from '../core/errors.ts';
import { htmlReport } from '../simulator/report/htmlReport.ts';
import { failureRows, phaseRows, resultRows, tenantRows } from '../simulator/report/resultRows.ts';
import { readScenarioFile } from '../simulator/scenario/loadScenario.ts';
import type { ScenarioFileReading } from '../simulator/scenario/loadScenario.ts';
import { invalidScenario } from '../simulator/scenario/parseScenario.ts';
import { SCENARIO_DEFAULTS } from '../simulator/scenario/Scenario.ts';
import type { Scenario } from '../simulator/scenario/Scenario.ts';
import { simulateInSteps } from '../simulator/simulate.ts';
import type { SimulationProgress, SimulationResult } from '../simulator/simulate.ts';
import { alignColumns } from './alignColumns.ts';
import type { Command, Terminal } from './Command.ts';
import { numberFlag, parseFlags, wrongFlag } from './flags.ts';
import { ProgressLine } from './simulate/ProgressLine.ts';
import { runInSteps } from './simulate/runInSteps.ts';

const INTERRUPTED = 130;

const help = `Usage: sluice simulate <scenario.yaml> [flags]

Says what would happen: runs a load through a policy against a model of the provider, in virtual time. Ends with 1 if
something is wrong with the scenario.

  --compare      the other strategies of the scenario as well, each with the same calls
  --seed N       draws other calls, delays and faults
  --chunks       simulates every chunk of an answer, rather than its first content and its end
  --html FILE    writes a report with plots: one file for any browser
  --json         prints the figures as JSON`;

const FLAGS = {
  compare: { type: 'boolean' },
  seed: { type: 'string' },
  chunks: { type: 'boolean' },
  html: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** `sluice simulate`. */
export const simulateCommand: Command = {
  help,
  async run(args, terminal) {
    const { values, positionals } = parseFlags(args, FLAGS, 1);
    const [path] = positionals;
    if (path === undefined) throw wrongFlag('name the file of the scenario');
    const seed = numberFlag('seed', values.seed, (option, value) => wholeNumber(option, value, 0));
    if (values.html !== undefined) checkWritable(values.html);
    const { scenario, problems, files } = readFile(path);
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
    const result = await run(asked, values.html !== undefined, terminal);
    if (result === undefined) return INTERRUPTED;
    if (values.html !== undefined) {
      const command = [
        `npx sluice simulate ${basename(path)} --seed ${asked.seed ?? SCENARIO_DEFAULTS.seed}`,
        ...(values.compare === true ? ['--compare'] : []),
        ...(values.chunks === true ? ['--chunks'] : []),
        `--html ${basename(values.html)}`,
      ].join(' ');
      writeReport(values.html, htmlReport(asked, result, { files, command }));
    }
    if (values.json === true) printJson(result, terminal);
    else printTables(result, terminal);
    return 0;
  },
};

/** Undefined where the user did not want to wait for it. */
async function run(scenario: Scenario, timeline: boolean, terminal: Terminal): Promise<SimulationResult | undefined> {
  const progress = new ProgressLine(terminal.status, () => performance.now());
  let last: SimulationProgress | undefined;
  try {
    const outcome = await runInSteps(simulateInSteps(scenario, { timeline }), terminal.interrupted(), (step) => {
      last = step;
      progress.show(step);
    });
    if (outcome.kind === 'done') return outcome.value;
  } finally {
    progress.clear();
  }
  const at = last === undefined ? '' : ` in "${last.strategy}", at ${Math.floor((100 * last.atMs) / last.forMs)} %`;
  terminal.complain(`sluice simulate: interrupted${at}; there is no result`);
  return undefined;
}

function printTables(result: SimulationResult, terminal: Terminal): void {
  const titled: readonly (readonly [string, ReturnType<typeof resultRows>])[] = [
    ['What calls failed of:', failureRows(result)],
    ['By phase:', phaseRows(result)],
    ['By tenant:', tenantRows(result)],
  ];
  terminal.print(`${result.scenario}\n\n${alignColumns(resultRows(result))}`);
  for (const [title, rows] of titled) {
    if (rows.length > 1) terminal.print(`\n${title}\n\n${alignColumns(rows)}`);
  }
}

function printJson(result: SimulationResult, terminal: Terminal): void {
  const figures = (name: string, value: unknown): unknown => (name === 'timeline' ? undefined : value);
  terminal.print(JSON.stringify({ ok: true, ...result }, figures, 2));
}

function onlySluice({ strategies = [] }: Scenario): Scenario['strategies'] {
  const ours = strategies.filter(({ kind }) => kind === 'sluice');
  return ours.length > 0 ? ours : [{ kind: 'sluice' }];
}

/** Before minutes are spent on what it is to hold. */
function checkWritable(path: string): void {
  const folder = dirname(resolve(path));
  const target = statSync(path, { throwIfNoEntry: false });
  if (target?.isDirectory() === true) throw wrongFlag(`--html must be a file, and ${path} is a folder`);
  try {
    accessSync(target === undefined ? folder : path, constants.W_OK);
  } catch {
    throw wrongFlag(`--html cannot be written: ${target === undefined ? folder : path} does not exist or is protected`);
  }
}

function writeReport(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw wrongFlag(`--html cannot be written: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`);
  }
}

/** A file that cannot be read is the command line's fault. */
function readFile(path: string): ScenarioFileReading {
  try {
    return readScenarioFile(path);
  } catch (error) {
    throw isSluiceError(error) ? wrongFlag(error.message) : error;
  }
}
