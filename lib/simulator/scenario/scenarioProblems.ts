import { SluiceError } from '../../core/errors.ts';
import { checkFaults } from '../../emulator/model/checkFaults.ts';
import type { QuotaSettings } from '../../emulator/model/ProviderQuota.ts';
import { closest } from '../../policy/closest.ts';
import { readPolicy } from '../../policy/parsePolicy.ts';
import { problemOf, quoted } from '../../policy/PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from '../../policy/PolicyProblem.ts';
import { at } from '../../policy/schemaProblems.ts';
import { isSecret, shown } from '../../policy/shown.ts';
import type { Load, Scenario, TraceCall } from './Scenario.ts';
import type { Traces } from './traces.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * What of a scenario does not go together, though each setting is right by itself. `given`: all that was written; `traces`: the
 * recorded calls, which are not in the scenario here.
 */
export function scenarioProblems(scenario: Scenario, given: Fields, traces: Traces): readonly PolicyProblem[] {
  return [
    ...upstreamProblems(scenario, given['upstreams']),
    ...spanProblems(scenario),
    ...modelProblems(scenario, traces),
    ...priorityProblems(scenario, traces),
  ];
}

function* upstreamProblems({ upstreams }: Scenario, given: unknown): Generator<PolicyProblem> {
  // One that is wrong has been told of.
  const isEmpty = typeof given === 'object' && given !== null && Object.keys(given).length === 0;
  if (isEmpty) yield problemOf(['upstreams'], 'at least one client', 'none');
  for (const [client, upstream] of Object.entries(upstreams)) {
    const path = ['upstreams', client];
    for (const kind of ['script', 'randomFaults', 'outages'] as const) {
      for (const [i, fault] of (upstream[kind] ?? []).entries()) {
        yield* faultProblems(kind, fault, [...path, kind, i]);
      }
    }
    yield* burstProblems(
      upstream,
      path,
      upstream.changes?.map(({ account }) => account),
    );
    for (const [model, settings] of Object.entries(upstream.models ?? {})) {
      const changed = upstream.changes?.map(({ models }) => models?.[model]);
      yield* burstProblems(settings, [...path, 'models', model], changed);
    }
    const names = Object.keys(upstream.models ?? {});
    for (const [i, { models }] of (upstream.changes ?? []).entries()) {
      for (const model of Object.keys(models ?? {})) {
        if (upstream.models !== undefined && !names.includes(model))
          yield unknownName([...path, 'changes', i, 'models', model], names, model);
      }
    }
  }
}

function* faultProblems(kind: string, fault: unknown, path: PolicyPath): Generator<PolicyProblem> {
  try {
    checkFaults(kind, [fault]);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    yield faultProblem(error.message, fault, path);
    return;
  }
  const { fromMs, toMs } = fault as { readonly fromMs?: number; readonly toMs?: number };
  if (kind === 'outages' && fromMs !== undefined && toMs !== undefined && toMs <= fromMs) {
    yield problemOf([...path, 'toMs'], `a number above fromMs (${fromMs})`, String(toMs));
  }
}

/** The check of the emulator names the fault by its place in the list, which has been told here already. */
function faultProblem(message: string, fault: unknown, path: PolicyPath): PolicyProblem {
  const [, option = '', rule = message] = /^\w+\[0\]\.?(\S*) must be (.*), got .*$/s.exec(message) ?? [];
  const steps = option === '' ? [] : option.replace(/\[(\d+)\]/g, '.$1').split('.');
  const inner = steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
  const value = at(fault, inner);
  const words = rule.startsWith('one of ') ? rule.slice('one of '.length).split(', ') : [];
  const place = [...path, ...inner];
  return problemOf(place, rule === 'given' ? 'a value' : rule, shown(value, isSecret(place)), {
    suggestion: typeof value === 'string' ? closest(value, words) : undefined,
  });
}

