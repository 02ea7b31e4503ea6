import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/layered-queue.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('answers every call of the load, at the speed that it is told, and keeps conversations in order', async () => {
    const output = await runExample('layered-queue', { SPEED: '40' });

    expect(output).to.contain('rates times 40: account 40/s, large 32/s, small 200/s');
    const [, took] = /^succeeded 100, failed 0, in (\d+\.\d) s$/m.exec(output) ?? [];
    // 92 calls behind the burst, at 40 a second.
    expect(Number(took)).to.be.at.least(2.3);
    expect(output).to.match(/^time to first content: p50 \d+\.\d s, p95 \d+\.\d s$/m);
    const [, large, small] = /^provider: (\d+) by large, (\d+) by small, \d+ answers 429$/m.exec(output) ?? [];
    expect(Number(large) + Number(small)).to.equal(100);
    expect(Number(small)).to.be.above(0);
    expect(Number(large)).to.be.above(0);
    expect(output).to.contain('conversations whose turns overlapped: 0 of 5');
  });
});
