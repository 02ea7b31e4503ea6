import { expect } from 'chai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { learningEmulator, runLearning } from './parts/learning.ts';
import type { LearningPlan, LearningResult } from './parts/learning.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

const plan: LearningPlan = {
  name: 'short',
  perMinute: 1200,
  burst: 20,
  headers: false,
  forMs: 8000,
  from: 4000,
  workers: 20,
};

async function run(one: LearningPlan): Promise<LearningResult> {
  const runtime = steadyRuntime({ pace: 2 });
  const emulator = await startEmulator({ ...learningEmulator(one), runtime });
  try {
    return await runLearning(one, emulator, runtime);
  } finally {
    runtime.stop();
    await emulator.close();
  }
}

describe('a quota that is wrong, over HTTP', function () {
  this.timeout(60_000);
  let silent: LearningResult;
  let reporting: LearningResult;
  let stalling: LearningResult;
  // Side by side, as they mostly wait.
  before(async () => {
    [silent, reporting, stalling] = await Promise.all([
      run({ ...plan, configured: 2400 }),
      run({ ...plan, configured: 2400, headers: true }),
      run({ ...plan, configured: 1200, from: 0, stallAtMs: 1500 }),
    ]);
  });

  // Bounds of a few seconds only: the full run is in docs/results.
  it('comes near the real one within seconds, without headers', () => {
    expect(silent.rejectedShare).to.be.below(0.1);
    expect(silent.use).to.be.at.least(0.75);
  });

  it('comes near the real one within seconds, with headers', () => {
    expect(reporting.rejectedShare).to.be.below(0.1);
    expect(reporting.use).to.be.at.least(0.75);
  });

  it('has no 429 after a stall, where what is configured is right', () => {
    expect(stalling.rateLimited).to.equal(0);
    expect(stalling.requests).to.be.above(40);
  });
});
