import { parse } from 'csv-parse/sync';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { invalidOption, SluiceError } from '../../core/errors.ts';
import { policyText } from '../../policy/policyText.ts';
import { problemOf } from '../../policy/PolicyProblem.ts';
import type { PolicyProblem } from '../../policy/PolicyProblem.ts';
import { invalidScenario, readScenario } from './parseScenario.ts';
import type { ScenarioReading } from './parseScenario.ts';
import type { Scenario } from './Scenario.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads a scenario from a file: JSON where its name ends in `.json`, else YAML. Paths in it count from its own place:
 * `policy: policy.yaml`, also that of a strategy, and `file: calls.csv` in arrivals of the kind `trace`. The first line of such a
 * CSV file names its columns: `atMs`, and any of `model`, `tenant`, `priority`, `conversation`, `promptTokens` and
 * `outputTokens`.
 *
 * @throws SluiceError `invalid_option`: the file, or one that it names, cannot be read; or everything that is wrong with
 * it, one thing a line.
 */
export function loadScenario(path: string): Scenario {
  const { scenario, problems } = readScenarioFile(path);
  if (scenario) return scenario;
  throw invalidScenario(path, problems);
}

export function readScenarioFile(path: string): ScenarioReading {
  const folder = dirname(resolve(path));
  const text = textOf(path);
  if (text.problems.length > 0) return { problems: text.problems, scenario: undefined };
  const reading = readScenario(withFiles(text.value, folder));
  return {
    ...reading,
    problems: reading.problems.map(({ path: at, expected, got, suggestion }) =>
      problemOf(at, expected, got, { suggestion, position: text.positionOf(at) }),
    ),
  };
}

/** The scenario with the policies and calls that it names by their files. */
function withFiles(value: unknown, folder: string): unknown {
  if (!isFields(value)) return value;
  const { policy, strategies, load } = value;
  return {
    ...value,
    ...('policy' in value && { policy: policyOf(policy, folder) }),
    ...(Array.isArray(strategies) && {
      strategies: strategies.map((strategy: unknown) =>
        isFields(strategy) && 'policy' in strategy
          ? { ...strategy, policy: policyOf(strategy['policy'], folder) }
          : strategy,
      ),
    }),
    ...(Array.isArray(load) && { load: load.map((one: unknown) => withCalls(one, folder)) }),
  };
}

function policyOf(policy: unknown, folder: string): unknown {
  if (typeof policy !== 'string') return policy;
  const path = resolve(folder, policy);
  const { value, problems } = textOf(path);
  if (problems.length > 0) throw invalidScenario(path, problems);
  return value;
}

function withCalls(load: unknown, folder: string): unknown {
  if (!isFields(load) || !isFields(load['arrivals'])) return load;
  const { file, ...arrivals } = load['arrivals'];
  if (arrivals['kind'] !== 'trace' || typeof file !== 'string') return load;
  return { ...load, arrivals: { ...arrivals, calls: callsOf(contentOf(resolve(folder, file)), file) } };
}

const NUMBERS: ReadonlySet<string> = new Set(['atMs', 'promptTokens', 'outputTokens']);

function callsOf(content: string, file: string): Fields[] {
  try {
    return parse(content, {
      columns: true,
      skip_empty_lines: true,
      trim: true,
      cast: (cell, { column, header }) => {
        if (header) return cell;
        // Left out rather than empty.
        if (cell === '') return undefined;
        return typeof column === 'string' && NUMBERS.has(column) ? Number(cell) : cell;
      },
    }) as Fields[];
  } catch (error) {
    throw invalidOption(
      `the trace ${file}`,
      'CSV with a line of column names',
      error instanceof Error ? error.message : error,
    );
  }
}

function textOf(path: string): ReturnType<typeof policyText> & { readonly problems: readonly PolicyProblem[] } {
  return policyText(contentOf(path), path.toLowerCase().endsWith('.json') ? 'json' : 'yaml');
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new SluiceError(
      'invalid_option',
      `${path} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : code}`,
    );
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
