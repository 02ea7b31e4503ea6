import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/policy.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('moves to the second vendor while the first one is down, and serves the SDK', async () => {
    const output = await runExample('policy');

    expect(output).to.contain('answered by gpt-5.5');
    expect(output).to.contain('while the first vendor is down, by deepseek-v3.2');
    expect(output).to.contain('through the SDK, by deepseek-v3.2');
    expect(output).to.match(/^6 calls, \d+ attempts, 4 fallbacks$/m);
  });
});
