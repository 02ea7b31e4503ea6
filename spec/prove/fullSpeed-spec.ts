import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { emulatorOf, mixedLoad, runLoad, sluiceAsk, warmUp } from './parts/fullSpeed.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

describe('a quota at its full speed, over HTTP', () => {
  it('sends a burst and a steady load with no 429, close to the best schedule', async function () {
    this.timeout(60_000);
    const provider = { requestsPerMinute: 3000, burstRequests: 20, firstTokenMs: 50 };
    const runtime = steadyRuntime({ pace: 2 });
    const emulator = await startEmulator({ ...emulatorOf(provider), runtime });
    const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
    try {
      await warmUp(openai);
      const load = mixedLoad(152, 60, 4000);
      const result = await runLoad(sluiceAsk(openai, provider, runtime), load, provider, emulator, runtime);

      expect(result.rateLimited).to.equal(0);
      expect(result.answered).to.equal(212);
      expect(result.requests).to.equal(212);
      expect(result.firstContentMs.p95).to.be.at.most(result.bestP95Ms * 1.03 + 120);
    } finally {
      runtime.stop();
      await emulator.close();
    }
  });
});
