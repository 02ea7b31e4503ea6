import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { attemptsSeen, runClose, runDeadline, runFailing } from './parts/policyAttempts.ts';
import type { OutageSetting } from './parts/policyOutage.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

describe('attempts of a policy, over HTTP', function () {
  this.timeout(60_000);
  this.slow(20_000);
  let runtime: ReturnType<typeof steadyRuntime>;
  let emulator: Emulator;

  async function setting(firstTokenMs: number): Promise<OutageSetting> {
    runtime = steadyRuntime({ pace: 2 });
    const models = { 'gpt-5.5': { firstTokenMs }, long: { tokens: 1_000, tokenMs: 20 } };
    emulator = await startEmulator({ tokenMs: 1, tokens: 4, models, runtime });
    return { openai: new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }), emulator, runtime };
  }
  afterEach(async () => {
    runtime.stop();
    await emulator.close();
  });

  it('are 1.2 a call at most where all fail and the budget is used up', async () => {
    const result = await runFailing(await setting(5), { perSecond: 100, forMs: 6_000, usedUpMs: 2_000 });
    expect(result.calls).to.equal(600);
    expect(result.perCall).to.be.within(1, 1.2);
  });

  it('start only where the time that is left is enough for an answer', async () => {
    const result = await runDeadline(await setting(300), { calls: 20, deadlineMs: 1_000 });
    expect(result.attempts).to.be.above(40);
    expect(result.latestMs).to.be.at.most(1_000 - 300 + 20);
    expect(result.codes).to.deep.equal({ timeout_deadline: 20 });
    expect(result.endedWithinMs).to.be.at.most(1_000);
  });

  it('end with close: short answers come to their end, others are cut after drainMs, later ones are refused', async () => {
    const result = await runClose(await setting(50), { short: 20, long: 5, drainMs: 400 });
    expect(result).to.include({ answered: 20, cut: 5, refused: 1, running: 0, left: 0 });
    expect(result.closedAfterMs).to.be.within(390, 700);
  });

  forEachOpenAI(({ OpenAI: Version }) => {
    it('are what the provider sees, whatever retries the SDK was built with', async () => {
      const { baseURL, ...rest } = { ...(await setting(5)), baseURL: emulator.baseURL };
      const seen = await attemptsSeen(rest, (options) => new Version({ apiKey: 'none', baseURL, ...options }), 3);
      for (const [way, counts] of Object.entries(seen)) expect(counts, way).to.deep.equal({ seen: 3, ours: 3 });
      expect(Object.keys(seen)).to.have.length(6);
    });
  });
});
