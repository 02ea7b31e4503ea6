import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { FALLBACK, PRIMARY, runDead, runTotal } from './parts/policyOutage.ts';
import type { OutageSetting } from './parts/policyOutage.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

describe('a primary that is gone, over HTTP', function () {
  this.timeout(120_000);
  this.slow(20_000);
  let runtime: ReturnType<typeof steadyRuntime>;
  let emulator: Emulator;

  async function setting(limits: object = {}): Promise<OutageSetting> {
    runtime = steadyRuntime({ pace: 2 });
    const models = { [PRIMARY]: limits, [FALLBACK]: limits };
    emulator = await startEmulator({ firstTokenMs: 20, tokenMs: 1, tokens: 4, models, runtime });
    return { openai: new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }), emulator, runtime };
  }
  afterEach(async () => {
    runtime.stop();
    await emulator.close();
  });

  it('is asked four times at most once its breaker has opened, and again within one probe interval', async () => {
    const plan = { calls: 20, deadMs: 3_000, openMs: 750 };
    const result = await runDead(await setting(), plan);
    expect(result.answered).to.equal(20);
    expect(result.byFallback).to.equal(20);
    expect(result.before).to.equal(2);
    expect(result.after).to.be.at.most(4);
    expect(result.backMs).to.be.at.most(plan.openMs + 200);
  });

  it('loses no call under full load that the quota of the fallback carries', async () => {
    const requestsPerMinute = 3_000;
    const limits = { requestsPerMinute, burstRequests: requestsPerMinute / 60 };
    const plan = { requestsPerMinute, perSecond: 45, forMs: 6_000, deadFromMs: 1_000, deadToMs: 4_000 };
    const result = await runTotal(await setting(limits), plan);
    expect(result.lost).to.deep.equal({});
    expect(result.answered).to.equal(result.calls);
    expect(result.byFallback).to.be.above(100);
    expect(result.rateLimited).to.equal(0);
    expect(result.backMs).to.be.at.most(4_500);
  });
});
