import type { AttemptSource } from '../../../lib/core/attempt.ts';
import { FakeProvider } from '../../../lib/emulator/model/FakeProvider.ts';
import { providerSource } from '../../../lib/simulator/upstream/providerSource.ts';
import { seededRandom, virtualRuntime } from '../../../lib/testing/index.ts';
import type { ChaosPlan } from '../plan/ChaosPlan.ts';
import { StallingRuntime } from './StallingRuntime.ts';
import { watchedSources } from './watchedSource.ts';
import type { ProviderWitness, World } from './World.ts';

/** Calls that have not ended after two days never will. */
const LONGEST_MS = 2 * 86_400_000;

/** Client and providers in one virtual time; only the client can be stalled. */
export function virtualWorld({ seed, providers }: ChaosPlan, witness: ProviderWitness): World {
  const time = virtualRuntime({ seed });
  const runtime = new StallingRuntime(time);
  const models = new Map<string, FakeProvider>();
  let running = 0;
  const sources = Object.entries(providers).map(([client, { options, networkMs }], i): [string, AttemptSource] => {
    const provider = new FakeProvider({ ...options, seed: seed + i }, time.clock);
    models.set(client, provider);
    const random = seededRandom(seed + 1000 + i);
    const [least, most] = networkMs;
    const wayMs = (): number => least + (most - least) * random();
    const listener = {
      sent: () => {},
      arrived: ({
        model,
        refusal,
        verdict,
      }: {
        model: string | undefined;
        refusal: string | undefined;
        verdict: string;
      }) => {
        if (verdict === 'admitted') running++;
        witness.judged(client, model, refusal);
      },
      over: ({ verdict }: { verdict: string }) => {
        if (verdict === 'admitted') running--;
      },
    };
    return [client, providerSource(provider, { sendMs: wayMs, receiveMs: wayMs }, listener, time)];
  });
  return {
    runtime,
    connect: watchedSources(Object.fromEntries(sources), runtime),
    addresses: {},
    stores: [],
    shock(shock) {
      if (shock.kind === 'wall') time.stepWall(shock.byMs);
      if (shock.kind === 'limits') models.get(shock.client)?.setQuota({ account: shock.account });
    },
    async pass() {
      time.run(LONGEST_MS);
      // What promises of the client itself still have to do.
      await new Promise((resolve) => setImmediate(resolve));
      time.run(LONGEST_MS);
    },
    leftovers: () => Promise.resolve({ 'requests that run at providers': running, timers: time.pending }),
    close: () => Promise.resolve(),
  };
}
