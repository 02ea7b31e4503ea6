import type { ModelSettings } from '../../../lib/emulator/model/settings.ts';
import type { ChaosPlan, Leaving, PlannedCall, PlannedProvider, Shock, WorldName } from './ChaosPlan.ts';
import { Dice } from './Dice.ts';
import { drawCallers, drawGatewayMode } from './drawCallers.ts';
import { drawFaults } from './drawFaults.ts';
import { drawLimits, drawRates } from './drawLimits.ts';
import type { DrawnLimits } from './drawLimits.ts';
import { drawPolicy, PRIORITIES, TENANTS } from './drawPolicy.ts';
import type { Measures } from './drawPolicy.ts';

/** Tokens of every answer, unless its request allows fewer. */
const TOKENS: readonly number[] = [1, 3, 12, 40];

/** SDKs and their promises take several times as long as transports in virtual time. */
const SDKS_IN_VIRTUAL = 0.2;

/** Of 1,000 seeds in a row 10 are played with a Redis server, 80 over HTTP and the others in virtual time. */
export function worldOf(seed: number): WorldName {
  if (seed % 100 === 0) return 'redis';
  return [1, 14].includes(seed % 25) ? 'http' : 'virtual';
}

/** The plan of a seed: always the same one. */
export function drawPlan(seed: number, world: WorldName = worldOf(seed)): ChaosPlan {
  const dice = new Dice(seed);
  const virtual = world === 'virtual';
  const answerMs = virtual ? dice.spread(50, 1_000) : dice.spread(10, 60);
  const forMs = virtual ? dice.spread(2_000, 120_000) : world === 'http' ? 1_000 : 2_000;
  const count = virtual ? dice.spread(20, 400) : dice.spread(20, 90);
  const tokens = dice.oneOf(TOKENS);
  const measures: Measures = {
    callsPerMinute: (count * 60_000) / forMs,
    // Prompt, framing, and what is reserved of the answer.
    tokensPerCall: 60 + tokens,
    answerMs,
  };
  const limits = drawLimits(dice, measures.callsPerMinute, measures.tokensPerCall);
  // In half of the plans the policy knows what the providers really allow, and stays at it.
  const exact = dice.chance(0.5);
  const told = exact || dice.chance(0.5) ? limits : otherThan(dice, limits, measures);
  const policy = drawPolicy(dice, told, measures, exact);
  const providers = drawProviders(dice, limits, { tokens, forMs, answerMs, exact, virtual });
  const drawn = drawCalls(dice, Object.keys(limits.models), { count, forMs, answerMs, tokens, world });
  const shocks = drawShocks(dice, told, { measures, forMs, exact, world });
  const plan: ChaosPlan = {
    seed,
    world,
    policy,
    providers,
    calls: drawn,
    shocks,
    ...(dice.chance(0.1) && {
      close: { atMs: dice.whole(1, forMs), drainMs: dice.oneOf([0, answerMs, answerMs * 50]) },
    }),
  };
  // Their own, so that it changes nothing else.
  const others = new Dice(seed + 1_000_000);
  return virtual && !others.chance(SDKS_IN_VIRTUAL) ? plan : withOtherCallers(others, plan, Object.keys(limits.models));
}

/** Calls are made in other ways too. */
function withOtherCallers(dice: Dice, plan: ChaosPlan, models: readonly string[]): ChaosPlan {
  return {
    ...plan,
    calls: drawCallers(dice, plan.calls, { models, world: plan.world }),
    policy: { ...plan.policy, ...drawGatewayMode(dice) },
    shocks: plan.shocks.map((shock) =>
      shock.kind === 'reload' ? { ...shock, policy: { ...shock.policy, ...drawGatewayMode(dice) } } : shock,
    ),
  };
}

/** The same places, with other rates. */
function otherThan(dice: Dice, limits: DrawnLimits, { callsPerMinute, tokensPerCall }: Measures): DrawnLimits {
  const other = (): ReturnType<typeof drawRates> => drawRates(dice, callsPerMinute, tokensPerCall);
  return {
    clients: Object.fromEntries(Object.keys(limits.clients).map((name) => [name, other()])),
    models: limits.models,
  };
}

interface ProviderDraw {
  readonly tokens: number;
  readonly forMs: number;
  readonly answerMs: number;
  readonly exact: boolean;
  readonly virtual: boolean;
}

function drawProviders(dice: Dice, limits: DrawnLimits, draw: ProviderDraw): Record<string, PlannedProvider> {
  const { tokens, forMs, answerMs, exact, virtual } = draw;
  const firstTokenMs = Math.round(answerMs / 2);
  return Object.fromEntries(
    Object.entries(limits.clients).map(([name, account]) => {
      const served = Object.values(limits.models)
        .flat()
        .filter(({ client }) => client === name)
        .map(({ upstream, limits: own }): [string, ModelSettings] => [
          upstream,
          {
            ...own,
            ...(dice.chance(0.15) && { acceptsPrefix: false }),
            ...(!exact && dice.chance(0.15) && { maxConcurrent: dice.whole(1, 10) }),
          },
        ]);
      const least = dice.whole(1, 40);
      return [
        name,
        {
          networkMs: virtual ? [least, least + dice.oneOf([0, 5, 60])] : [0, 0],
          options: {
            ...account,
            models: Object.fromEntries(served),
            tokens,
            firstTokenMs: dice.chance(0.5) ? firstTokenMs : { median: firstTokenMs, sigma: 0.5, max: answerMs * 20 },
            tokenMs: firstTokenMs / tokens,
            headersMs: dice.oneOf([0, Math.round(firstTokenMs / 2)]),
            ...(dice.chance(0.3) && { chunkTokens: dice.whole(1, 5) }),
            dialect: dice.oneOf(['openai', 'openai', 'azure', 'groq', 'anthropic', 'gemini', 'none']),
            settle: dice.oneOf(['reserved', 'usage']),
            countRejected: dice.chance(0.8),
            ...(!exact && dice.chance(0.2) && { noiseShare: dice.oneOf([0.1, 0.5]) }),
            ...(dice.chance(0.75) && drawFaults(dice, forMs, answerMs)),
          },
        } satisfies PlannedProvider,
      ];
    }),
  );
}

