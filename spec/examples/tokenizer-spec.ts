import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/tokenizer.ts', function () {
  this.timeout(60_000);
  this.slow(10_000);
  before(builtDist);

  it('counts by a tokenizer, and reserves that', async () => {
    const lines = (await runExample('tokenizer')).trim().split('\n');
    expect(lines).to.have.length(6);
    for (const line of lines.slice(0, 5)) {
      const [, guessed, counted] = /estimated (\d+), counted (\d+)/.exec(line) ?? [];
      // The right order of magnitude, which is what a quota needs.
      expect(Number(guessed) / Number(counted), line).to.be.within(0.4, 2);
    }
    const [, prose] = /counted (\d+)/.exec(lines[0] ?? '') ?? [];
    expect(lines[5]).to.equal(`reserved ${Number(prose) + 16} tokens`);
  });
});
