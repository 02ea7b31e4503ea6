import { closest } from '../../policy/closest.ts';
import { modelPolicy } from '../../policy/modelPolicy.ts';
import { parsePolicy, readPolicy } from '../../policy/parsePolicy.ts';
import { atOf, problemOf, quoted } from '../../policy/PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from '../../policy/PolicyProblem.ts';
import { listed } from '../../policy/words.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import { knobOf } from './knobOf.ts';
import { PLAN_DEFAULTS } from './PlanInput.ts';
import type { PlanInput, PlanSearch, PlanValue } from './PlanInput.ts';
import { policyPathOf } from './policyPathOf.ts';

function tenantProblems({ target, scenario }: PlanInput): readonly PolicyProblem[] {
  const traced = scenario.load.flatMap(({ arrivals }) => (arrivals.kind === 'trace' ? arrivals.calls : []));
  const names = [...new Set([...scenario.load, ...traced].flatMap(({ tenant }) => tenant ?? []))];
  return Object.keys(target.tenants ?? {}).flatMap((tenant) => {
    if (names.includes(tenant)) return [];
    const expected = names.length === 0 ? 'a tenant of the load, which has none' : `one of ${names.join(', ')}`;
    return [problemOf(['target', 'tenants', tenant], expected, quoted(tenant), { suggestion: closest(tenant, names) })];
  });
}

/** What of a plan does not go with its scenario. */
export function findProblems(plan: PlanInput): readonly PolicyProblem[] {
  const { scenario, find, target } = plan;
  const found: PolicyProblem[] = [];
  if (Object.values(target).every((limit) => limit === undefined)) {
    found.push(problemOf(['target'], 'at least one target', 'none'));
  }
  if (target.costPerMonth !== undefined) found.push(...priceProblems(scenario));
  found.push(...tenantProblems(plan));
  const seen = new Map<string, number>();
  for (const [i, search] of find.entries()) {
    const path = ['find', i];
    const own = searchProblems(search, path, scenario);
    found.push(...(own.length > 0 ? own : endProblems(search, path, plan)));
    const first = seen.get(identityOf(search, scenario));
    if (first === undefined) seen.set(identityOf(search, scenario), i);
    else found.push(problemOf(path, 'each number once', `that of find[${first}]`));
  }
  return found;
}

function searchProblems(search: PlanSearch, path: PolicyPath, scenario: Scenario): readonly PolicyProblem[] {
  const found: PolicyProblem[] = [];
  if (search.kind === 'quota' || search.kind === 'deployments') {
    found.push(...clientProblems(search.client, [...path, 'client'], scenario));
  }
  const named = search.kind === 'modelShare' ? (['model', 'cheaper'] as const) : (['model'] as const);
  for (const key of named) {
    const model = (search as { readonly model?: string; readonly cheaper?: string })[key];
    if (model !== undefined) found.push(...modelProblems(model, [...path, key], scenario, key === 'model'));
  }
  if (search.kind === 'deployments' && found.length === 0)
    found.push(...deploymentProblems(search.client, path, scenario));
  if (search.kind === 'policy') {
    const isRange = search.from !== undefined && search.to !== undefined;
    if (search.values !== undefined && (search.from !== undefined || search.to !== undefined)) {
      found.push(problemOf([...path, 'values'], 'no values beside from and to', `a list of ${search.values.length}`));
    } else if (search.values === undefined && !isRange) {
      found.push(problemOf(path, 'from and to, or values', 'neither of them in full'));
    }
  }
  if (search.kind === 'quota' && found.length === 0) found.push(...heldProblems(search, path, scenario));
  const { from = STANDARD_ENDS[search.kind]?.[0], to = STANDARD_ENDS[search.kind]?.[1] } = search as {
    readonly from?: number;
    readonly to?: number;
  };
  if (from !== undefined && to !== undefined && from >= to) {
    const given = 'to' in search && search.to !== undefined;
    if (given) found.push(problemOf([...path, 'to'], `a number above from (${from})`, String(to)));
    else found.push(problemOf([...path, 'from'], `a number below to (${to})`, String(from)));
  }
  return found;
}

/** What is tried where nothing else is said. */
const STANDARD_ENDS: Readonly<Partial<Record<PlanSearch['kind'], readonly [from: number, to: number]>>> = {
  deployments: [1, 16],
  modelShare: [0, 1],
  load: [0.1, 10],
};

/** A limit that the policy has for a deployment of that client would go on to hold it. */
function heldProblems(
  search: PlanSearch & { readonly kind: 'quota' },
  path: PolicyPath,
  { policy = {}, upstreams }: Scenario,
): readonly PolicyProblem[] {
  const { rate, client = Object.keys(upstreams)[0] ?? '' } = search;
  for (const [model, { deployments = [] }] of Object.entries(policy.models ?? {})) {
    const i = deployments.findIndex((one) => (one.client ?? client) === client && one.quota?.[rate] !== undefined);
    if (i < 0) continue;
    const place = atOf(['models', model, 'deployments', i, 'quota', rate]);
    return [problemOf([...path, 'rate'], 'a limit that the policy has in one place', `one that ${place} holds too`)];
  }
  return [];
}

