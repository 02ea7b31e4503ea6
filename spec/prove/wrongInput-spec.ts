import { expect } from 'chai';
import OpenAI from 'openai';
import { defer, of } from 'rxjs';
import { createQuota, throttleByBucket } from '../../lib/index.ts';
import type { SluiceError } from '../../lib/index.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { answerOf, wrongInputs } from './parts/wrongInputs.ts';

describe('wrong input', () => {
  let emulator: Emulator;
  before(async () => (emulator = await startEmulator()));
  after(() => emulator.close());

  for (const wrong of wrongInputs) {
    it(`is answered with the field, the rule and the value: ${wrong.input}`, async () => {
      const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
      const { error, when } = await answerOf(wrong, openai);

      expect(when).to.equal(wrong.when);
      expect(error).to.include({ code: wrong.code, source: 'local', retryable: false });
      for (const name of wrong.names) expect(error!.message).to.include(name);
      expect(emulator.report().requests).to.equal(0);
    });
  }

  it('does not hold up those behind it: a cost that can never pass', () => {
    const runtime = virtualRuntime();
    const quota = createQuota({ tokensPerMinute: 600, burstTokens: 10, arrivalMarginMs: 0 }, runtime);
    const times: Record<string, number> = {};
    const ask = (name: string, cost: number): void => {
      const mark = (what: string): void => void (times[what] = runtime.clock.now());
      defer(() => of(mark(name)))
        .pipe(throttleByBucket(quota, { cost, runtime }))
        .subscribe({ error: ({ code }: SluiceError) => mark(`${name}: ${code}`) });
    };
    // The first takes the burst, so that all others have to wait.
    ask('first', 10);
    ask('behind the first', 5);
    ask('too large', 601);
    ask('behind it', 5);
    expect(times).to.deep.equal({ first: 0, 'too large: cost_too_large': 0 });
    runtime.run();
    expect(times).to.deep.equal({
      first: 0,
      'too large: cost_too_large': 0,
      'behind the first': 500,
      'behind it': 1000,
    });
  });
});
