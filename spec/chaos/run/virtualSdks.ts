import { StallingRuntime } from './StallingRuntime.ts';
import { virtualFetch } from './virtualFetch.ts';
import type { VirtualProvider } from './virtualProviders.ts';
import { LONGEST_MS } from './virtualWorld.ts';
import type { Link } from './virtualWorld.ts';
import { WatchedNetwork } from './WatchedNetwork.ts';

const MINUTE_MS = 60_000;
/** More than anything takes that an SDK does in a row. */
const TURNS = 200;

/** SDKs that send by a `fetch` of the virtual time. Promises do what they can before time moves on. */
export const bySdks: Link = (time, { byName }) => {
  const runtime = new StallingRuntime(time, settled);
  const at = new Map<string, VirtualProvider>();
  const addresses: Record<string, string> = {};
  for (const [name, provider] of byName) {
    at.set(`http://${name}.invalid`, provider);
    addresses[name] = `http://${name}.invalid/v1`;
  }
  const send = virtualFetch(at, time);
  return {
    runtime,
    connect: (process, witness, { network: between = (fetch) => fetch }) =>
      new WatchedNetwork({ addresses, process, witness, runtime, between, send }),
    addresses,
    async pass(done) {
      do {
        while (time.pending > 0 && time.clock.now() < LONGEST_MS) await time.advanceAsync(MINUTE_MS);
        // An SDK that tries again waits for that in real time.
        for (let i = 0; i < 20 && time.pending === 0 && !done(); i++) await new Promise((go) => setTimeout(go, 1));
      } while (time.pending > 0 && time.clock.now() < LONGEST_MS);
    },
  };
};

/** Within a turn of the event loop, so that the time stands still meanwhile. */
async function settled(): Promise<void> {
  for (let i = 0; i < TURNS; i++) await Promise.resolve();
}
