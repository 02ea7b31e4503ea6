import type { Client, Runtime } from '../../../lib/index.ts';
import { createSluice } from '../../../lib/index.ts';
import { heapInUse } from '../../helpers/heap.ts';
import { ask } from './policyCalls.ts';
import type { Caller } from './policyCalls.ts';

export interface NamesResult {
  readonly names: number;
  readonly answered: number;
  /** Of calls that were not answered, by code. */
  readonly failed: Readonly<Record<string, number>>;
  /** Bytes of heap in use, more than after the first tenth. */
  readonly heapGrowth: number;
  /** Conversations, tenants and calls that something is shown of at the end. */
  readonly left: number;
}

const AT_ONCE = 50;

/** Calls each of which has a conversation and a tenant that no other has. */
export async function runNames(
  client: Client,
  runtime: Runtime,
  names: number,
  progress: (text: string) => void = () => {},
): Promise<NamesResult> {
  const sluice = createSluice(
    client,
    {
      maxInFlight: 200,
      quota: { account: { requestsPerMinute: 6_000_000 } },
      // A machine that stands still for seconds lets connections go: that is to be tried again, and nothing more.
      models: { default: { concurrency: { limit: 1_000 }, breaker: { consecutiveFailures: null, errorRatio: null } } },
      tenants: { default: { maxInFlight: 4, requestsPerMinute: 600, burstRequests: 10 } },
    },
    { runtime },
  );
  const failed: Record<string, number> = {};
  let answered = 0;
  let at = 0;
  const until = async (last: number): Promise<void> => {
    const worker = async (): Promise<void> => {
      while (at < last) {
        const name = at++;
        // Records would be what grows.
        const caller: Caller = { sluice, runtime, records: [] };
        const { code } = await ask(caller, 'm', { conversation: `conversation-${name}`, tenant: `tenant-${name}` });
        if (code === undefined) answered++;
        else failed[code] = (failed[code] ?? 0) + 1;
        progress(`${name} names`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  };
  await until(names / 10);
  const before = await heapInUse();
  await until(names);
  const heapGrowth = (await heapInUse()) - before;
  const { conversations, callsByTenant, calls, admission } = sluice.snapshot();
  const left =
    conversations.conversations +
    Object.keys(callsByTenant).length +
    Object.keys(admission.tenants).length +
    calls +
    admission.inFlight;
  return { names, answered, failed, heapGrowth, left };
}
