import type { Exchange } from '../../../lib/emulator/model/Exchange.ts';
import { FakeProvider } from '../../../lib/emulator/model/FakeProvider.ts';
import type { Clock } from '../../../lib/index.ts';
import { seededRandom } from '../../../lib/testing/index.ts';
import type { ChaosPlan } from '../plan/ChaosPlan.ts';
import type { ProviderWitness } from './World.ts';

export interface VirtualProvider {
  readonly provider: FakeProvider;
  /** How long the next message takes on its way. */
  wayMs(): number;
  arrived(exchange: Exchange): void;
  over(exchange: Exchange): void;
}

export interface VirtualProviders {
  readonly byName: ReadonlyMap<string, VirtualProvider>;
  /** Requests that run at any of them. */
  readonly running: number;
}

/** The providers of a plan, in the time of `clock`. What they make of requests is told to `witness`. */
export function virtualProviders(
  { seed, providers }: ChaosPlan,
  witness: ProviderWitness,
  clock: Clock,
): VirtualProviders {
  let running = 0;
  const byName = Object.entries(providers).map(([name, { options, networkMs }], i): [string, VirtualProvider] => {
    const random = seededRandom(seed + 1000 + i);
    const [least, most] = networkMs;
    return [
      name,
      {
        provider: new FakeProvider({ ...options, seed: seed + i }, clock),
        wayMs: () => least + (most - least) * random(),
        arrived({ model, refusal, verdict }) {
          if (verdict === 'admitted') running++;
          witness.judged(name, model, refusal);
        },
        over({ verdict }) {
          if (verdict === 'admitted') running--;
        },
      },
    ];
  });
  return {
    byName: new Map(byName),
    get running() {
      return running;
    },
  };
}
