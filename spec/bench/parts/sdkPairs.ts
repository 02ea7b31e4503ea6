import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { BySize, SizePlan } from './sizes.ts';
import type { SdkWay } from './sdkWays.ts';

/** A way beside the SDK's own loop, in a process of their own. */
export async function besideSdk(way: SdkWay, plan: SizePlan): Promise<BySize> {
  const child = fork(new URL('sdkChild.ts', import.meta.url), [way, JSON.stringify(plan)]);
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`the process of ${way} ended with ${code} and no figures`);
  });
  const [measured] = (await Promise.race([once(child, 'message'), failed])) as [BySize];
  failed.catch(() => {}); // It has said what it had to.
  return measured;
}
