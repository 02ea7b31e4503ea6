import { AIMD_DEFAULTS } from '../limits/Aimd.ts';
import { closest } from './closest.ts';
import { contradiction } from './Contradiction.ts';
import type { Contradiction } from './Contradiction.ts';
import { fallbackProblems } from './fallbackProblems.ts';
import { overPreset } from './mergeInputs.ts';
import type { BreakerPolicy, ConcurrencyPolicy, LayerPolicy, Policy } from './Policy.ts';
import type { ConcurrencyInput, PolicyInput } from './PolicyInput.ts';
import { quoted } from './PolicyProblem.ts';
import type { PolicyPath } from './PolicyProblem.ts';
import { isSecret, shown } from './shown.ts';

/**
 * Settings that are right one by one and not together. `own` is what was written, `policy` what it means. `clients` are
 * the names that there are; without them any will do.
 */
export function contradictions(
  own: PolicyInput,
  policy: Policy,
  clients: readonly string[] | undefined,
): readonly Contradiction[] {
  return [
    ...layers(own, policy),
    ...reservations(policy),
    ...models(own, policy),
    ...fallbackProblems(overPreset(own), policy),
    ...unknownClients(overPreset(own), policy, clients),
    ...priorities(own, policy),
    ...gatewayKeys(policy),
  ];
}

function* layers(own: PolicyInput, policy: Policy): Generator<Contradiction> {
  const { quota = {}, models = {}, tenants = {} } = overPreset(own);
  const written: (readonly [PolicyPath, LayerPolicy | undefined, LayerPolicy | undefined])[] = [
    [['quota', 'account'], quota.account, policy.quota.account],
  ];
  for (const [name, layer] of Object.entries(quota.clients ?? {})) {
    written.push([['quota', 'clients', name], layer, policy.quota.clients[name]]);
  }
  for (const [name, model] of Object.entries(models)) {
    const resolved = policy.models[name];
    written.push([['models', name, 'quota'], model.quota, resolved?.quota]);
    for (const [i, deployment] of (model.deployments ?? []).entries()) {
      written.push([['models', name, 'deployments', i, 'quota'], deployment.quota, resolved?.deployments[i]?.quota]);
    }
  }
  for (const [name, tenant] of Object.entries(tenants)) written.push([['tenants', name], tenant, policy.tenants[name]]);

  const pairs = [
    ['requestsPerMinute', 'burstRequests'],
    ['tokensPerMinute', 'burstTokens'],
  ] as const;
  for (const [path, layer, resolved] of written) {
    for (const [rate, burst] of pairs) {
      if (layer?.[burst] === undefined || resolved?.[rate] !== undefined) continue;
      yield contradiction([...path, rate], `a rate beside ${burst}`, 'nothing');
    }
  }
}

function* reservations({ tenants, maxInFlight }: Policy): Generator<Contradiction> {
  let reserved = 0;
  for (const [name, tenant] of Object.entries(tenants)) {
    const { reservedInFlight } = tenant;
    const path = ['tenants', name, 'reservedInFlight'];
    if (name === 'default' && reservedInFlight > 0) {
      yield contradiction(path, '0, since tenants not listed are without number', String(reservedInFlight));
      continue;
    }
    reserved += reservedInFlight;
    if (reservedInFlight > tenant.maxInFlight) {
      yield contradiction(path, `at most its maxInFlight (${tenant.maxInFlight})`, String(reservedInFlight));
    }
  }
  if (reserved > maxInFlight) {
    yield contradiction(
      ['tenants'],
      `reservedInFlight of all tenants together at most maxInFlight (${maxInFlight})`,
      String(reserved),
      { from: [['maxInFlight']] },
    );
  }
}

function* models(own: PolicyInput, policy: Policy): Generator<Contradiction> {
  const someContinue = Object.values(policy.models).some(({ canContinue }) => canContinue);
  for (const [name, model] of Object.entries(policy.models)) {
    const written = own.models?.[name];
    const path = ['models', name];
    if (written?.midStream === 'continue' && !model.canContinue && !(name === 'default' && someContinue)) {
      const expected = 'true, since midStream is continue';
      yield contradiction([...path, 'canContinue'], expected, String(model.canContinue), {
        from: [[...path, 'midStream']],
      });
    }
    yield* bounds(path, model.breaker, model.concurrency, written?.concurrency);
    for (const [i, deployment] of model.deployments.entries()) {
      const listed = written?.deployments?.[i];
      if (!listed?.breaker && !listed?.concurrency) continue;
      yield* bounds([...path, 'deployments', i], deployment.breaker, deployment.concurrency, listed.concurrency);
    }
  }
}

