import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { pathOf, SMALL_PAGE, smallPage } from './parts/fieldNotePages.ts';

describe('field notes', function () {
  this.timeout(240_000);
  this.slow(10_000);

  it('come out as in the committed tables; if they should not, run `npm run prove field-notes-small`', async () => {
    expect((await smallPage()).split('\n')).to.deep.equal(readFileSync(pathOf(SMALL_PAGE), 'utf8').split('\n'));
  });
});
