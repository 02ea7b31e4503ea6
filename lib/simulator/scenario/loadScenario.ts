import { parse } from 'csv-parse/sync';
import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { invalidOption, SluiceError } from '../../core/errors.ts';
import { policyText } from '../../policy/policyText.ts';
import type { PolicyText } from '../../policy/policyText.ts';
import { problemOf } from '../../policy/PolicyProblem.ts';
import { invalidScenario, readScenario } from './parseScenario.ts';
import type { ScenarioReading } from './parseScenario.ts';
import type { Scenario } from './Scenario.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A file that a scenario was read from. */
export interface ScenarioFile {
  /** As it is called where it is referred to. */
  readonly name: string;
  readonly text: string;
}

export interface ScenarioFileReading extends ScenarioReading {
  /** The scenario's own, then those that it names. */
  readonly files: readonly ScenarioFile[];
}

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

export function readScenarioFile(path: string): ScenarioFileReading {
  const folder = dirname(resolve(path));
  const content = contentOf(path);
  const files = [{ name: basename(path), text: content }];
  const text = textOf(path, content);
  if (text.problems.length > 0) return { problems: text.problems, scenario: undefined, files };
  const read: ReadFile = (name) => {
    const named = contentOf(resolve(folder, name));
    if (!files.some((file) => file.name === name)) files.push({ name, text: named });
    return named;
  };
  const reading = readScenario(withFiles(text.value, folder, read));
  return {
    ...reading,
    files,
    problems: reading.problems.map(({ path: at, expected, got, suggestion }) =>
      problemOf(at, expected, got, { suggestion, position: text.positionOf(at) }),
    ),
  };
}

export type ReadFile = (name: string) => string;

/** The scenario with the policies and calls that it names by their files. */
export function withFiles(value: unknown, folder: string, read: ReadFile): unknown {
  if (!isFields(value)) return value;
  const { policy, strategies, load } = value;
  return {
    ...value,
    ...('policy' in value && { policy: policyOf(policy, folder, read) }),
    ...(Array.isArray(strategies) && {
      strategies: strategies.map((strategy: unknown) =>
        isFields(strategy) && 'policy' in strategy
          ? { ...strategy, policy: policyOf(strategy['policy'], folder, read) }
          : strategy,
      ),
    }),
    ...(Array.isArray(load) && { load: load.map((one: unknown) => withCalls(one, read)) }),
  };
}

function policyOf(policy: unknown, folder: string, read: ReadFile): unknown {
  if (typeof policy !== 'string') return policy;
  const path = resolve(folder, policy);
  const { value, problems } = textOf(path, read(policy));
  if (problems.length > 0) throw invalidScenario(path, problems);
  return value;
}

function withCalls(load: unknown, read: ReadFile): unknown {
  if (!isFields(load) || !isFields(load['arrivals'])) return load;
  const { file, ...arrivals } = load['arrivals'];
  if (arrivals['kind'] !== 'trace' || typeof file !== 'string') return load;
  return { ...load, arrivals: { ...arrivals, calls: callsOf(read(file), file) } };
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

export function textOf(path: string, content: string): PolicyText {
  return policyText(content, path.toLowerCase().endsWith('.json') ? 'json' : 'yaml');
}

export function contentOf(path: string): string {
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
