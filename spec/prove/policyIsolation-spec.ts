import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator, EmulatorOptions } from '../../lib/emulator/index.ts';
import { warmUp } from './parts/fullSpeed.ts';
import { MODEL, runFlood, runShares } from './parts/policyIsolation.ts';
import type { Setting } from './parts/policyIsolation.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

// That batch work gets its turn under urgent work takes its time over HTTP; the case own-priority-ageing has it in virtual time.
describe('tenants and priorities of one policy, over HTTP', function () {
  this.timeout(120_000);
  this.slow(20_000);
  let runtime: ReturnType<typeof steadyRuntime>;
  let emulator: Emulator;

  async function setting(limits: object, options: EmulatorOptions): Promise<Setting> {
    runtime = steadyRuntime({ pace: 2 });
    emulator = await startEmulator({ ...options, tokens: 4, models: { [MODEL]: limits, 'warm-up': {} }, runtime });
    const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
    await warmUp(openai);
    return { openai, emulator, runtime };
  }
  afterEach(async () => {
    runtime.stop();
    await emulator.close();
  });

  it('leave a tenant within its share as fast as it is alone, whoever floods', async () => {
    const limits = { requestsPerMinute: 6_000, burstRequests: 50 };
    const plan = { ...limits, flood: 200, quietEveryMs: 50, quietMs: 1_500 };
    const result = await runFlood(await setting(limits, { firstTokenMs: 300, tokenMs: 5 }), plan);
    expect(result.besideP95Ms).to.be.at.most(1.2 * result.aloneP95Ms);
    expect(result.answered).to.equal(230);
    expect(result.rateLimited).to.equal(0);
    expect(result.floodShare).to.be.above(0.5);
  });

  it('have a guaranteed share within one service time, and keep batch work to its ceiling', async () => {
    const serviceMs = 300;
    const plan = { calls: 130, vipAtMs: 750, serviceMs };
    const result = await runShares(await setting({}, { firstTokenMs: serviceMs - 15, tokenMs: 5 }), plan);
    expect(result.answered).to.equal(410);
    expect(result.lent).to.equal(60);
    expect(result.most).to.deep.equal({ all: 60, batch: 15, vip: 20 });
    expect(result.vipWaitMs).to.be.at.most(serviceMs + 100);
    expect(result.leastOfMost).to.be.above(0.9);
  });
});
