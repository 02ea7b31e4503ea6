import { createBreaker } from '../../lib/operators/createBreaker.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { breakerPortContract } from '../contract/breakerPort.ts';

describe('createBreaker, as a breaker', () => {
  breakerPortContract(() => {
    const runtime = virtualRuntime();
    return {
      openMs: 200,
      make: (options) => createBreaker(options, runtime),
      nowMs: () => runtime.clock.now(),
      pass: (ms) => runtime.advanceAsync(ms),
    };
  });
});
