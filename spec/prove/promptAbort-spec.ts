import { expect } from 'chai';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { leaveInPhase, phases, promptAbortEmulator } from './parts/promptAbort.ts';
import type { Fixture } from './parts/promptAbort.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

describe('a call that is left', () => {
  let fixture: Fixture;
  let stop: () => void;
  before(async () => {
    const runtime = steadyRuntime();
    stop = runtime.stop;
    fixture = await promptAbortEmulator(runtime);
  });
  after(async () => {
    stop();
    await fixture.emulator.close();
  });

  forEachOpenAI(({ OpenAI }) => {
    for (const phase of phases) {
      const what = phase.seenAs === undefined ? 'sends nothing' : 'closes its connection within 50 ms';
      it(`${what}: ${phase.name}`, async function () {
        this.timeout(30_000);
        const openai = new OpenAI({ baseURL: fixture.emulator.baseURL, apiKey: 'none' });
        const { closedAfterMs, sentLater, wrong } = await leaveInPhase(phase, openai, fixture, 3);

        expect(wrong).to.deep.equal([]);
        expect(sentLater).to.equal(0);
        expect(closedAfterMs).to.have.length(phase.seenAs === undefined ? 0 : 3);
        expect(Math.max(0, ...closedAfterMs)).to.be.at.most(50);
      });
    }
  });
});
