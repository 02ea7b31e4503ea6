import { expect } from 'chai';
import type { Between } from '../../lib/limits/BetweenRejections.ts';
import { paceAt } from '../../lib/limits/ProbePace.ts';
import { RateSearch } from '../../lib/limits/RateSearch.ts';

// Rates are per minute; what the numbers follow from stands next to them.

const between = (passed: number, overMs: number, refused = 0): Between => ({ passed, refused, overMs });
const SEARCHING = { spread: 0.04, overMs: 500, doublesMs: 800, holds: false };
const close = (actual: number, expected: number): void => void expect(actual).to.be.closeTo(expected, 0.01);
const round = (pace: object): object =>
  Object.fromEntries(
    Object.entries(pace).map(([key, value]) => [key, typeof value === 'number' ? Number(value.toPrecision(5)) : value]),
  );

/** Measured at 600 from 100 that passed, twice in agreement: at least 595.8 of it is certain. */
function settled(nowMs = 10_000): RateSearch {
  const search = new RateSearch(0, 600, undefined);
  search.measured(nowMs, between(100, 10_000), 605);
  return search;
}

describe('paceAt', () => {
  it('goes up from below to above the estimate, and then further by doubling', () => {
    const pace = { spread: 0.05, overMs: 1000, doublesMs: 500, holds: false };
    const at = [-5, 0, 500, 1000, 1500, 2000].map((ms) => paceAt(pace, ms));
    expect(at).to.deep.equal([0.95, 0.95, 1, 1.05, 1.1, 1.2]);
  });

  it('holds below the estimate, and then goes up from there', () => {
    const pace = { spread: 0.05, overMs: 1000, doublesMs: 500, holds: true };
    const at = [0, 500, 1000, 1500, 2000].map((ms) => Number(paceAt(pace, ms).toFixed(9)));
    expect(at).to.deep.equal([0.95, 0.95, 0.95, 1, 1.1]);
  });
});

