import { modelPolicy } from '../../policy/modelPolicy.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import type { PolicyInput } from '../../policy/PolicyInput.ts';
import { atOf } from '../../policy/PolicyProblem.ts';
import type { PolicyPath } from '../../policy/PolicyProblem.ts';
import { at } from '../../policy/schemaProblems.ts';
import { percent } from '../../policy/words.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import { callsPerMinute, tokensPerCall } from './averages.ts';
import type { Knob } from './Knob.ts';
import { manyClients } from './manyClients.ts';
import type { PlanRate, PlanSearch, PlanValue } from './PlanInput.ts';
import { policyPathOf } from './policyPathOf.ts';
import { scaleOf } from './scaleOf.ts';
import { scaledLoad, sharedLoad } from './scaledLoad.ts';
import { shownValue } from './shownFigure.ts';
import { setAt } from './setAt.ts';

type Of<K extends PlanSearch['kind']> = PlanSearch & { readonly kind: K };

/** What was searched for, made ready. The scenario fits it: see `knobProblems`. */
export function knobOf(search: PlanSearch, scenario: Scenario, precision: number): Knob {
  switch (search.kind) {
    case 'quota':
      return quotaKnob(search, scenario, precision);
    case 'deployments':
      return deploymentsKnob(search, scenario);
    case 'modelShare':
      return modelShareKnob(search, precision);
    case 'load':
      return loadKnob(search, precision);
    case 'policy':
      return policyKnob(search, scenario, precision);
  }
}

const RATE_LABELS: Readonly<Record<PlanRate, string>> = {
  requestsPerMinute: 'requests a minute',
  tokensPerMinute: 'tokens a minute',
  burstRequests: 'requests at once',
  burstTokens: 'tokens at once',
};

/** The burst that comes with a rate, unless it is given. */
const BURSTS: Readonly<Record<PlanRate, readonly PlanRate[]>> = {
  requestsPerMinute: ['burstRequests'],
  tokensPerMinute: ['burstTokens'],
  burstRequests: [],
  burstTokens: [],
};

/** More than any load asks for. A limit that is not there at all would have the policy look for one. */
const FREE = 1e12;

function quotaKnob(search: Of<'quota'>, scenario: Scenario, precision: number): Knob {
  const { rate, model } = search;
  const client = search.client ?? onlyClient(scenario);
  const [from, to] = quotaRange(search, scenario);
  const upstream: PolicyPath = ['upstreams', client, ...(model === undefined ? [] : ['models', model])];
  const layer = layerPath(scenario, client, model);
  const set = (of: Scenario, name: PlanRate, value: number | undefined): Scenario =>
    setAt(setAt(of, [...upstream, name], value), ['policy', ...layer, name], value);
  const label = `${RATE_LABELS[rate]} of ${model ?? client}`;
  return {
    label,
    told: (value) => `${shownValue(value)} ${label}`,
    search: 'smallest',
    values: scaleOf(from, to, precision, true),
    start: 0,
    apply: (of, value) => set(of, rate, value as number),
    free: (of) => BURSTS[rate].reduce((rest, burst) => set(rest, burst, undefined), set(of, rate, FREE)),
    places: [[...layer, rate]],
  };
}

/** Of the loads that it is for: it is a guess, so it goes far in both directions. */
function quotaRange({ rate, model, from, to }: Of<'quota'>, { load, upstreams }: Scenario): readonly [number, number] {
  let perMinute = 0;
  for (const one of load) {
    if (model !== undefined && one.model !== model) continue;
    const tokens = rate === 'tokensPerMinute' || rate === 'burstTokens' ? tokensPerCall(one, upstreams) : 1;
    perMinute += callsPerMinute(one, upstreams) * tokens;
  }
  const isBurst = rate === 'burstRequests' || rate === 'burstTokens';
  const guess = Math.max(1, Math.round(perMinute / (isBurst ? 600 : 20)));
  const least = from ?? Math.min(guess, Math.max(1, Math.floor((to ?? Infinity) / 2)));
  const most = to ?? Math.max(2 * least, Math.round(perMinute * (isBurst ? 2 : 16)));
  return [least, most];
}

