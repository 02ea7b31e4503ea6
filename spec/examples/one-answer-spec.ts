import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/one-answer.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('streams an answer, reads one whole, and aborts one by leaving it', async () => {
    const output = await runExample('one-answer');

    const [, streamed = ''] = /^streamed: (.+)$/m.exec(output) ?? [];
    expect(output).to.match(new RegExp(`^whole: ${streamed.length} characters, \\d+ tokens, "stop"$`, 'm'));
    const [, left = ''] = /^left after 3 pieces: (.+)$/m.exec(output) ?? [];
    expect(streamed.startsWith(left)).to.equal(true);
    expect(left.trim().split(' ')).to.have.length(3);
    expect(output).to.contain('provider: 3 requests, 2 answered, 1 aborted');
  });
});
