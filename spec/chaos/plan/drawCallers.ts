import type { PolicyInput } from '../../../lib/index.ts';
import type { GatewayMidStream } from '../../../lib/policy/Policy.ts';
import type { CallerKind, PlannedCall } from './ChaosPlan.ts';
import type { Dice } from './Dice.ts';

type Way = CallerKind | undefined;

const WAYS: readonly Way[] = [undefined, 'gateway', 'fetch', 'call'];
/** All of them at once most of the time: what they share is where one may harm another. */
const MIXES: readonly (readonly Way[])[] = [...WAYS.map((way) => [way]), WAYS, WAYS, WAYS, WAYS];
const MODES: readonly GatewayMidStream[] = ['fail', 'restart', 'continue', 'buffer'];

/** Says by whom each call is made, and leaves out what cannot be said in that way. */
export function drawCallers(dice: Dice, calls: readonly PlannedCall[]): PlannedCall[] {
  const ways = dice.oneOf(MIXES);
  return calls.map((call): PlannedCall => {
    const by = dice.oneOf(ways);
    const { restarts: _, attempts, ...asked } = call;
    switch (by) {
      case undefined:
        return call;
      case 'gateway': {
        const midStream = dice.maybe(0.6, () => dice.oneOf(MODES));
        return { ...asked, by, ...(midStream !== undefined && { midStream }) };
      }
      case 'fetch':
        return { ...asked, by };
      case 'call':
        return { ...asked, by, ...(attempts !== undefined && { attempts }) };
    }
  });
}

/** What a gateway does where its client says nothing. */
export function drawGatewayMode(dice: Dice): Pick<PolicyInput, 'gateway'> {
  return dice.chance(0.4) ? { gateway: { midStream: dice.oneOf(MODES) } } : {};
}