describe('RateSearch', () => {
  it('is slow below 330 a minute', () => {
    expect([329, 330, 331].map((perMinute) => new RateSearch(0, perMinute, undefined).slow)).to.deep.equal([
      true,
      false,
      false,
    ]);
  });

  it('takes a guess as it is, and gives up a debt in steps', () => {
    const search = new RateSearch(0, 900, undefined);
    search.guess(600);
    expect(search.estimate).to.equal(600);
    search.afterDebt(100);
    expect(search.estimate).to.equal(360);
    search.afterDebt(300);
    expect(search.estimate).to.equal(300);
  });

  describe('as what held before a fall', () => {
    it('remembers it for a minute, once the rate has fallen by a tenth', () => {
      const search = new RateSearch(1000, 600, 600);
      search.guess(541);
      expect(search.remembered(2000)).to.equal(undefined);
      search.guess(540);
      expect(search.remembered(2000)).to.equal(undefined);
      search.guess(539);
      expect(search.remembered(2000)).to.equal(600);
      expect(search.remembered(60_999)).to.equal(600);
      expect(search.remembered(61_000)).to.equal(undefined);
    });

    it('remembers no slow rate, and none where there was none', () => {
      for (const [before, expected] of [
        [330, 330],
        [329, undefined],
        [undefined, undefined],
      ] as const) {
        const search = new RateSearch(0, 330, before);
        search.guess(100);
        expect(search.remembered(1)).to.equal(expected);
      }
    });

    it('remembers a rate that two measurements agreed on, and the one before the first fall', () => {
      const unsure = new RateSearch(0, 600, undefined);
      unsure.tooFew(1000, between(2, 60_000), false);
      expect(unsure.remembered(1000)).to.equal(undefined);

      const search = settled();
      search.measured(20_000, between(100, 15_000), 605);
      expect(search.remembered(20_000)).to.equal(600);
      search.measured(30_000, between(100, 15_000), 405);
      search.measured(40_000, between(100, 30_000), 405);
      expect(search.remembered(40_000)).to.equal(600);
    });

    it('takes none for sure after a fall', () => {
      const search = settled();
      for (const nowMs of [20_000, 90_000, 91_000, 92_000]) search.tooFew(nowMs, between(2, 60_000), false);
      expect(search.remembered(92_000)).to.equal(undefined);
    });

    it('probes for it after so long as it has been gone, and for no rate that has not fallen', () => {
      const search = new RateSearch(1000, 600, 600);
      search.stretch(1500, 1);
      expect(search.pace).to.deep.equal(SEARCHING);
      search.guess(400);
      search.stretch(1500, 1);
      expect(search.pace).to.deep.equal({ spread: 0.05, overMs: 800, doublesMs: 500, holds: false });
      search.stretch(11_000, 1);
      expect(search.pace.overMs).to.equal(4000);
    });

    it('keeps searching below what is slow while it may come back', () => {
      const search = new RateSearch(0, 600, 600);
      for (const nowMs of [10_000, 11_000]) search.tooFew(nowMs, between(2, 60_000), false);
      expect(search.estimate).to.equal(216);
      expect(search.pace).to.deep.equal(SEARCHING);
    });

    it('is at rest where it has come back, and knows most of it for certain', () => {
      const search = new RateSearch(0, 600, 600);
      search.returned(500);
      expect(search.estimate).to.equal(500);
      expect(search.pace).to.deep.equal({ spread: 0.02, overMs: 7000, doublesMs: 1000, holds: false });
      // No more than 7 in 1,000 may be rejected by probing.
      search.stretch(1000, 1);
      close(search.pace.overMs, 60_000 / 500 / 0.007);
      search.tooFew(2000, between(2, 60_000), false);
      close(search.estimate, 0.9 * 0.97 * 500);
      expect(search.remembered(2000)).to.equal(undefined);
    });
  });

  describe('as too few that passed', () => {
    for (const [name, passed, refused, overMs, first, expected] of [
      ['a little after a first one', 1, 0, 60_000, true, 510],
      ['far where more passed', 2, 0, 60_000, true, 360],
      ['far for a second one', 1, 0, 60_000, false, 360],
      ['no further than to what came', 3, 2, 700, false, 514.286],
      ['not at all where more came', 3, 2, 100, false, 600],
    ] as const) {
      it(`falls ${name}`, () => {
        const search = new RateSearch(0, 600, undefined);
        search.tooFew(1000, between(passed, overMs, refused), first);
        close(search.estimate, expected);
      });
    }

    it('falls no further than to most of what is certain, and searches anew', () => {
      const search = settled();
      search.tooFew(20_000, between(2, 60_000), false);
      close(search.estimate, 0.9 * 595.8);
      expect(search.pace).to.deep.equal(SEARCHING);
      search.stretch(90_000, 1);
      expect(search.pace, 'while it searches').to.deep.equal(SEARCHING);
    });

    it('holds a slow rate below what it was, once it has searched for 6 s', () => {
      for (const [nowMs, holds] of [
        [6500, false],
        [7000, false],
        [7001, true],
      ] as const) {
        const search = new RateSearch(1000, 60, undefined);
        search.tooFew(nowMs, between(1, 60_000), true);
        expect(search.estimate).to.equal(51);
        expect(round(search.pace)).to.deep.equal(
          holds ? { spread: 0.07, overMs: 28_000, doublesMs: 3000, holds: true } : SEARCHING,
        );
      }
      const fast = new RateSearch(0, 400, undefined);
      fast.tooFew(10_000, between(1, 60_000), true);
      expect(fast.pace, 'at 340').to.deep.equal(SEARCHING);
    });
  });

  describe('as measurements', () => {
    for (const [passed, spread, overMs] of [
      [100, 0.012, 25_000],
      [20, 0.035, 8571.4],
      [10, 0.07, 4285.7],
      [8, 0.08, 3428.6],
    ] as const) {
      it(`probes by how far off one of ${passed} may be`, () => {
        const search = new RateSearch(0, 600, undefined);
        search.measured(10_000, between(passed, 100 * passed), 605);
        expect(round(search.pace)).to.deep.equal({ spread, overMs, doublesMs: 1200, holds: false });
        // Only one that is close enough ends the search, and is then probed as rarely as can be afforded.
        const before = search.pace.overMs;
        search.stretch(10_000, 1);
        if (spread > 0.06) expect(search.pace.overMs).to.equal(before);
        else close(search.pace.overMs, Math.max(before, 60_000 / search.estimate / 0.007));
      });
    }

    it('counts half of what was refused in between, up to a fiftieth', () => {
      for (const [refused, expected] of [
        [0, 600],
        [1, 603],
        [10, 612],
      ] as const) {
        const search = new RateSearch(0, 600, undefined);
        search.measured(10_000, between(100, 10_000, refused), 605);
        close(search.estimate, expected);
      }
    });

    it('takes two for one and the same rate within 7 in 100, and what one of the passed is', () => {
      for (const [before, set, expected] of [
        [600 / 0.93, 800, 600],
        // Off by more: between what is certain and what was set lies the truth.
        [600 / 0.91, 800, 595.8 * (1 + 0.3 * (800 / 595.8 - 1))],
        [600 / 1.07, 800, 600],
        [600 / 1.09, 800, 595.8 * (1 + 0.3 * (800 / 595.8 - 1))],
        [600 / 1.09, 660, 600],
        [600 / 1.09, 2000, 595.8 * 1.18],
      ] as const) {
        const search = new RateSearch(0, before, undefined);
        search.measured(1000, between(100, 10_000), set);
        close(search.estimate, expected);
      }
    });

    it('guesses ever more closely between what passed and what did not', () => {
      const search = new RateSearch(0, 1000, undefined);
      search.measured(1000, between(100, 10_000), 1000);
      close(search.estimate, 595.8 * (1 + 0.3 * 0.6));
      expect(round(search.pace)).to.deep.equal({ spread: 0.08, overMs: 1500, doublesMs: 1200, holds: false });
      search.measured(2000, between(100, 10_000), 703.044);
      const far = (703.044 / 595.8 - 1) * 0.6;
      close(search.estimate, 595.8 * (1 + 0.3 * far));
      expect(round(search.pace)).to.deep.equal(
        round({ spread: far / 3, overMs: 900 / far, doublesMs: 1200, holds: false }),
      );
      // Found; after a later fall it begins anew.
      search.measured(10_000, between(100, 10_000), 600);
      search.measured(20_000, between(100, 15_000), 600);
      close(search.estimate, 397.2 * (1 + 0.3 * (600 / 397.2 - 1)));
    });

    it('gives up little of what is certain, unless the rate has changed', () => {
      const little = settled();
      little.measured(20_000, between(100, 12_000), 590);
      close(little.estimate, 0.98 * 595.8);

      const changed = settled();
      changed.measured(20_000, between(100, 15_000), 400);
      close(changed.estimate, 400);

      const far = settled();
      far.measured(20_000, between(100, 40_000), 210);
      close(far.estimate, 0.35 * 600);
    });

    it('falls where a measurement is lower by more than that', () => {
      const search = settled();
      search.measured(20_000, between(100, 10_800), 590);
      expect(search.remembered(20_000)).to.equal(undefined);
      search.guess(400);
      expect(search.remembered(20_000), 'no fall by 7 in 100').to.equal(undefined);
      search.guess(600);
      search.measured(30_000, between(100, 11_000), 590);
      search.guess(400);
      expect(search.remembered(30_000)).to.equal(600);
    });

    it('lies between what is certain and what was set where the provider is slow', () => {
      for (const [set, estimate] of [
        [66, 55.8 + 0.4 * (66 - 55.8)],
        [200, 55.8 * 1.24],
        [55.8, 60],
        [50, 60],
      ] as const) {
        const search = new RateSearch(0, 60, undefined);
        search.measured(10_000, between(10, 10_000), set);
        close(search.estimate, estimate);
        const spread = 1 - Math.min(0.93, (0.99 * 55.8) / estimate);
        expect(round(search.pace)).to.deep.equal(round({ spread, overMs: 28_000, doublesMs: 3000, holds: true }));
        search.stretch(10_000, 1);
        close(search.pace.overMs, 120_000);
      }
    });

    it('holds 7 in 100 below a slow rate that is known better than that', () => {
      const search = new RateSearch(0, 60, undefined);
      search.measured(100_000, between(100, 100_000), 60);
      expect(round(search.pace)).to.deep.equal({ spread: 0.07, overMs: 28_000, doublesMs: 3000, holds: true });
    });

    it('is not slow before it has searched for 6 s, nor where enough got through', () => {
      for (const [fromMs, nowMs, holds] of [
        [0, 6000, false],
        [0, 6001, true],
        [1000, 6500, false],
      ] as const) {
        const search = new RateSearch(fromMs, 60, undefined);
        search.measured(nowMs, between(10, 10_000), 66);
        expect(search.pace.holds).to.equal(holds);
      }
      const fast = new RateSearch(0, 600, undefined);
      fast.measured(10_000, between(100, 18_000), 340);
      expect(fast.pace.holds, 'at 331 for certain').to.equal(false);
    });
  });
});