const BURSTS = [
  ['burstRequests', 'requestsPerMinute'],
  ['burstTokens', 'tokensPerMinute'],
] as const;

/** A burst without its rate limits nothing. `changed`: what comes later. */
function* burstProblems(
  settings: QuotaSettings,
  path: PolicyPath,
  changed: readonly (QuotaSettings | undefined)[] = [],
): Generator<PolicyProblem> {
  for (const [burst, rate] of BURSTS) {
    if (settings[burst] === undefined || settings[rate] !== undefined) continue;
    if (changed.some((later) => later?.[rate] !== undefined)) continue;
    yield problemOf([...path, rate], `a rate beside ${burst}`, 'nothing');
  }
}

/** Loads and phases that begin, and end after that. */
function* spanProblems({ load, phases = [], forMs }: Scenario): Generator<PolicyProblem> {
  const spans = [
    ...load.map((one, i) => [['load', i], one] as const),
    ...phases.map((one, i) => [['phases', i], one] as const),
  ];
  for (const [path, { fromMs = 0, toMs = Infinity }] of spans) {
    if (fromMs >= forMs) yield problemOf([...path, 'fromMs'], `a number below forMs (${forMs})`, String(fromMs));
    if (toMs <= fromMs) yield problemOf([...path, 'toMs'], `a number above fromMs (${fromMs})`, String(toMs));
  }
}

/** Models that no provider has, where each lists what it has. */
function* modelProblems(scenario: Scenario, traces: Traces): Generator<PolicyProblem> {
  const { load, upstreams, strategies = [] } = scenario;
  const known = Object.values(upstreams).map(({ models }) => models);
  if (known.length === 0 || known.some((models) => models === undefined)) return;
  const names = [...new Set(known.flatMap((models) => Object.keys(models ?? {})))];
  yield* unknownNames('model', names, load, traces);
  for (const [i, strategy] of strategies.entries()) {
    const fallback = strategy.kind === 'backoff' ? strategy.fallback : undefined;
    if (fallback !== undefined && !names.includes(fallback))
      yield unknownName(['strategies', i, 'fallback'], names, fallback);
  }
}

/** Priorities that a policy which is to be run does not order: it refuses every call that names one. */
function* priorityProblems(
  { load, policy, strategies, upstreams }: Scenario,
  traces: Traces,
): Generator<PolicyProblem> {
  const run = strategies?.flatMap((strategy) => (strategy.kind === 'sluice' ? [strategy.policy ?? policy] : []));
  const clients = Object.keys(upstreams);
  const orders = [...new Set(run ?? [policy])].flatMap((own) => {
    const order = readPolicy(own ?? {}, { clients }).policy?.priorities.order;
    return order === undefined ? [] : [order];
  });
  const [first] = orders;
  if (first === undefined) return;
  const inAll = first.filter((name) => orders.every((order) => order.includes(name)));
  yield* unknownNames('priority', inAll, load, traces);
}

const MOST_TOLD = 20;

/** Of loads and of recorded calls, of which there may be millions. */
function* unknownNames(
  key: 'model' | 'priority',
  names: readonly string[],
  load: readonly Load[],
  traces: Traces,
): Generator<PolicyProblem> {
  for (const [i, one] of load.entries()) {
    if (one[key] !== undefined && !names.includes(one[key])) yield unknownName(['load', i, key], names, one[key]);
  }
  let told = 0;
  for (const [i, calls] of traces) {
    for (let call = 0; call < calls.length && told < MOST_TOLD; call++) {
      const name = (calls[call] as Partial<TraceCall> | null)?.[key];
      if (typeof name !== 'string' || names.includes(name)) continue;
      told++;
      yield unknownName(['load', i, 'arrivals', 'calls', call, key], names, name);
    }
  }
}

function unknownName(path: PolicyPath, names: readonly string[], name: string): PolicyProblem {
  return problemOf(path, `one of ${names.join(', ')}`, quoted(name), { suggestion: closest(name, names) });
}
