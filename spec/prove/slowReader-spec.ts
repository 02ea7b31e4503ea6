import { expect } from 'chai';
import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { demanding, looping, readSlowly } from './parts/slowReader.ts';

const MB = 1_000_000;

describe('a consumer that stops reading', () => {
  for (const [name, reader] of Object.entries({ looping, demanding })) {
    it(`leaves most of a body with the provider, and loses nothing of it: ${name}`, async function () {
      this.timeout(60_000);
      const emulator = await startEmulator();
      const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
      try {
        const read = await readSlowly(reader, openai, emulator, 32 * MB);

        expect(read.failure).to.equal(undefined);
        expect(read.bodyBytes).to.be.above(32 * MB);
        // What the sockets of both ends hold is up to the system.
        expect(read.writtenBytes).to.be.below(16 * MB);
        expect(read.wrong).to.equal(0);
        expect(read.pieces).to.equal(Math.ceil((32 * MB) / 65_536));
      } finally {
        await emulator.close();
      }
    });
  }
});
