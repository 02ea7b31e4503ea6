import { wholeNumber } from '../core/checks.ts';
import { isSluiceError } from '../core/errors.ts';
import { printable } from '../policy/policyYaml.ts';
import { readPlanFile } from '../simulator/plan/loadPlan.ts';
import type { PlanReading } from '../simulator/plan/parsePlan.ts';
import { plan } from '../simulator/plan/plan.ts';
import type { PlanProgress, PlanResult } from '../simulator/plan/plan.ts';
import { extentOf, planTable, planYaml, targetRows, triedRows } from '../simulator/plan/planYaml.ts';
import { shownValue } from '../simulator/plan/shownFigure.ts';
import { invalidScenario } from '../simulator/scenario/parseScenario.ts';
import type { Command, Terminal } from './Command.ts';
import { numberFlag, parseFlags, wrongFlag } from './flags.ts';

const INTERRUPTED = 130;

const help = `Usage: sluice plan <plan.yaml> [flags]

Finds the smallest quota, or the numbers of a policy, with which a load meets its targets, by simulating it, and prints
the policy with what was tried in its comments. Ends with 1 if something is wrong with the plan, or if the targets cannot be
met, and then says why.

  --seed N       draws other calls, delays and faults
  --seeds N      runs of each candidate, at least 3 (those of the plan, or 5)
  --calls N      calls to which loads that go on evenly are cut (those of the plan, or 10,000)
  --json         prints what was found and tried as JSON`;

const FLAGS = {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  calls: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** `sluice plan`. */
export const planCommand: Command = {
  help,
  async run(args, terminal) {
    const { values, positionals } = parseFlags(args, FLAGS, 1);
    const [path] = positionals;
    if (path === undefined) throw wrongFlag('name the file of the plan');
    const whole = (name: 'seed' | 'seeds' | 'calls', least: number): number | undefined =>
      numberFlag(name, values[name], (option, value) => wholeNumber(option, value, least));
    const seed = whole('seed', 0);
    const seeds = whole('seeds', 3);
    const callsPerRun = whole('calls', 100);
    const inJson = (value: unknown): void => terminal.print(JSON.stringify(value, undefined, 2));
    const { plan: read, problems } = readFile(path);
    if (read === undefined) {
      if (values.json === true) inJson({ ok: false, problems });
      else terminal.complain(invalidScenario(path, problems).message);
      return 1;
    }
    const interruption = new AbortController();
    void terminal.interrupted().then(() => interruption.abort());
    const progress = showProgress(terminal);
    let result: PlanResult;
    try {
      result = await plan(
        {
          ...read,
          scenario: { ...read.scenario, ...(seed !== undefined && { seed }) },
          ...(seeds !== undefined && { seeds }),
          ...(callsPerRun !== undefined && { callsPerRun }),
        },
        { onProgress: progress.show, signal: interruption.signal },
      );
    } catch (error) {
      if (!isSluiceError(error) || error.code !== 'aborted') throw error;
      progress.end();
      terminal.complain('sluice plan: interrupted; there is no result');
      return INTERRUPTED;
    } finally {
      progress.end();
    }
    if (values.json === true) inJson({ ok: result.reached, ...result, policy: printable(result.policy).policy });
    else if (result.reached) terminal.write(planYaml(result));
    else terminal.complain(missedText(result));
    return result.reached ? 0 : 1;
  },
};

/** Nothing goes to the standard output, which may have been sent into a policy's file. */
function missedText(result: PlanResult): string {
  return [
    `${result.plan}: the targets are not met`,
    '',
    ...result.reasons.map((reason) => `- ${reason}`),
    '',
    ...planTable(targetRows(result)),
    '',
    ...planTable(triedRows(result)),
    '',
    extentOf(result.simulated),
  ].join('\n');
}

const CLEAR_LINE = '\r\u001b[2K';
const BAR = 20;

/** A line that is written over, where a person watches. */
function showProgress({ status }: Terminal): { show: (progress: PlanProgress) => void; end: () => void } {
  if (status === undefined) return { show: () => {}, end: () => {} };
  let shown = '';
  return {
    show({ doing, values, candidates, runs, done }) {
      const bar = '#'.repeat(Math.round(BAR * done)).padEnd(BAR, '.');
      const line = `${bar} ${doing}: ${values.map(shownValue).join(', ')} (${candidates} tried, ${runs} runs)`;
      const fitting = line.slice(0, status.columns - 1);
      if (fitting === shown) return;
      shown = fitting;
      status.write(CLEAR_LINE + fitting);
    },
    end() {
      if (shown !== '') status.write(CLEAR_LINE);
      shown = '';
    },
  };
}

/** A file that cannot be read is the command line's fault. */
function readFile(path: string): PlanReading {
  try {
    return readPlanFile(path);
  } catch (error) {
    throw isSluiceError(error) ? wrongFlag(error.message) : error;
  }
}
