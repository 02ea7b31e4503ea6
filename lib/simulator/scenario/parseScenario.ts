import { SluiceError } from '../../core/errors.ts';
import { readPolicy } from '../../policy/parsePolicy.ts';
import { plainData } from '../../policy/plainData.ts';
import { problemOf } from '../../policy/PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from '../../policy/PolicyProblem.ts';
import { schemaProblems } from '../../policy/schemaProblems.ts';
import type { Scenario } from './Scenario.ts';
import { scenarioProblems } from './scenarioProblems.ts';
import { traceProblems, withoutTraces, withTraces } from './traces.ts';
import { scenarioSchema } from './scenarioSchema.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What became of a scenario: `scenario` is there where `problems` is empty. */
export interface ScenarioReading {
  readonly problems: readonly PolicyProblem[];
  readonly scenario: Scenario | undefined;
}

/**
 * Checks a scenario, the policies and faults in it included.
 *
 * @throws SluiceError `invalid_option` that names everything that is wrong, one thing a line: where it stands, what was
 * expected and what came.
 */
export function parseScenario(value: unknown): Scenario {
  const { scenario, problems } = readScenario(value);
  if (scenario) return scenario;
  throw invalidScenario('the scenario', problems);
}

export function readScenario(value: unknown): ScenarioReading {
  // There may be millions of recorded calls: they are looked at one by one, and are not copied.
  const { rest: light, traces } = withoutTraces(value);
  const { data, problems: unreadable } = plainData(light);
  const { problems: misfits, rest } = schemaProblems(scenarioSchema, data ?? {}, light);
  const found = [...unreadable, ...misfits, ...traceProblems(traces), ...policyProblems(isFields(light) ? light : {})];
  if (rest !== undefined) found.push(...scenarioProblems(rest, isFields(light) ? light : {}, traces));
  if (rest === undefined || found.length > 0) return { problems: found, scenario: undefined };
  return { problems: [], scenario: withTraces(rest, traces) };
}

/** `what`: the scenario, or its file. */
export function invalidScenario(what: string, problems: readonly PolicyProblem[]): SluiceError {
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const lines = problems.map(({ message }) => `  ${message}`);
  return new SluiceError('invalid_option', [`${what} has ${count}:`, ...lines].join('\n'));
}

/** Of what was given, so that they are found however little else fits. */
function policyProblems({ policy, strategies, upstreams }: Fields): PolicyProblem[] {
  const clients = isFields(upstreams) ? Object.keys(upstreams) : [];
  const policies: (readonly [PolicyPath, unknown])[] = policy === undefined ? [] : [[['policy'], policy]];
  (Array.isArray(strategies) ? (strategies as unknown[]) : []).forEach((strategy, i) => {
    if (!isFields(strategy) || strategy['kind'] !== 'sluice' || strategy['policy'] === undefined) return;
    policies.push([['strategies', i, 'policy'], strategy['policy']]);
  });
  return policies.flatMap(([path, given]) =>
    readPolicy(given, clients.length > 0 ? { clients } : {}).problems.map((problem) =>
      problemOf([...path, ...problem.path], problem.expected, problem.got, { suggestion: problem.suggestion }),
    ),
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
