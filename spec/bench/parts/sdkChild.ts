// Started by sdkPairs.ts: one way beside the SDK's own loop, with nothing else in the process, as a service has it.
import { SDK, sdkWays } from './sdkWays.ts';
import type { SdkWay } from './sdkWays.ts';
import { measureSizes } from './sizes.ts';
import type { SizePlan } from './sizes.ts';

const [way, plan] = process.argv.slice(2) as [SdkWay, string];
const measured = await measureSizes(
  (size) => {
    const all = sdkWays(size);
    return { [SDK]: all[SDK], [way]: all[way] };
  },
  JSON.parse(plan) as SizePlan,
);
process.send?.(measured);
