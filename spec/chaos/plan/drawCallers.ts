import type { PolicyInput } from '../../../lib/index.ts';
import type { GatewayMidStream } from '../../../lib/policy/Policy.ts';
import type { CallerKind, PlannedCall, WorldName } from './ChaosPlan.ts';
import type { Dice } from './Dice.ts';

type Way = CallerKind | undefined;

const WAYS: readonly Way[] = [undefined, 'gateway', 'fetch', 'call'];
const MODES: readonly GatewayMidStream[] = ['fail', 'restart', 'continue', 'buffer'];

interface CallersDraw {
  readonly models: readonly string[];
  readonly world: WorldName;
}

/** Says by whom each call is made, and leaves out what cannot be said in that way. */
export function drawCallers(dice: Dice, calls: readonly PlannedCall[], draw: CallersDraw): PlannedCall[] {
  const { models, world } = draw;
  // In virtual time there are no sockets, and in real time nobody knows how late a gateway hears that its client has gone.
  const all = WAYS.filter((way) => way !== 'gateway' || world === 'http');
  // All of them at once most of the time: what they share is where one may harm another.
  const ways = dice.chance(0.5) ? all : [dice.oneOf(all)];
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
      case 'call': {
        const others = models.filter((model) => model !== call.model);
        return {
          ...asked,
          by,
          ...(attempts !== undefined && { attempts }),
          ...(others.length > 0 && dice.chance(0.4) && { fallback: others }),
        };
      }
    }
  });
}

/** What a gateway does where its client says nothing. */
export function drawGatewayMode(dice: Dice): Pick<PolicyInput, 'gateway'> {
  return dice.chance(0.4) ? { gateway: { midStream: dice.oneOf(MODES) } } : {};
}
