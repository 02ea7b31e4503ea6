import type { ModelInput, PolicyInput } from '../../../lib/index.ts';
import type { LayerInput } from '../../../lib/policy/PolicyInput.ts';
import type { Dice } from './Dice.ts';
import { drawRates } from './drawLimits.ts';
import type { DrawnLimits } from './drawLimits.ts';

export const TENANTS: readonly string[] = ['acme', 'bolt', 'corp', 'dune'];
export const PRIORITIES: readonly string[] = ['interactive', 'batch'];

export interface Measures {
  readonly callsPerMinute: number;
  readonly tokensPerCall: number;
  /** How long an answer takes, about. */
  readonly answerMs: number;
}

/** What faults leave unknown is not given back, so that both sides count alike. */
const NOTHING_BACK = { unanswered: 'none', server_error: 'none', overloaded: 'none' } as const;

/**
 * A policy over these limits, as they are configured. What `exact` says holds for reloads as well: rates are those of the
 * limits, and nothing is given back that the provider may have counted.
 */
export function drawPolicy(dice: Dice, limits: DrawnLimits, measures: Measures, exact: boolean): PolicyInput {
  const { answerMs } = measures;
  const clients = Object.keys(limits.clients);
  const rules: LayerInput = {
    ...(exact || dice.chance(0.3) ? { refundOn: NOTHING_BACK } : {}),
    ...(!exact && dice.chance(0.3) && { settle: 'usage' as const }),
    ...(!exact && dice.chance(0.3) && { arrivalMarginMs: dice.oneOf([0, 20, 200]) }),
    ...(dice.chance(0.3) && { cooldown: { unhintedMs: dice.spread(50, 2_000) } }),
    ...(dice.chance(0.3) && { exhaustedMs: dice.spread(500, 60_000) }),
  };
  const line = {
    ...(dice.chance(0.4) && { maxWaiting: dice.oneOf([0, 1, 5, 30, 1_000]) }),
    ...(dice.chance(0.5) && { maxWaitMs: dice.spread(10, 120_000) }),
    ...(dice.chance(0.2) && { passShare: dice.oneOf([0, 0.5, 2]) }),
  };
  const account = clients.length === 1 ? { ...limits.clients[clients[0] as string] } : {};
  const inFlight = dice.maybe(0.5, () => dice.whole(1, 40));
  return {
    quota: {
      account: { ...account, ...rules, ...line },
      ...(clients.length > 1 && {
        clients: Object.fromEntries(clients.map((name) => [name, { ...limits.clients[name], ...rules }])),
      }),
    },
    models: Object.fromEntries(
      Object.keys(limits.models).map((model) => [model, drawModel(dice, model, limits, rules, measures)]),
    ),
    ...drawTenants(dice, measures, inFlight),
    ...(inFlight !== undefined && { maxInFlight: inFlight }),
    deadlineMs: dice.chance(0.85) ? dice.spread(answerMs, answerMs * 400) : null,
    ...(dice.chance(0.2) && { totalMs: dice.spread(answerMs, answerMs * 400) }),
    ...(dice.chance(0.3) && { maxAttempts: dice.whole(1, 6) }),
    ...(dice.chance(0.5) && {
      retryBudget: {
        ratio: dice.oneOf([0, 0.05, 0.2, 1]),
        minPerSecond: dice.oneOf([0, 0.2, 1, 10]),
        windowMs: dice.oneOf([1_000, 10_000, 60_000]),
      },
    }),
    priorities: {
      order: [...PRIORITIES],
      ...(dice.chance(0.5) && { batch: { maxInFlight: dice.whole(1, 10) } }),
      ...(dice.chance(0.3) && { ageingMs: dice.oneOf([0, 500, 5_000, null]) }),
    },
    ...(dice.chance(0.5) && {
      conversations: {
        maxWaiting: dice.oneOf([0, 1, 3, 20, null]),
        maxWaitMs: dice.oneOf([0, 100, 5_000, 60_000, null]),
        header: dice.oneOf([null, 'x-conversation']),
      },
    }),
    ...(dice.chance(0.2) && { spend: { perTenantPerDay: { default: dice.oneOf([0.002, 0.05, 0.5, null]) } } }),
  };
}