function* bounds(
  path: PolicyPath,
  { openMs, openCapMs }: BreakerPolicy,
  concurrency: ConcurrencyPolicy,
  written: ConcurrencyInput | undefined,
): Generator<Contradiction> {
  if (openCapMs < openMs) {
    yield contradiction([...path, 'breaker', 'openCapMs'], `at least openMs (${openMs})`, String(openCapMs));
  }
  if (concurrency.limit !== undefined) {
    const adaptive = Object.keys(AIMD_DEFAULTS).filter((key) => written && Object.hasOwn(written, key));
    if (adaptive.length === 0) return;
    yield contradiction(
      [...path, 'concurrency', 'limit'],
      `no limit beside ${adaptive.join(', ')}`,
      String(written?.limit),
    );
    return;
  }
  const { initial, min, max } = concurrency;
  if (min > max) yield contradiction([...path, 'concurrency', 'min'], `at most max (${max})`, String(min));
  else if (initial < min || initial > max) {
    const expected = `from min (${min}) to max (${max})`;
    yield contradiction([...path, 'concurrency', 'initial'], expected, String(initial));
  }
}

/** Tells of each name where it was written. */
function* unknownClients(
  input: PolicyInput,
  policy: Policy,
  known: readonly string[] | undefined,
): Generator<Contradiction> {
  if (known === undefined) return;
  const named: (readonly [PolicyPath, string])[] = Object.keys(policy.quota.clients).map((name) => [
    ['quota', 'clients', name],
    name,
  ]);
  for (const [name, { client, deployments = [] }] of Object.entries(input.models ?? {})) {
    if (client !== undefined) named.push([['models', name, 'client'], client]);
    for (const [i, { client: its }] of deployments.entries()) {
      if (its !== undefined) named.push([['models', name, 'deployments', i, 'client'], its]);
    }
  }
  if (known.length === 0) named.push([['models', 'default', 'client'], policy.models.default.client]);
  for (const [path, client] of named) {
    if (known.includes(client)) continue;
    const expected = known.length === 0 ? 'a client, and there is none' : `one of ${known.map(quoted).join(', ')}`;
    yield contradiction(path, expected, shown(client, false), { suggestion: closest(client, known) });
  }
}

function* priorities(own: PolicyInput, policy: Policy): Generator<Contradiction> {
  const { order } = policy.priorities;
  const { order: written, levels = {}, ageingMs: _, ...byName } = own.priorities ?? {};
  const from = [['priorities', 'order']];
  const unknown = (path: PolicyPath, name: string): Contradiction =>
    contradiction(path, `a priority of order: ${order.join(', ')}`, shown(name, isSecret(path)), {
      suggestion: closest(name, order),
      from,
    });
  for (const [i, name] of (written ?? []).entries()) {
    const path = ['priorities', 'order', i];
    if (order.indexOf(name) < i) yield contradiction(path, 'each priority once', shown(name, false));
    if (['order', 'levels', 'ageingMs'].includes(name)) yield contradiction(path, 'another name', shown(name, false));
  }
  for (const name of Object.keys(byName)) if (!order.includes(name)) yield unknown(['priorities', name], name);
  for (const name of Object.keys(levels))
    if (!order.includes(name)) yield unknown(['priorities', 'levels', name], name);
  for (const [i, { priority }] of policy.gateway.keys.entries()) {
    if (priority !== undefined && !order.includes(priority))
      yield unknown(['gateway', 'keys', i, 'priority'], priority);
  }
}

function* gatewayKeys({ gateway }: Policy): Generator<Contradiction> {
  const firstAt = new Map<string, number>();
  for (const [i, { hash }] of gateway.keys.entries()) {
    const first = firstAt.get(hash);
    if (first === undefined) firstAt.set(hash, i);
    else yield contradiction(['gateway', 'keys', i], 'each key once', `the key of gateway.keys[${first}]`);
  }
}
