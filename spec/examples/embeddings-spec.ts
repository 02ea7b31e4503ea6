import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/embeddings.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('gets a vector for each text, though a request fails', async () => {
    const output = await runExample('embeddings');

    expect(output).to.contain('240 vectors of 16 numbers');
    expect(output).to.match(/^\d+ requests in \d+\.\d s, by status: .*'500': 1/m);
    expect(output).to.contain("'200': 15");
  });
});
