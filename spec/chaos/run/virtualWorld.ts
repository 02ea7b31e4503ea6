import { providerSource } from '../../../lib/simulator/upstream/providerSource.ts';
import { virtualRuntime } from '../../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../../lib/testing/index.ts';
import type { ChaosPlan } from '../plan/ChaosPlan.ts';
import { StallingRuntime } from './StallingRuntime.ts';
import { virtualProviders } from './virtualProviders.ts';
import type { VirtualProviders } from './virtualProviders.ts';
import { watchedSources } from './watchedSource.ts';
import type { ProviderWitness, World } from './World.ts';

/** Calls that have not ended after two days never will. */
export const LONGEST_MS: number = 2 * 86_400_000;

/** What the client sends by, and how time passes for it. */
export type Link = (
  time: VirtualRuntime,
  providers: VirtualProviders,
) => Pick<World, 'runtime' | 'connect' | 'addresses' | 'pass'>;

/** Client and providers in one virtual time; only the client can be stalled. */
export function virtualWorld(plan: ChaosPlan, witness: ProviderWitness, link: Link = bySources): World {
  const time = virtualRuntime({ seed: plan.seed });
  const providers = virtualProviders(plan, witness, time.clock);
  return {
    ...link(time, providers),
    stores: [],
    shock(shock) {
      if (shock.kind === 'wall') time.stepWall(shock.byMs);
      if (shock.kind === 'limits') providers.byName.get(shock.client)?.provider.setQuota({ account: shock.account });
    },
    leftovers: () => Promise.resolve({ 'requests that run at providers': providers.running, timers: time.pending }),
    close: () => Promise.resolve(),
  };
}

/** Transports that need no promises: everything due is done at once. */
const bySources: Link = (time, { byName }) => {
  const runtime = new StallingRuntime(time);
  const sources = [...byName].map(([name, { provider, wayMs, arrived, over }]) => {
    const listener = { sent: () => {}, arrived, over };
    return [name, providerSource(provider, { sendMs: wayMs, receiveMs: wayMs }, listener, time)] as const;
  });
  return {
    runtime,
    connect: watchedSources(Object.fromEntries(sources), runtime),
    addresses: {},
    async pass() {
      time.run(LONGEST_MS);
      // What promises of the client itself still have to do.
      await new Promise((resolve) => setImmediate(resolve));
      time.run(LONGEST_MS);
    },
  };
};
