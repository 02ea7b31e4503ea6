import { modelLines } from './explainModel.ts';
import { layerLines, quotaLines } from './explainQuota.ts';
import type { Policy, PrioritiesPolicy, TenantPolicy } from './Policy.ts';
import { POLICY_DEFAULTS } from './policyDefaults.ts';
import { policyWarnings } from './policyWarnings.ts';
import { count, counted, duration, listed, percent } from './words.ts';

/**
 * What a policy does, in words: what a call passes through, in order, what each limit means for those who meet it, and
 * what cannot work well. For people; the wording may change. Holds no keys and no addresses.
 *
 * @example
 * ```ts
 * import { explain, parsePolicy } from 'sluice';
 *
 * console.log(explain(parsePolicy({ preset: 'firstAid' })));
 * ```
 */
export function explain(policy: Policy): string {
  const { default: others, ...models } = policy.models;
  const warnings = policyWarnings(policy).map(({ message }) => message);
  return [
    section('A call passes, from the outside in:', pipelineLines(policy)),
    section('All calls together:', togetherLines(policy)),
    section('The account:', quotaLines(policy)),
    ...Object.entries(models).map(([name, model]) => section(`Model ${name}:`, modelLines(model))),
    section(Object.keys(models).length > 0 ? 'Other models:' : 'Every model:', modelLines(others)),
    section('Tenants:', tenantsLines(policy)),
    ...(warnings.length > 0 ? [section('Warnings:', warnings)] : []),
  ].join('\n\n');
}

function section(title: string, lines: readonly string[]): string {
  return [title, ...lines.map((line) => `  ${line}`)].join('\n');
}

function pipelineLines(policy: Policy): readonly string[] {
  const { deadlineMs, totalMs, conversations } = policy;
  const { maxWaiting, maxWaitMs, header } = conversations;
  const deadline =
    deadlineMs === Infinity
      ? 'none: it may take any time'
      : `its first content comes within ${duration(deadlineMs)}, waits included, or it fails`;
  const total = totalMs === Infinity ? '' : `; all of it within ${duration(totalMs)}`;
  const waiting = maxWaiting === Infinity ? 'any number' : count(maxWaiting);
  const waits = maxWaitMs === Infinity ? '' : `, each up to ${duration(maxWaitMs)}`;
  const sent = header === null ? '' : `; the id is sent upstream as ${header}`;
  const steps: readonly (readonly [string, string])[] = [
    ['deadline', `${deadline}${total}`],
    ['conversation', `one turn at a time in each; at most ${waiting} wait${waits}${sent}`],
    ['fallback', 'a model that fails before any content hands over to the next one'],
    ['retry', 'what failed is tried again, if deadline and retry budget have room for it'],
    ['admission', 'breaker, pauses, quotas and a slot are granted together, in the tick of sending'],
    ['attempt', 'limits on each stage, and then the provider'],
  ];
  return steps.map(([name, effect], i) => `${i + 1}. ${name.padEnd(12)} ${effect}`);
}

function togetherLines(policy: Policy): readonly string[] {
  const { maxInFlight, maxAttempts, quota, priorities, retryBudget } = policy;
  const { maxWaiting, maxWaitMs } = quota.account;
  const floor = retryBudget.minPerSecond;
  return [
    maxInFlight === Infinity
      ? 'any number in flight, up to what each model bears'
      : `at most ${count(maxInFlight)} in flight`,
    `at most ${maxWaiting === Infinity ? 'any number' : count(maxWaiting)} in line` +
      (maxWaitMs === Infinity ? '' : `, each for up to ${duration(maxWaitMs)}`),
    `the most urgent first: ${listed(priorities.order.map((name) => priorityText(name, policy)))}${ageingText(priorities)}`,
    ...passText(quota.account.passShare),
    ...(maxAttempts === Infinity ? [] : [`${counted(maxAttempts, 'attempt')} of a call at most, over all models`]),
    `retries add up to ${percent(retryBudget.ratio)} to the traffic of the last ${duration(retryBudget.windowMs)}` +
      (floor > 0 ? `, or ${counted(floor, 'retry', 'retries')} a second` : ''),
  ];
}

function priorityText(name: string, { priorities }: Policy): string {
  const { maxInFlight = Infinity } = priorities.levels[name] ?? {};
  return maxInFlight === Infinity ? name : `${name} (at most ${count(maxInFlight)} in flight)`;
}

function ageingText({ order, ageingMs }: PrioritiesPolicy): string {
  if (order.length < 2 || ageingMs === Infinity) return '';
  return `; one that has waited ${duration(ageingMs)} gets one turn in eight`;
}

/** The default is left out: it is of interest only to those who change it. */
function passText(passShare: number): readonly string[] {
  if (passShare === POLICY_DEFAULTS.passShare) return [];
  if (passShare === 0) return ['smaller requests never pass a large one that waits for tokens'];
  return [`smaller requests pass a large one that waits for tokens, up to ${percent(passShare)} of what it needs`];
}

function tenantsLines({ tenants, spend }: Policy): readonly string[] {
  const { default: others, ...named } = tenants;
  const daily = spend.perTenantPerDay;
  const lines = Object.entries(named).map(([name, tenant]) => {
    const amount = Object.hasOwn(daily, name) ? (daily[name] ?? Infinity) : daily.default;
    return `${name}: ${tenantText(tenant, amount)}`;
  });
  const onlyPaying = Object.keys(daily).filter((name) => !Object.hasOwn(tenants, name));
  for (const name of onlyPaying) lines.push(`${name}: ${tenantText(others, daily[name] ?? Infinity)}`);
  return [...lines, `${lines.length > 0 ? 'every other' : 'each'}: ${tenantText(others, daily.default)}`];
}

function tenantText(tenant: TenantPolicy, perDay: number): string {
  const { maxInFlight, reservedInFlight, weight } = tenant;
  return [
    ...(reservedInFlight > 0 ? [`${counted(reservedInFlight, 'slot')} kept for it`] : []),
    maxInFlight === Infinity ? 'no ceiling of its own' : `at most ${count(maxInFlight)} in flight`,
    ...(weight === 1 ? [] : [`${count(weight)} times the usual share of what is short`]),
    ...layerLines(tenant),
    ...(perDay === Infinity ? [] : [`spends at most ${count(perDay)} a day`]),
  ].join('; ');
}