/** Where the policy has the limits of a client, or of a model. */
function layerPath({ upstreams, policy = {} }: Scenario, client: string, model: string | undefined): PolicyPath {
  if (model !== undefined) return ['models', model, 'quota'];
  const own = policy.quota?.clients;
  const alone = Object.keys(upstreams).length === 1;
  return alone && !(own && Object.hasOwn(own, client)) ? ['quota', 'account'] : ['quota', 'clients', client];
}

function deploymentsKnob(search: Of<'deployments'>, scenario: Scenario): Knob {
  const { from = 1, to = 16 } = search;
  const client = search.client ?? onlyClient(scenario);
  return {
    label: `accounts such as ${client}`,
    told: (value) => `${shownValue(value)} accounts such as ${client}`,
    search: 'smallest',
    values: Array.from({ length: to - from + 1 }, (_, i) => from + i),
    start: 0,
    copies: true,
    apply: (of, value) => manyClients(of, client, value as number),
    places: servedBy(client, scenario).map((model) => ['models', model, 'deployments']),
  };
}

/** Models of the policy whose calls go to the client. */
function servedBy(client: string, { policy = {}, upstreams }: Scenario): readonly string[] {
  const parsed = parsePolicy(policy, { clients: Object.keys(upstreams) });
  return Object.keys(parsed.models).filter((model) => modelPolicy(parsed, model).client === client);
}

function modelShareKnob({ model, cheaper, from = 0, to = 1 }: Of<'modelShare'>, precision: number): Knob {
  return {
    label: `part of the calls of ${model} asked of ${cheaper}`,
    told: (value) => `${percent(value as number)} of the calls of ${model} asked of ${cheaper}`,
    search: 'smallest',
    values: scaleOf(from, to, precision, false),
    start: 0,
    apply: (of, value) => ({ ...of, load: sharedLoad(of.load, model, cheaper, value as number) }),
    places: [],
    aside: (value) => `The application asks ${cheaper} for ${percent(value as number)} of the calls of ${model}.`,
  };
}

function loadKnob({ from = 0.1, to = 10 }: Of<'load'>, precision: number): Knob {
  return {
    label: 'load, as a multiple',
    told: (value) => `${shownValue(value)} times the load`,
    search: 'largest',
    values: [...scaleOf(from, to, precision, false)].reverse(),
    start: 0,
    apply: (of, value) => ({ ...of, load: scaledLoad(of.load, value as number) }),
    places: [],
    aside: (value) => `For ${shownValue(value)} times the load of the scenario.`,
  };
}

function policyKnob(search: Of<'policy'>, scenario: Scenario, precision: number): Knob {
  const { search: direction = 'best' } = search;
  const path = policyPathOf(search.path, scenario);
  const values = policyValues(search, path, scenario, precision);
  const now = at(scenario.policy, path);
  const own = values.indexOf(now as PlanValue);
  return {
    label: atOf(path),
    told: (value) => `${atOf(path)} ${shownValue(value)}`,
    search: direction,
    values: direction === 'largest' ? [...values].reverse() : values,
    start: own >= 0 ? own : Math.floor((values.length - 1) / 2),
    apply: (of, value) => setAt(of, ['policy', ...path], value),
    places: [path],
  };
}

function policyValues(
  { from, to, values }: Of<'policy'>,
  path: PolicyPath,
  scenario: Scenario,
  precision: number,
): readonly PlanValue[] {
  if (values !== undefined) return values;
  const [least, most] = [from as number, to as number];
  return scaleOf(least, most, precision, isWhole(scenario, path, least, most));
}

/** Whether the policy takes nothing between two whole numbers there. */
function isWhole({ policy = {}, upstreams }: Scenario, path: PolicyPath, from: number, to: number): boolean {
  if (!Number.isInteger(from) || !Number.isInteger(to)) return false;
  return !takes(setAt(policy, path, from + 0.5), Object.keys(upstreams));
}

function takes(policy: PolicyInput, clients: readonly string[]): boolean {
  try {
    parsePolicy(policy, { clients });
    return true;
  } catch {
    return false;
  }
}

export function onlyClient({ upstreams }: Scenario): string {
  return Object.keys(upstreams)[0] as string;
}
