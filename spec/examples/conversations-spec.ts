import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/conversations.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('answers each conversation in order, with its history, while others go on', async () => {
    const lines = (await runExample('conversations')).split('\n');

    for (const name of ['ada', 'beth', 'cleo']) {
      const said = lines.filter((line) => line.startsWith(`${name} `));
      const history = name === 'beth' ? [undefined, 0, 2] : [0, 2, 4];
      expect(said).to.deep.equal(
        ['one', 'two', 'three'].flatMap((content, turn) => [
          `${name} asks ${content}`,
          history[turn] === undefined
            ? `${name} ${content}: failed, bad_request`
            : `${name} ${content}: answered, with ${history[turn]} messages of history`,
        ]),
      );
      expect(lines).to.include(`provider: 3 requests of ${name}, 1 at a time`);
    }
    expect(lines.slice(0, 3)).to.deep.equal(['ada asks one', 'beth asks one', 'cleo asks one']);
  });
});
