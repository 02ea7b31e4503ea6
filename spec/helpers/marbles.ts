import { expect } from 'chai';
import { TestScheduler } from 'rxjs/testing';

/** RxJS does not export the name. */
type RunHelpers = Parameters<Parameters<TestScheduler['run']>[0]>[0];
import type { Runtime } from '../../lib/core/runtime.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';

export interface Marbles extends RunHelpers {
  /** Reads the same frames as the marbles: one frame is one millisecond. */
  readonly runtime: Runtime;
  readonly scheduler: TestScheduler;
}

/** Runs `body` in virtual time. Pass `m.runtime` to what is tested. */
export function marbles(body: (m: Marbles) => void): () => void {
  return () => {
    const scheduler = new TestScheduler((actual, expected) => void expect(actual).to.deep.equal(expected));
    const runtime: Runtime = {
      clock: { now: () => scheduler.now(), wallNow: () => scheduler.now() },
      scheduler,
      random: seededRandom(1),
    };
    scheduler.run((helpers) => body({ ...helpers, runtime, scheduler }));
  };
}
