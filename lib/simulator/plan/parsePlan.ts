import { plainData } from '../../policy/plainData.ts';
import { problemOf } from '../../policy/PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from '../../policy/PolicyProblem.ts';
import { schemaProblems } from '../../policy/schemaProblems.ts';
import { invalidScenario, readScenario } from '../scenario/parseScenario.ts';
import type { ScenarioReading } from '../scenario/parseScenario.ts';
import { findProblems } from './findProblems.ts';
import type { PlanInput } from './PlanInput.ts';
import { planSchema } from './planSchema.ts';

/** What became of a plan: `plan` is there where `problems` is empty. */
export interface PlanReading {
  readonly problems: readonly PolicyProblem[];
  readonly plan: PlanInput | undefined;
}

/**
 * Checks a plan, its scenario with all that is in it included.
 *
 * @throws SluiceError `invalid_option` that names everything that is wrong, one thing a line: where it stands, what was
 * expected and what came.
 */
export function parsePlan(value: unknown): PlanInput {
  const { plan, problems } = readPlan(value);
  if (plan) return plan;
  throw invalidScenario('the plan', problems);
}

/** `ofScenario`: what was found out about the scenario, where that has been read already. */
export function readPlan(value: unknown, ofScenario?: ScenarioReading): PlanReading {
  const { scenario: written, ...rest } = isFields(value) ? value : {};
  const light = isFields(value) ? rest : value;
  const { data, problems: unreadable } = plainData(light);
  const plain = data ?? {};
  // The scenario is checked by itself: it may hold millions of recorded calls.
  const whole = isFields(plain) ? { ...plain, scenario: {} } : plain;
  const { problems: misfits, rest: fitting } = schemaProblems(planSchema, whole, value);
  const found = [...unreadable, ...misfits];
  const reading = ofScenario ?? readScenario(written ?? {});
  if (written !== undefined) found.push(...reading.problems.map(inScenario));
  else if (isFields(plain)) found.push(problemOf(['scenario'], 'a scenario, or the path of its file', 'nothing'));
  const { scenario } = reading;
  if (fitting !== undefined && scenario !== undefined) {
    const plan: PlanInput = { ...fitting, scenario };
    // What comes of a setting that is wrong itself need not be true.
    found.push(...findProblems(plan).filter(({ path }) => !misfits.some((misfit) => isNear(misfit.path, path))));
    if (found.length === 0) return { problems: [], plan };
  }
  return { problems: found, plan: undefined };
}

/** In the same target, or about the same number that is looked for. */
function isNear([part, i]: PolicyPath, [other, j]: PolicyPath): boolean {
  return part === other && (part === 'target' || i === undefined || i === j);
}

function inScenario({ path, expected, got, suggestion, position }: PolicyProblem): PolicyProblem {
  return problemOf(['scenario', ...path] satisfies PolicyPath, expected, got, { suggestion, position });
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