function clientProblems(client: string | undefined, path: PolicyPath, { upstreams }: Scenario): PolicyProblem[] {
  const names = Object.keys(upstreams);
  if (client === undefined) {
    return names.length === 1 ? [] : [problemOf(path, `one of ${names.join(', ')}, as there are several`, 'nothing')];
  }
  if (names.includes(client)) return [];
  return [problemOf(path, `one of ${names.join(', ')}`, quoted(client), { suggestion: closest(client, names) })];
}

/** `loaded`: calls are to ask for it. */
function modelProblems(model: string, path: PolicyPath, scenario: Scenario, loaded: boolean): PolicyProblem[] {
  const { load, upstreams } = scenario;
  const models = Object.values(upstreams).map((upstream) => upstream.models);
  const traced = load.flatMap(({ arrivals }) => (arrivals.kind === 'trace' ? arrivals.calls : []));
  const asked = new Set([...load, ...traced].flatMap((one) => one.model ?? []));
  const served = models.includes(undefined) ? undefined : models.flatMap((of) => Object.keys(of ?? {}));
  const names = loaded ? [...asked] : served;
  if (names === undefined || names.includes(model)) return [];
  const expected = loaded ? `a model that calls ask for: ${names.join(', ')}` : `one of ${names.join(', ')}`;
  return [problemOf(path, expected, quoted(model), { suggestion: closest(model, names) })];
}

function deploymentProblems(
  client: string = '',
  path: PolicyPath,
  { policy = {}, upstreams }: Scenario,
): readonly PolicyProblem[] {
  const name = client === '' ? (Object.keys(upstreams)[0] ?? '') : client;
  const listing = Object.entries(policy.models ?? {}).filter(([, model]) => model.deployments !== undefined);
  if (listing.length > 0) {
    const models = listed(listing.map(([model]) => model));
    return [problemOf([...path, 'kind'], 'a policy whose models list no deployments', `those of ${models}`)];
  }
  const parsed = parsePolicy(policy, { clients: Object.keys(upstreams) });
  const serves = Object.keys(parsed.models).some((model) => modelPolicy(parsed, model).client === name);
  return serves ? [] : [problemOf([...path, 'client'], 'a client that serves a model', quoted(name))];
}

/** The policy has to take both ends: what lies between is then taken too. */
function endProblems(
  search: PlanSearch,
  path: PolicyPath,
  { scenario, precision }: PlanInput,
): readonly PolicyProblem[] {
  const knob = knobOf(search, scenario, precision ?? PLAN_DEFAULTS.precision);
  for (const [key, end] of endsOf(search, knob.values)) {
    const { policy = {}, upstreams } = knob.apply(scenario, end);
    const [problem] = readPolicy(policy, { clients: Object.keys(upstreams) }).problems;
    if (problem === undefined) continue;
    const { at, expected, got, suggestion } = problem;
    // A name that there is not is told as what came.
    if (search.kind === 'policy' && got === quoted(String(problem.path.at(-1)))) {
      return [problemOf([...path, 'path'], `a setting of the policy, and of them ${expected}`, got, { suggestion })];
    }
    return [problemOf([...path, ...key], `what the policy takes, at ${at} ${expected}`, got)];
  }
  return [];
}

function endsOf(search: PlanSearch, values: readonly PlanValue[]): (readonly [PolicyPath, PlanValue])[] {
  if (search.kind === 'policy' && search.values !== undefined) {
    return search.values.map((value, i) => [['values', i], value]);
  }
  const [from, to] = [values[0] as PlanValue, values.at(-1) as PlanValue];
  const isBackwards = from > to;
  return [
    [['from'], isBackwards ? to : from],
    [['to'], isBackwards ? from : to],
  ];
}

/** What makes a number of `find` another one. */
function identityOf(search: PlanSearch, scenario: Scenario): string {
  switch (search.kind) {
    case 'quota':
      return JSON.stringify([search.rate, search.client ?? Object.keys(scenario.upstreams)[0], search.model]);
    case 'deployments':
      return JSON.stringify(['deployments', search.client ?? Object.keys(scenario.upstreams)[0]]);
    case 'modelShare':
      return JSON.stringify(['modelShare', search.model]);
    case 'load':
      return 'load';
    case 'policy':
      return JSON.stringify(policyPathOf(search.path, scenario));
  }
}

function priceProblems({ load, policy = {}, upstreams }: Scenario): PolicyProblem[] {
  const parsed = parsePolicy(policy, { clients: Object.keys(upstreams) });
  const models = [...new Set(load.map(({ model }) => model))];
  const priceless = models.filter((model) => modelPolicy(parsed, model).price === undefined);
  if (priceless.length === 0) return [];
  return [problemOf(['target', 'costPerMonth'], `a price of ${listed(priceless)} in the policy`, 'none')];
}
