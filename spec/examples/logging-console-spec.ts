import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/logging-console.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('logs two failed attempts and their retries, and the call once, in neither case what was said', async () => {
    const output = await runExample('logging-console');

    expect(output).to.match(/^attempt 1 of gpt-5\.5 failed: rate_limited \(429\) after \d+ ms/m);
    expect(output).to.match(/^attempt 2 of gpt-5\.5 failed: server_error \(500\) after \d+ ms/m);
    expect(output.match(/^tries gpt-5\.5 again in/gm)).to.have.length(2);
    const json = output.split('\n').filter((line) => line.startsWith('{"level"'));
    expect(json).to.have.length(1);
    expect(JSON.parse(json[0] as string)).to.include({
      ...{ level: 'info', service: 'example', event: 'call.ended', outcome: 'success', attempts: 3, tenant: 'acme' },
    });
    expect(output).to.contain('answered with text').and.not.to.contain('Hello');
  });
});
