import type {
  BreakerPolicy,
  ConcurrencyPolicy,
  LayerPolicy,
  ModelPolicy,
  Policy,
  RetryPolicy,
  TimeoutsPolicy,
} from './Policy.ts';
import { atOf } from './PolicyProblem.ts';
import type { PolicyPath, PolicyWarning } from './PolicyProblem.ts';
import { count, duration, percent } from './words.ts';

/**
 * Settings that are allowed and cannot work well, such as a deadline below the first backoff.
 *
 * @example
 * ```ts
 * import { parsePolicy, policyWarnings } from 'sluice';
 *
 * const policy = parsePolicy({ deadlineMs: 200, models: { default: { retry: { baseMs: 500 } } } });
 * console.log(policyWarnings(policy)[0]?.at); // => models.default.retry.baseMs
 * ```
 */
export function policyWarnings(policy: Policy): readonly PolicyWarning[] {
  const found = [...shares(policy), ...refunds(policy), ...retries(policy)];
  for (const [name, model] of Object.entries(policy.models)) {
    const path = ['models', name];
    // What comes from `default` is told once.
    const own = (part: 'retry' | 'timeouts' | 'concurrency' | 'breaker'): boolean =>
      name === 'default' || JSON.stringify(model[part]) !== JSON.stringify(policy.models.default[part]);
    if (own('retry')) found.push(...retryWarnings([...path, 'retry'], model.retry, policy));
    if (own('timeouts')) found.push(...timeoutWarnings([...path, 'timeouts'], model.timeouts, policy));
    if (own('concurrency')) found.push(...concurrencyWarnings([...path, 'concurrency'], model.concurrency, policy));
    found.push(...quotaWarnings(path, model, policy), ...priceWarnings(path, model, policy));
  }
  return found.filter(({ message }, i) => found.findIndex((other) => other.message === message) === i);
}

function warning(path: PolicyPath, says: string): PolicyWarning {
  const at = atOf(path);
  return { path, at, message: `${at}: ${says}` };
}

function* shares({ maxInFlight, tenants, priorities }: Policy): Generator<PolicyWarning> {
  const reserving = Object.entries(tenants).filter(([, { reservedInFlight }]) => reservedInFlight > 0);
  if (reserving.length > 0 && maxInFlight === Infinity) {
    yield warning(['maxInFlight'], 'without it no slots can be kept for a tenant: reservedInFlight has no effect');
  }
  const reserved = reserving.reduce((sum, [, { reservedInFlight }]) => sum + reservedInFlight, 0);
  if (reserved > 0 && reserved === maxInFlight) {
    yield warning(['tenants'], 'all of maxInFlight is reserved: other tenants get only what these lend');
  }
  if (maxInFlight === Infinity) return;
  for (const [name, tenant] of Object.entries(tenants)) {
    if (tenant.maxInFlight < Infinity && tenant.maxInFlight > maxInFlight) {
      yield warning(['tenants', name, 'maxInFlight'], `never met, since maxInFlight is ${count(maxInFlight)}`);
    }
  }
  for (const [name, level] of Object.entries(priorities.levels)) {
    if (level.maxInFlight < Infinity && level.maxInFlight > maxInFlight) {
      yield warning(['priorities', name, 'maxInFlight'], `never met, since maxInFlight is ${count(maxInFlight)}`);
    }
  }
}

function* retryWarnings(path: PolicyPath, retry: RetryPolicy, { deadlineMs }: Policy): Generator<PolicyWarning> {
  const { attempts, baseMs, capMs, jitter } = retry;
  if (attempts === 1) return;
  const firstMs = Math.min(baseMs, capMs);
  const waitsMs = meanWaitsMs(retry);
  const deadline = `the deadline of ${duration(deadlineMs)}`;
  if (firstMs >= deadlineMs) {
    yield warning([...path, 'baseMs'], `the first wait, of up to ${duration(firstMs)}, does not fit into ${deadline}`);
  } else if (waitsMs >= deadlineMs) {
    const says = `the waits alone, about ${duration(waitsMs)}, do not fit into ${deadline}: the last ones are never made`;
    yield warning([...path, 'attempts'], says);
  }
  if (baseMs > capMs) yield warning([...path, 'baseMs'], `above capMs: every wait is up to ${duration(capMs)}`);
  if (jitter === 'none') yield warning([...path, 'jitter'], 'callers that failed together come back together');
}

