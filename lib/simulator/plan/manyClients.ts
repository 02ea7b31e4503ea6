import type { LayerInput, PolicyInput } from '../../policy/PolicyInput.ts';
import { overPreset } from '../../policy/mergeInputs.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import type { Scenario, Upstream } from '../scenario/Scenario.ts';

const RATES = ['requestsPerMinute', 'burstRequests', 'tokensPerMinute', 'burstTokens'] as const;

/**
 * The scenario with `count` accounts such as that of `client`: providers with the same limits and faults, and a policy under which
 * the models of that client are served by all of them.
 */
export function manyClients(scenario: Scenario, client: string, count: number): Scenario {
  const upstream = scenario.upstreams[client] as Upstream;
  const names = [client, ...Array.from({ length: count - 1 }, (_, i) => `${client}-${i + 2}`)];
  const upstreams = { ...scenario.upstreams, ...Object.fromEntries(names.map((name) => [name, upstream])) };
  return { ...scenario, upstreams, policy: withDeployments(scenario, names) };
}

function withDeployments({ policy = {}, upstreams }: Scenario, names: readonly string[]): PolicyInput {
  const [client = ''] = names;
  const { models } = parsePolicy(policy, { clients: Object.keys(upstreams) });
  const { account } = overPreset(policy).quota ?? {};
  const own = policy.quota?.clients?.[client];
  // Where there are several accounts, the layer of all that have none of their own would hold them together.
  const layer: LayerInput = own ?? Object.fromEntries(RATES.flatMap((rate) => ratesOf(account?.[rate], rate)));
  const deployments = names.map((name) => ({ client: name }));
  const served = Object.entries(models).filter(([, model]) => model.client === client);
  return {
    ...policy,
    quota: {
      ...policy.quota,
      clients: { ...policy.quota?.clients, ...Object.fromEntries(names.map((name) => [name, layer])) },
    },
    models: {
      ...policy.models,
      ...Object.fromEntries(served.map(([name]) => [name, { ...policy.models?.[name], deployments }])),
    },
  };
}

function ratesOf(value: number | undefined, rate: string): (readonly [string, number])[] {
  return value === undefined ? [] : [[rate, value]];
}
