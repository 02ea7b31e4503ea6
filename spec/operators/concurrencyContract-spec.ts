import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { concurrencyPortContract } from '../contract/concurrencyPort.ts';

describe('createConcurrencyLimit, as a concurrency limit', () => {
  concurrencyPortContract(() => {
    const runtime = virtualRuntime();
    return {
      make: (options) => createConcurrencyLimit(options, runtime),
      nowMs: () => runtime.clock.now(),
      pass: (ms) => runtime.advanceAsync(ms),
    };
  });
});
