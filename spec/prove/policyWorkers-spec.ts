import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { emulatorOf, warmUp } from './parts/fullSpeed.ts';
import { runWorkers } from './parts/policyWorkers.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

describe('16 workers that become 64 in one instant, over HTTP', () => {
  it('get no 429 at the right quota, and wait little longer than by the best schedule', async function () {
    this.timeout(60_000);
    const provider = { requestsPerMinute: 3000, burstRequests: 20, firstTokenMs: 100 };
    const runtime = steadyRuntime({ pace: 2 });
    const emulator = await startEmulator({ ...emulatorOf(provider), runtime });
    const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
    try {
      await warmUp(openai);
      const plan = { fewMs: 1_000, manyMs: 3_000, pauseMs: 250 };
      const result = await runWorkers(openai, provider, emulator, runtime, plan);
      expect(result.rateLimited).to.equal(0);
      expect(result.calls).to.be.above(150);
      expect(result.answered).to.equal(result.calls);
      expect(result.requests).to.equal(result.calls);
      expect(result.firstContentMs.p95).to.be.at.most(result.bestP95Ms * 1.05 + 120);
    } finally {
      runtime.stop();
      await emulator.close();
    }
  });
});