function drawModel(
  dice: Dice,
  model: string,
  limits: DrawnLimits,
  rules: LayerInput,
  { answerMs }: Measures,
): ModelInput {
  const names = Object.keys(limits.models);
  const places = limits.models[model] ?? [];
  const [only] = places;
  const worse = names.slice(names.indexOf(model) + 1);
  const canContinue = dice.chance(0.4);
  return {
    ...(places.length === 1 && only !== undefined
      ? { client: only.client, quota: only.limits }
      : {
          deployments: places.map(({ client, upstream, limits: own }) => ({
            client,
            model: upstream,
            quota: { ...own, ...rules },
          })),
        }),
    retry: {
      attempts: dice.whole(1, 5),
      baseMs: dice.spread(1, answerMs * 4),
      capMs: answerMs * 10,
      jitter: dice.oneOf(['full', 'equal', 'decorrelated', 'none']),
      ...(dice.chance(0.4) && { maxHintMs: dice.spread(1, 120_000) }),
    },
    breaker: {
      consecutiveFailures: dice.oneOf([1, 2, 5, null]),
      errorRatio: dice.oneOf([0.1, 0.25, 0.6, null]),
      ...(dice.chance(0.5) && { windowMs: dice.spread(500, 30_000), minCalls: dice.whole(1, 10) }),
      openMs: dice.spread(50, 15_000),
      ...(dice.chance(0.4) && { halfOpenShare: dice.oneOf([0.01, 0.3, 1]), halfOpenMaxProbes: dice.whole(1, 5) }),
      ...(dice.chance(0.4) && { halfOpenMaxMs: dice.spread(50, 30_000), rampMs: dice.oneOf([0, 500, 5_000]) }),
      countRateLimited: dice.chance(0.2),
    },
    ...(dice.chance(0.6) && {
      concurrency: dice.chance(0.4)
        ? { limit: dice.whole(1, 20) }
        : {
            initial: dice.whole(2, 16),
            min: dice.whole(1, 2),
            max: dice.whole(16, 40),
            growEveryMs: dice.whole(1, 500),
          },
    }),
    ...(worse.length > 0 && dice.chance(0.6) && { fallback: dice.chance(0.5) ? worse : worse.slice(0, 1) }),
    ...(dice.chance(0.3) && { price: { inputPerMTok: 2.5, outputPerMTok: 10 } }),
    timeouts: {
      headersMs: dice.chance(0.5) ? dice.spread(answerMs / 2, answerMs * 10) : answerMs * 20,
      firstContentMs: dice.chance(0.5) ? dice.spread(answerMs / 2, answerMs * 10) : answerMs * 20,
      idleMs: dice.chance(0.5) ? dice.spread(answerMs / 4, answerMs * 10) : answerMs * 20,
      responseMs: dice.chance(0.5) ? dice.spread(answerMs, answerMs * 20) : answerMs * 40,
      ...(dice.chance(0.3) && { tailMs: dice.spread(1, answerMs * 2) }),
    },
    midStream: dice.oneOf(canContinue ? ['fail', 'restart', 'continue'] : ['fail', 'restart']),
    canContinue,
    ...(dice.chance(0.2) && { maxPromptTokens: dice.whole(10, 100) }),
  };
}

function drawTenants(dice: Dice, measures: Measures, inFlight: number | undefined): Pick<PolicyInput, 'tenants'> {
  const { callsPerMinute, tokensPerCall } = measures;
  const drawn = ['default', ...TENANTS].flatMap((name) => {
    if (!dice.chance(0.4)) return [];
    const maxInFlight = dice.maybe(0.5, () => dice.whole(1, 12));
    // All of them together fit into what there is for all.
    const most = Math.min(maxInFlight ?? 3, Math.floor((inFlight ?? 40) / 5));
    return [
      [
        name,
        {
          ...(maxInFlight !== undefined && { maxInFlight }),
          ...(name !== 'default' && dice.chance(0.3) && { reservedInFlight: dice.whole(0, most) }),
          ...(dice.chance(0.5) && { weight: dice.oneOf([0.5, 1, 3]) }),
          ...(dice.chance(0.4) && drawRates(dice, callsPerMinute / TENANTS.length, tokensPerCall)),
        },
      ] as const,
    ];
  });
  return drawn.length === 0 ? {} : { tenants: Object.fromEntries(drawn) };
}
