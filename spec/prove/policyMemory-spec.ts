import { expect } from 'chai';
import OpenAI from 'openai';
import { systemRuntime } from '../../lib/core/runtime.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import { runNames } from './parts/policyMemory.ts';

describe('conversations and tenants of many names, over HTTP', () => {
  it('leave nothing behind', async function () {
    this.timeout(60_000);
    this.slow(20_000);
    const emulator = await startEmulator({ firstTokenMs: 0, tokenMs: 0, tokens: 2, chunks: 'ends', maxRecords: 100 });
    try {
      const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
      const result = await runNames(openai, systemRuntime, 500);
      expect(result.failed).to.deep.equal({});
      expect(result.answered).to.equal(500);
      expect(result.left).to.equal(0);
    } finally {
      await emulator.close();
    }
  });
});
