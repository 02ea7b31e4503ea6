import type { LayerPolicy, Policy, QuotaRulesPolicy } from '../../../lib/index.ts';
import type { QuotaSettings } from '../../../lib/emulator/index.ts';
import type { ChaosPlan, PlannedProvider } from '../plan/ChaosPlan.ts';

/** What a margin may cost of the rate, where the burst does not cover it. */
const MOST_LOST = 0.03;
const MINUTE_MS = 60_000;
/** Connections that are made, and turns of the event loop, between the client and an emulator of the same process. */
const LOOPBACK_MS = 50;

/**
 * Whether a policy tells all of what a provider allows, so that nothing it refuses is anybody's fault but the client's: the
 * same rates, on both sides nothing given back that the other may have counted, nobody else at the quota, and messages
 * that are no more out of step than the margin by which grants come late.
 */
export function knowsLimits(plan: ChaosPlan, policy: Policy, client: string): boolean {
  const provider = plan.providers[client];
  if (provider === undefined) return false;
  const { networkMs, options } = provider;
  const outOfStepMs = plan.world === 'virtual' ? networkMs[1] - networkMs[0] : LOOPBACK_MS;
  const knows = (known: LayerPolicy, real: QuotaSettings, rules: QuotaRulesPolicy): boolean =>
    sameRates(known, real) && keeps(rules) && marginMs(known, rules) >= outOfStepMs;
  const account = policy.quota.clients[client] ?? policy.quota.account;
  return (
    isSteady(plan, client, provider) &&
    knows(account, options, account) &&
    Object.entries(options.models ?? {}).every(([upstream, limits]) => {
      const [name = upstream] = upstream.split('@');
      const model = policy.models[name];
      const place = model?.deployments.find((deployment) => deployment.client === client);
      if (model === undefined || place === undefined) return false;
      return knows(model.deployments.length > 1 ? place.quota : model.quota, limits, place.quota);
    })
  );
}

function isSteady({ shocks }: ChaosPlan, client: string, { options }: PlannedProvider): boolean {
  const limited = [options, ...Object.values(options.models ?? {})];
  return (
    limited.every(({ noiseShare = 0, maxConcurrent }) => noiseShare === 0 && maxConcurrent === undefined) &&
    !shocks.some((shock) => shock.kind === 'limits' && shock.client === client)
  );
}

/** As much of the margin as the bursts cover: what holds no more than one request, or the tokens of one, covers little. */
function marginMs(
  { requestsPerMinute, burstRequests = 1, tokensPerMinute, burstTokens = 0 }: LayerPolicy,
  { arrivalMarginMs }: QuotaRulesPolicy,
): number {
  const requestsMs = ((burstRequests - 1 + MOST_LOST) * MINUTE_MS) / (requestsPerMinute ?? 0);
  const tokensMs = (MOST_LOST * burstTokens * MINUTE_MS) / (tokensPerMinute ?? 0);
  return Math.min(
    arrivalMarginMs,
    requestsPerMinute === undefined ? Infinity : requestsMs,
    tokensPerMinute === undefined ? Infinity : tokensMs,
  );
}

function sameRates(known: LayerPolicy, real: QuotaSettings): boolean {
  const { requestsPerMinute, tokensPerMinute } = real;
  return (
    known.requestsPerMinute === requestsPerMinute &&
    known.tokensPerMinute === tokensPerMinute &&
    (requestsPerMinute === undefined ||
      known.burstRequests === Math.max(1, real.burstRequests ?? requestsPerMinute / 60)) &&
    (tokensPerMinute === undefined || known.burstTokens === (real.burstTokens ?? tokensPerMinute))
  );
}

function keeps({ settle, refundOn }: QuotaRulesPolicy): boolean {
  const { unanswered, server_error: failed, overloaded } = refundOn;
  return settle === 'reserved' && [unanswered, failed, overloaded].every((refund) => refund === 'none');
}
