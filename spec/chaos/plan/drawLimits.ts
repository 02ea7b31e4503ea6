import type { QuotaSettings } from '../../../lib/emulator/index.ts';
import type { Dice } from './Dice.ts';

/** Where a model is served, and what is allowed there. */
export interface Place {
  readonly client: string;
  /** The name that it has there. */
  readonly upstream: string;
  readonly limits: QuotaSettings;
}

export interface DrawnLimits {
  readonly clients: Readonly<Record<string, QuotaSettings>>;
  readonly models: Readonly<Record<string, readonly Place[]>>;
}

export const MODELS: readonly string[] = ['gold', 'silver', 'bronze'];
const CLIENTS: readonly string[] = ['main', 'spare'];

/** What the providers allow. A model is served under its own name, with that of the client where there are several. */
export function drawLimits(dice: Dice, callsPerMinute: number, tokensPerCall: number): DrawnLimits {
  const clients = CLIENTS.slice(0, dice.whole(1, 2));
  const models = MODELS.slice(0, dice.whole(1, 3));
  const places = models.map((model) => {
    const served = clients.length > 1 && dice.chance(0.4) ? clients : [dice.oneOf(clients)];
    const place = (client: string): Place => ({
      client,
      upstream: served.length > 1 ? `${model}@${client}` : model,
      limits: dice.chance(0.4) ? drawRates(dice, callsPerMinute / models.length, tokensPerCall) : {},
    });
    return [model, served.map(place)] as const;
  });
  return {
    clients: Object.fromEntries(
      clients.map((name) => [name, dice.chance(0.7) ? drawRates(dice, callsPerMinute, tokensPerCall) : {}]),
    ),
    models: Object.fromEntries(places),
  };
}

/** From much too little to more than enough. */
export function drawRates(dice: Dice, callsPerMinute: number, tokensPerCall: number): QuotaSettings {
  const requestsPerMinute = dice.maybe(0.85, () => Math.max(6, Math.round(callsPerMinute * dice.oneOf(SHARES))));
  const tokensPerMinute = dice.maybe(0.4, () =>
    Math.max(tokensPerCall * 12, Math.round(callsPerMinute * tokensPerCall * dice.oneOf(SHARES))),
  );
  return {
    ...(requestsPerMinute !== undefined && {
      requestsPerMinute,
      ...(dice.chance(0.7) && { burstRequests: dice.whole(1, Math.max(1, Math.min(60, requestsPerMinute))) }),
    }),
    ...(tokensPerMinute !== undefined && {
      tokensPerMinute,
      ...(dice.chance(0.5) && { burstTokens: Math.max(tokensPerCall * 3, Math.round(tokensPerMinute / 10)) }),
    }),
  };
}

const SHARES: readonly number[] = [0.3, 0.6, 0.9, 1.2, 3];
