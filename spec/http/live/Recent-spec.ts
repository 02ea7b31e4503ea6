import { expect } from 'chai';
import fc from 'fast-check';
import { Recent } from '../../../lib/http/live/Recent.ts';

describe('Recent', () => {
  it('gives what was added after a point, as far as it is kept', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 10 }), fc.nat(40), fc.nat(12), (added, most, after, wanted) => {
        const recent = new Recent<number>(most);
        const gone: number[] = [];
        for (let i = 0; i < added; i++) {
          const out = recent.push(i);
          if (out !== undefined) gone.push(out);
        }
        const all = Array.from({ length: added }, (_, i) => i);
        const kept = all.slice(-most);
        expect(recent.added).to.equal(added);
        expect([...gone, ...recent.since(0)]).to.deep.equal(all);
        expect(recent.since(after)).to.deep.equal(kept.filter((item) => item >= after));
        const expected = kept.filter((item) => item >= after);
        expect(recent.since(after, wanted)).to.deep.equal(expected.slice(Math.max(0, expected.length - wanted)));
      }),
      { numRuns: 200 },
    );
  });
});
