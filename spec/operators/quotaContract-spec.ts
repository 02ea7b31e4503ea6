import { createQuota } from '../../lib/operators/createQuota.ts';
import { createQuotas } from '../../lib/operators/createQuotas.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { quotaPortContract } from '../contract/quotaPort.ts';
import { quotaRoutesContract } from '../contract/quotaRoutes.ts';

const timeOf = (runtime: VirtualRuntime) => ({
  nowMs: () => runtime.clock.now(),
  pass: async (ms: number) => runtime.advance(ms),
});

describe('createQuota, as a quota', () => {
  quotaPortContract(() => {
    const runtime = virtualRuntime();
    return { ...timeOf(runtime), make: (options) => createQuota(options, runtime) };
  });
});

describe('createQuotas, as quotas of several routes,', () => {
  quotaRoutesContract(() => {
    const runtime = virtualRuntime();
    return {
      ...timeOf(runtime),
      make: (options) => {
        const quotas = createQuotas(options, runtime);
        return (model, tenant) => {
          const quota = quotas.of(model);
          return {
            acquire: (request) => quota.acquire({ ...request, tenant }),
            observe: (hints) => quota.observe(hints),
            snapshot: () => quota.snapshot(),
          };
        };
      },
    };
  });
});
