import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { describeWithRedis } from '../helpers/redisServer.ts';
import { runExample } from '../helpers/runExample.ts';

describeWithRedis('examples/four-processes.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('answers all calls of all processes within one quota', async () => {
    const output = await runExample('four-processes');

    expect(output).to.contain('4 processes, 300 calls, one quota: 3000 requests a minute');
    const rows = [...output.matchAll(/^(\d) +(\d+) +(\d+) +\d+\.\d s +\d+\.\d s$/gm)];
    expect(rows.map(([, process]) => process)).to.deep.equal(['1', '2', '3', '4']);
    for (const [, , calls, answered] of rows) expect(answered).to.equal(calls);
    const [, requests, rejected, seconds] =
      /^provider: (\d+) requests, (\d+) answers 429, in (\d+\.\d) s/m.exec(output) ?? [];
    // A busy machine may hold a request up on its way, and send the next one close behind it.
    expect(Number(rejected)).to.be.at.most(5);
    expect(Number(requests)).to.equal(300 + Number(rejected));
    expect(Number(seconds)).to.be.at.least(4.5);
    expect(output).not.to.contain('failed');
  });
});

describeWithRedis('examples/four-processes.ts without redis-server', function () {
  this.timeout(30_000);
  before(builtDist);

  it('says so', async () => {
    const output = await runExample('four-processes', { PATH: '/nowhere' });
    expect(output).to.contain('needs redis-server, which is not installed');
  });
});