interface CallDraw {
  readonly count: number;
  readonly forMs: number;
  readonly answerMs: number;
  readonly tokens: number;
  readonly world: WorldName;
}

function drawCalls(dice: Dice, models: readonly string[], draw: CallDraw): PlannedCall[] {
  const { count, forMs, answerMs, tokens, world } = draw;
  const bursts = dice.maybe(0.4, () => dice.some(dice.whole(1, 4), () => dice.whole(0, forMs)));
  const talks = dice.whole(1, Math.max(2, Math.round(count / 8)));
  const [tenants, talking, leaving, urgent] = dice.some(4, () => dice.oneOf([0, 0.2, 0.6])) as [
    number,
    number,
    number,
    number,
  ];
  return dice
    .some(count, (): PlannedCall => {
      const outputLimit = dice.maybe(0.7, () => dice.whole(1, tokens + 20));
      const leaves = dice.maybe(leaving, () => drawLeaving(dice, answerMs, tokens));
      return {
        atMs: bursts !== undefined && dice.chance(0.7) ? dice.oneOf(bursts) : dice.whole(0, forMs),
        api: dice.oneOf(['chat', 'chat', 'respond', 'complete']),
        model: dice.oneOf(models),
        words: dice.whole(1, 12),
        outputLimit: outputLimit ?? tokens + 20,
        ...(world === 'redis' && { process: dice.whole(0, 1) }),
        ...(dice.chance(tenants) && { tenant: dice.oneOf(TENANTS) }),
        ...(dice.chance(talking) && { conversation: `talk-${dice.whole(1, talks)}` }),
        ...(dice.chance(urgent) && { priority: dice.oneOf(PRIORITIES) }),
        ...(dice.chance(0.2) && { deadlineMs: dice.spread(1, answerMs * 100) }),
        ...(dice.chance(0.5) && { restarts: true }),
        ...(dice.chance(0.1) && { attempts: dice.whole(1, 4) }),
        ...(leaves && { leaves }),
      };
    })
    .sort((a, b) => a.atMs - b.atMs);
}

function drawLeaving(dice: Dice, answerMs: number, tokens: number): Leaving {
  const how = dice.oneOf(['unsubscribe', 'abort'] as const);
  return dice.chance(0.6)
    ? { how, afterMs: dice.oneOf([0, dice.spread(1, answerMs), dice.spread(1, answerMs * 50)]) }
    : { how, atValue: dice.whole(1, tokens) };
}

interface ShockDraw {
  readonly measures: Measures;
  readonly forMs: number;
  readonly exact: boolean;
  readonly world: WorldName;
}

function drawShocks(dice: Dice, limits: DrawnLimits, { measures, forMs, exact, world }: ShockDraw): Shock[] {
  const { callsPerMinute, tokensPerCall, answerMs } = measures;
  const at = (): number => dice.whole(0, Math.ceil(forMs * 1.1));
  const shocks: Shock[] = [];
  if (dice.chance(0.4)) {
    shocks.push(
      ...dice.some(dice.whole(1, 4), (): Shock => {
        const rates = exact || dice.chance(0.5) ? limits : otherThan(dice, limits, measures);
        return { kind: 'reload', atMs: at(), policy: drawPolicy(dice, rates, measures, exact) };
      }),
    );
  }
  if (!exact && dice.chance(0.3)) {
    const client = dice.oneOf(Object.keys(limits.clients));
    shocks.push({ kind: 'limits', atMs: at(), client, account: drawRates(dice, callsPerMinute, tokensPerCall) });
  }
  if (dice.chance(0.3)) {
    const byMs = dice.oneOf([-86_400_000, -3_000, 1_000, 3_600_000, 86_400_000]);
    shocks.push({ kind: 'wall', atMs: at(), byMs });
  }
  if (dice.chance(0.3)) {
    const longest = world === 'virtual' ? answerMs * 30 : 120;
    shocks.push(
      ...dice.some(dice.whole(1, 3), (): Shock => ({ kind: 'stall', atMs: at(), forMs: dice.spread(1, longest) })),
    );
  }
  if (world === 'redis') {
    shocks.push(
      ...dice.some(dice.whole(1, 2), (): Shock => {
        const what = dice.oneOf(['flush', 'restart', 'pause'] as const);
        return { kind: 'store', atMs: dice.whole(100, forMs), what, forMs: dice.whole(50, 900) };
      }),
    );
  }
  return shocks.sort((a, b) => a.atMs - b.atMs);
}
