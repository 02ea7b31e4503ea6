import { createQuota } from '../../lib/operators/createQuota.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { quotaPortContract } from '../contract/quotaPort.ts';

describe('createQuota, as a quota', () => {
  quotaPortContract(() => {
    const runtime = virtualRuntime();
    return {
      make: (options) => createQuota(options, runtime),
      nowMs: () => runtime.clock.now(),
      pass: async (ms) => runtime.advance(ms),
    };
  });
});
