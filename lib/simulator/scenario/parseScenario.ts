import { SluiceError } from '../../core/errors.ts';
import { checkFaults } from '../../emulator/model/checkFaults.ts';
import { readPolicy } from '../../policy/parsePolicy.ts';
import { plainData } from '../../policy/plainData.ts';
import { problemOf } from '../../policy/PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from '../../policy/PolicyProblem.ts';
import { schemaProblems } from '../../policy/schemaProblems.ts';
import type { Scenario } from './Scenario.ts';
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
  if (rest !== undefined) found.push(...faultProblems(rest), ...nameProblems(rest));
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

function faultProblems({ upstreams }: Scenario): PolicyProblem[] {
  const found: PolicyProblem[] = [];
  for (const [client, upstream] of Object.entries(upstreams)) {
    for (const kind of ['script', 'randomFaults', 'outages'] as const) {
      try {
        checkFaults(kind, (upstream[kind] ?? []) as never);
      } catch (error) {
        if (!(error instanceof SluiceError)) throw error;
        found.push(problemOf(['upstreams', client, kind], 'faults that can be', `one that cannot: ${error.message}`));
      }
    }
  }
  return found;
}

function nameProblems({ load, upstreams }: Scenario): PolicyProblem[] {
  if (Object.keys(upstreams).length === 0) {
    return [problemOf(['upstreams'], 'at least one client', 'none')];
  }
  const known = Object.values(upstreams).map(({ models }) => models);
  if (known.some((models) => models === undefined)) return [];
  const names = [...new Set(known.flatMap((models) => Object.keys(models ?? {})))];
  return load.flatMap(({ model }, i) =>
    names.includes(model) ? [] : [problemOf(['load', i, 'model'], `one of ${names.join(', ')}`, JSON.stringify(model))],
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
