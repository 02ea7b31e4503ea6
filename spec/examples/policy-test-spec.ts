import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/policy-test.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('passes each of its tests', async () => {
    const output = await runExample('policy-test');

    expect(output).to.match(/pass 4\b/);
    expect(output).to.match(/fail 0\b/);
  });
});
