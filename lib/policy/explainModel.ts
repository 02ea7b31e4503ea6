import { STAGE_TIMER_DEFAULTS } from '../core/stageTimeouts.ts';
import { layerLines } from './explainQuota.ts';
import type { BreakerPolicy, ConcurrencyPolicy, DeploymentPolicy, ModelPolicy, RetryPolicy } from './Policy.ts';
import { count, counted, duration, listed, percent } from './words.ts';

/** What happens to a request for the model, from where it is sent to what is done when that fails. */
export function modelLines(model: ModelPolicy): readonly string[] {
  const { deployments, quota, breaker, concurrency } = model;
  return [
    ...(deployments.length > 1 ? [`served by the least loaded of ${deployments.length}:`] : []),
    ...deployments.flatMap((deployment) => deploymentLines(deployment, model)),
    ...layerLines(quota).map((line) => (deployments.length > 1 ? `all of them together: ${line}` : line)),
    retryLine(model.retry),
    breakerLine(breaker),
    concurrencyLine(concurrency),
    ...fallbackLines(model),
    timeoutsLine(model),
    midStreamLine(model),
    ...paramsLines(model),
    ...priceLines(model),
  ];
}

function deploymentLines(deployment: DeploymentPolicy, model: ModelPolicy): readonly string[] {
  const { client, model: name, quota, breaker, concurrency } = deployment;
  const where = `client ${client}${name === undefined ? '' : `, as ${name}`}`;
  const [lead, indent] = model.deployments.length > 1 ? ['- ', '  '] : ['served by ', ''];
  const own = [...layerLines(quota)];
  // Plain data made by one function: the same settings give the same text.
  if (JSON.stringify(breaker) !== JSON.stringify(model.breaker)) own.push(breakerLine(breaker));
  if (JSON.stringify(concurrency) !== JSON.stringify(model.concurrency)) own.push(concurrencyLine(concurrency));
  return [`${lead}${where}`, ...own.map((line) => `${indent}${line}`)];
}

function retryLine({ attempts, baseMs, capMs, jitter, maxHintMs }: RetryPolicy): string {
  if (attempts === 1) return 'one attempt: nothing is tried again';
  const drawn = {
    full: 'each drawn at random below that',
    equal: 'each drawn at random from half of that up',
    decorrelated: 'each drawn at random from the one before',
    none: 'not drawn at random, so that callers who failed together come back together',
  }[jitter];
  const hint = maxHintMs === Infinity ? 'however long it is' : `up to ${duration(maxHintMs)}`;
  return (
    `up to ${count(attempts)} attempts; waits of ${duration(Math.min(baseMs, capMs))}, doubling up to ` +
    `${duration(capMs)}, ${drawn}; a wait that the provider asks for is slept out ${hint}`
  );
}

function breakerLine(breaker: BreakerPolicy): string {
  const { consecutiveFailures, errorRatio, minCalls, windowMs, openMs, halfOpenShare, countRateLimited } = breaker;
  const when = [
    ...(consecutiveFailures < Infinity ? [`${counted(consecutiveFailures, 'failure')} in a row`] : []),
    ...(errorRatio < Infinity
      ? [`${percent(errorRatio)} failures among ${count(minCalls)} calls or more in ${duration(windowMs)}`]
      : []),
  ];
  if (when.length === 0) return 'no breaker: it is asked however often it fails';
  const counts = countRateLimited ? '; a 429 counts as a failure' : '';
  return (
    `breaker: after ${when.join(' or ')} nothing is sent for ${duration(openMs)}; ` +
    `then ${percent(halfOpenShare)} of the traffic probes${counts}`
  );
}

function concurrencyLine(concurrency: ConcurrencyPolicy): string {
  if (concurrency.limit === Infinity) return 'no limit on attempts in flight';
  if (concurrency.limit !== undefined) return `at most ${counted(concurrency.limit, 'attempt')} in flight`;
  const { initial, min, max } = concurrency;
  return `at first ${counted(initial, 'attempt')} in flight, then from ${count(min)} to ${count(max)}, by what the provider bears`;
}

function fallbackLines({ fallback, fallbackOn, maxPromptTokens }: ModelPolicy): readonly string[] {
  const lines = Object.entries(fallbackOn).map(([code, models]) =>
    models.length > 0 ? `after ${code}: ${listed(models)}` : `after ${code}: no other model`,
  );
  if (fallback.length > 0)
    lines.push(`when it fails${lines.length > 0 ? ' otherwise' : ''}: ${fallback.join(', then ')}`);
  if (maxPromptTokens < Infinity)
    lines.push(`as a fallback only for prompts of up to ${counted(maxPromptTokens, 'token')}`);
  return lines;
}

function timeoutsLine({ timeouts }: ModelPolicy): string {
  const { headersMs, firstContentMs, idleMs } = timeouts;
  const within = (ms: number): string => (ms === Infinity ? 'at any time' : `within ${duration(ms)}`);
  const content =
    firstContentMs === undefined
      ? `within ${duration(STAGE_TIMER_DEFAULTS.firstContentMs)} or half of the time left, whichever is less,`
      : `${within(firstContentMs)},`;
  return `sent, it is answered ${within(headersMs)}, with content ${content} and goes on ${within(idleMs)} each time`;
}

function midStreamLine({ midStream, canContinue }: ModelPolicy): string {
  if (midStream === 'fail') return 'a stream that breaks off ends the call with what has come';
  const anew = 'is started over, for consumers that can take that';
  if (midStream === 'restart' || !canContinue) return `a stream that breaks off ${anew}`;
  return `a stream that breaks off is continued; where that cannot be it ${anew}`;
}

function paramsLines({ params, includeUsage }: ModelPolicy): readonly string[] {
  const changes = [
    ...(params.omit.length > 0 ? [`leaves out ${listed(params.omit)}`] : []),
    ...Object.entries(params.rename).map(([from, to]) => `renames ${from} to ${to}`),
    ...Object.keys(params.set).map((name) => `sets ${name}`),
    ...(includeUsage ? [] : ['does not ask for usage']),
  ];
  return changes.length > 0 ? [`the request ${changes.join(', ')}`] : [];
}

function priceLines({ price }: ModelPolicy): readonly string[] {
  if (price === undefined) return [];
  const { inputPerMTok, outputPerMTok } = price;
  return [`a million tokens cost ${count(inputPerMTok)} in and ${count(outputPerMTok)} out`];
}
