import { basename, dirname, resolve } from 'node:path';
import { problemOf } from '../../policy/PolicyProblem.ts';
import type { PolicyProblem } from '../../policy/PolicyProblem.ts';
import type { PolicyText } from '../../policy/policyText.ts';
import { contentOf, readScenarioFile, textOf, withFiles } from '../scenario/loadScenario.ts';
import { invalidScenario } from '../scenario/parseScenario.ts';
import { readPlan } from './parsePlan.ts';
import type { PlanReading } from './parsePlan.ts';
import type { PlanInput } from './PlanInput.ts';

/**
 * Reads a plan from a file: JSON where its name ends in `.json`, else YAML. `scenario` may be the path of a file; paths count
 * from the place of the file that they stand in.
 *
 * @throws SluiceError `invalid_option`: a file cannot be read; or everything that is wrong, one thing a line.
 */
export function loadPlan(path: string): PlanInput {
  const { plan, problems } = readPlanFile(path);
  if (plan) return plan;
  throw invalidScenario(path, problems);
}

/** @throws SluiceError `invalid_option` for a file that cannot be read. */
export function readPlanFile(path: string): PlanReading {
  const folder = dirname(resolve(path));
  const text = textOf(path, contentOf(path));
  if (text.problems.length > 0) return { problems: text.problems, plan: undefined };
  const { value } = text;
  const scenario = isFields(value) ? value['scenario'] : undefined;
  if (isFields(value) && typeof scenario === 'string') {
    const reading = readPlan({ ...value, scenario: {} }, readScenarioFile(resolve(folder, scenario)));
    return { ...reading, problems: reading.problems.map((problem) => placed(problem, text, basename(scenario))) };
  }
  const reading = readPlan(
    isFields(value) && scenario !== undefined
      ? { ...value, scenario: withFiles(scenario, folder, (name) => contentOf(resolve(folder, name))) }
      : value,
  );
  return { ...reading, problems: reading.problems.map((problem) => placed(problem, text)) };
}

/** `file`: of the scenario, where it stands in a file of its own, whose lines are told already. */
function placed(problem: PolicyProblem, text: PolicyText, file?: string): PolicyProblem {
  const { path, expected, got, suggestion } = problem;
  if (file !== undefined && path[0] === 'scenario') return { ...problem, message: `${file}, ${problem.message}` };
  return problemOf(path, expected, got, { suggestion, position: text.positionOf(path) });
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
