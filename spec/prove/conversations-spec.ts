import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { forgetSilent, talk, talkative } from './parts/conversations.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

describe('conversations over HTTP', () => {
  it('never overlap, keep their order, and go on in the tick of a cancel', async function () {
    this.timeout(60_000);
    const runtime = steadyRuntime();
    const emulator = await startEmulator({ ...talkative, runtime });
    const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
    try {
      const talks = await talk(openai, emulator, runtime, 20, 8);

      expect(talks.turns).to.deep.equal({ answered: 80, failed: 0, cancelled: 80 });
      expect(talks.overlaps).to.equal(0);
      // A closed connection is seen a little after it was closed.
      expect(talks.overtakenByMs).to.be.at.most(50);
      expect(talks.mostInAll).to.be.above(5);
      expect(talks.inOrder).to.equal(20);
      expect(talks.sentThough).to.equal(0);
      expect(talks.sentAtOnce).to.equal(40);
      expect(talks.remembered).to.equal(0);
    } finally {
      runtime.stop();
      await emulator.close();
    }
  });

  it('are forgotten once they are idle', async function () {
    this.timeout(60_000);
    const { heapGrowth, remembered } = await forgetSilent(50_000);

    expect(remembered).to.equal(0);
    // Far less than a name for each of 100,000.
    expect(heapGrowth).to.be.below(3_000_000);
  });
});