/** Waits before all retries, on average. */
function meanWaitsMs({ attempts, baseMs, capMs, jitter }: RetryPolicy): number {
  const part = jitter === 'full' ? 0.5 : jitter === 'equal' ? 0.75 : 1;
  // So many doublings are above any cap.
  const doubling = Math.min(attempts - 1, 64);
  let waitsMs = (attempts - 1 - doubling) * capMs;
  for (let i = 0; i < doubling; i++) waitsMs += Math.min(capMs, baseMs * 2 ** i);
  return part * waitsMs;
}

function* timeoutWarnings(
  path: PolicyPath,
  { firstContentMs = 0 }: TimeoutsPolicy,
  { deadlineMs }: Policy,
): Generator<PolicyWarning> {
  if (firstContentMs < deadlineMs || firstContentMs === Infinity) return;
  const says = `a silent provider uses up the deadline of ${duration(deadlineMs)}: no retry and no fallback fits`;
  yield warning([...path, 'firstContentMs'], says);
}

function* concurrencyWarnings(
  path: PolicyPath,
  concurrency: ConcurrencyPolicy,
  { maxInFlight }: Policy,
): Generator<PolicyWarning> {
  if (concurrency.limit !== undefined || concurrency.min <= maxInFlight) return;
  yield warning([...path, 'min'], `never met, since maxInFlight is ${count(maxInFlight)}`);
}

function* quotaWarnings(path: PolicyPath, model: ModelPolicy, { quota }: Policy): Generator<PolicyWarning> {
  yield* exceeding([...path, 'quota'], model.quota, quota.account);
  for (const [i, deployment] of model.deployments.entries()) {
    const { client } = deployment;
    const account = (Object.hasOwn(quota.clients, client) ? quota.clients[client] : undefined) ?? quota.account;
    yield* exceeding([...path, 'deployments', i, 'quota'], deployment.quota, account);
    const rates = [deployment.quota, model.quota, account].map((layer) => layer.requestsPerMinute ?? Infinity);
    yield* starved([...path, 'breaker', 'minCalls'], deployment.breaker, Math.min(...rates));
  }
}

function* priceWarnings(path: PolicyPath, { price }: ModelPolicy, { spend }: Policy): Generator<PolicyWarning> {
  if (price !== undefined || !Object.values(spend.perTenantPerDay).some((amount) => amount < Infinity)) return;
  yield warning([...path, 'price'], 'not given, so that its calls count nothing towards spend.perTenantPerDay');
}

function* exceeding(path: PolicyPath, inner: LayerPolicy, outer: LayerPolicy): Generator<PolicyWarning> {
  for (const rate of ['requestsPerMinute', 'tokensPerMinute'] as const) {
    const [own, account] = [inner[rate], outer[rate]];
    if (own === undefined || account === undefined || own <= account) continue;
    yield warning(
      [...path, rate],
      `never met, since the account has ${count(account)}; a client with another account is to stand in quota.clients`,
    );
  }
}

function* starved(path: PolicyPath, breaker: BreakerPolicy, perMinute: number): Generator<PolicyWarning> {
  const { errorRatio, windowMs, minCalls } = breaker;
  if (errorRatio === Infinity || (perMinute * windowMs) / 60_000 >= minCalls) return;
  yield warning(
    path,
    `at ${count(perMinute)} requests a minute there are never ${count(minCalls)} calls in ${duration(windowMs)}: ` +
      `an error ratio of ${percent(errorRatio)} opens nothing`,
  );
}

function* refunds({ quota }: Policy): Generator<PolicyWarning> {
  const layers = [
    [['quota', 'account'], quota.account] as const,
    ...Object.entries(quota.clients).map(([name, layer]) => [['quota', 'clients', name], layer] as const),
  ];
  for (const [path, { refundOn }] of layers) {
    if (refundOn.rate_limited === 'none') continue;
    yield warning(
      [...path, 'refundOn', 'rate_limited'],
      'providers count what they refuse: what comes back is not there',
    );
  }
}

function* retries({ retryBudget, models }: Policy): Generator<PolicyWarning> {
  if (retryBudget.ratio > 0 || retryBudget.minPerSecond > 0) return;
  if (!Object.values(models).some(({ retry }) => retry.attempts > 1)) return;
  yield warning(['retryBudget'], 'leaves nothing to retries: no attempt after the first is ever made');
}
