import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/retry-and-fallback.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('waits as the provider asked, falls back when the model is down, and then asks it no more', async () => {
    const output = await runExample('retry-and-fallback');
    const [busy = '', down = '', stillDown = ''] = output.split(/^main is .*:$/m).slice(1);

    const [, waitMs] = /wait (\d+) ms after rate_limited \(hint\)/.exec(busy) ?? [];
    expect(Number(waitMs)).to.be.at.least(300);
    expect(busy).to.match(/attempt 2, main: success \(status 200\)\n {2}answer: \S/);

    expect(down.match(/attempt \d, main: overloaded \(status 503\)/g)).to.have.length(3);
    expect(down).to.contain('breaker of main: closed -> open');
    expect(down).to.match(
      /main -> spare after overloaded\n {2}attempt 4, spare: success \(status 200\)\n {2}answer: \S/,
    );

    expect(stillDown).to.match(/not sent: circuit_open\n {2}main -> spare after circuit_open\n {2}attempt 1, spare/);
    expect(output).to.contain('provider: 5 requests to main, 2 to spare');
  });
});
