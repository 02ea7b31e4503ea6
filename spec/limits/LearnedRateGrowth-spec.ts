import { expect } from 'chai';
import type { SentMark } from '../../lib/limits/BetweenRejections.ts';
import { paceAt } from '../../lib/limits/ProbePace.ts';
import type { LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import { RateSearch } from '../../lib/limits/RateSearch.ts';
import { FROM_MS, Load, reading, reserve, same, start } from '../helpers/learnedLoad.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

// The search for the rate has its own tests: here a second one is told what the first one should be.

describe('LearnedRate', () => {
  describe('as growth', () => {
    const begun = (options?: LayerOptions, sharedPerMinute?: number): { load: Load; search: RateSearch } => {
      const load = new Load(options, sharedPerMinute);
      load.rejectLast(20);
      return { load, search: new RateSearch(2900, 600, undefined) };
    };

    it('probes while someone waits for the rate, and only then', () => {
      const { load, search } = begun();
      const { rate } = load;
      const after = (nowMs: number, probedMs: number): void =>
        same(load.at(nowMs).perMinute, 600 * paceAt(search.pace, probedMs));
      expect(rate.advance(2900, 0, 1)).to.equal(250);
      for (const [nowMs, pausedMs, waitMs, probedMs] of [
        [2950, 0, 1, 50],
        [3000, 0, 0, 100],
        [3050, 0, 1, 100],
        [3100, 50, 1, 150],
        [3150, 0, 1, 150],
        [3175, 0, 1, 175],
      ] as const) {
        rate.advance(nowMs, pausedMs, waitMs);
        after(nowMs, probedMs);
      }
    });

    it('probes no further before what was rejected is paid off', () => {
      const { load, search } = begun();
      load.rate.layer.requests?.charge(2900, 3);
      load.rate.advance(2900, 0, 1);
      // 9.6 come in a second.
      load.rate.advance(3000, 0, 1);
      same(load.at(3000).perMinute, 576);
      load.rate.advance(3109, 0, 1);
      load.rate.advance(3209, 0, 1);
      same(load.at(3209).perMinute, 600 * paceAt(search.pace, 100));
    });

    it('goes no higher than what was configured, here or in what is shared', () => {
      for (const [options, shared, shown] of [
        [{ requestsPerMinute: 600 }, Infinity, 600],
        [{}, 600, 600],
      ] as const) {
        const { load } = begun(options, shared);
        load.rate.advance(2900, 0, 1);
        load.rate.advance(6900, 0, 1);
        expect(load.at(6900).perMinute).to.equal(shown);
      }
    });

    it('is out of the way of what is shared after 10 s at it', () => {
      const { load } = begun({}, 600);
      for (const nowMs of [2900, 3900, 8900, 13_900]) expect(load.rate.advance(nowMs, 0, 1)).to.equal(250);
      expect(load.at(13_900).perMinute).to.equal(600);
      expect(load.rate.advance(13_901, 0, 1)).to.equal(Infinity);
      expect(load.at(13_901).perMinute).to.equal(undefined);
    });

    it('counts no time at it in which nobody waited', () => {
      const { load } = begun({}, 600);
      for (const nowMs of [2900, 3900]) load.rate.advance(nowMs, 0, 1);
      load.rate.advance(4900, 0, 0);
      load.rate.advance(20_000, 0, 1);
      expect(load.rate.advance(29_000, 0, 1)).to.equal(250);
      expect(load.rate.advance(29_001, 0, 1)).to.equal(Infinity);
    });

    it('goes on measuring at its own limit, however long it has held', () => {
      const { load } = begun();
      load.rate.advance(2900, 0, 1);
      load.rate.advance(6900, 0, 1);
      for (const nowMs of [7900, 17_900, 20_900]) expect(load.rate.advance(nowMs, 0, 1)).to.equal(Infinity);
      load.nextMs = 21_000;
      const mark = load.send(30).at(-1) as SentMark;
      expect(load.rate.rejected(mark.atMs, mark)).to.equal(true);
    });

    it('changes nothing for a thousandth', () => {
      const { load } = begun();
      load.rate.advance(2900, 0, 1);
      load.rate.advance(2905, 0, 1);
      expect(load.at(2905).perMinute).to.equal(576);
      load.rate.advance(2907, 0, 1);
      expect(load.at(2907).perMinute).to.be.above(576);
    });
  });

  describe('as what comes back', () => {
    /** 60 were sent in 6 s and more at what was configured; then it fell. */
    const fallen = (
      options: LayerOptions,
      shared: number,
      sent = 60,
    ): { load: Load; search: RateSearch; atMs: number } => {
      const load = new Load(options, shared);
      const first = load.rejectLast(sent);
      load.nextMs = first.atMs + 1000;
      const mark = load.rejectLast(3, 500);
      const search = new RateSearch(first.atMs, 600, sent >= 51 ? 600 : undefined);
      search.tooFew(mark.atMs, { passed: 2, refused: 0, overMs: mark.atMs - first.atMs }, true);
      search.stretch(mark.atMs, 1);
      return { load, search, atMs: mark.atMs };
    };

    it('goes back to a rate that had held for 5 s, and stays there once a burst more has passed', () => {
      const { load, search, atMs } = fallen({}, 600);
      same(load.at(atMs).perMinute, start(search));
      expect(search.remembered(atMs)).to.equal(600);
      const { rate } = load;
      rate.advance(atMs, 0, 1);
      let excessMs = 0;
      let set = load.at(atMs).perMinute as number;
      let nowMs = atMs;
      for (; set < 600; set = load.at(nowMs).perMinute as number) {
        nowMs += 100;
        rate.advance(nowMs, 0, 1);
        excessMs += 100 * (set / search.estimate - 1);
        if (load.at(nowMs).perMinute !== 600)
          same(load.at(nowMs).perMinute, search.estimate * paceAt(search.pace, nowMs - atMs));
      }
      const burstMs = (1000 * 600) / search.estimate;
      for (; excessMs <= burstMs; excessMs += 100 * (600 / search.estimate - 1)) {
        expect(load.at(nowMs).perMinute).to.equal(600);
        nowMs += 100;
        rate.advance(nowMs, 0, 1);
      }
      same(load.at(nowMs).perMinute, 0.98 * 600);
      // Nothing is measured by what passed before.
      load.nextMs = nowMs + 100;
      const mark = load.rejectLast(12);
      search.returned(600);
      search.again();
      same(load.at(mark.atMs).perMinute, start(search));
      const next = load.rejectLast(12);
      search.measured(next.atMs, { passed: 11, refused: 0, overMs: next.atMs - mark.atMs }, start(search));
      search.stretch(next.atMs, 1);
      same(load.at(next.atMs).perMinute, start(search));
    });

    it('goes back to none of which less than half was used', () => {
      for (const [sent, held] of [
        [26, false],
        [31, true],
      ] as const) {
        const load = new Load({}, 600);
        const first = load.rejectLast(sent, 6000 / (sent - 1));
        load.nextMs = first.atMs + 1000;
        const mark = load.rejectLast(3, 500);
        load.rate.advance(mark.atMs, 0, 1);
        // Soon it is at what it remembers, and after a burst more it stays there.
        load.rate.advance(mark.atMs + 9000, 0, 1);
        expect(load.at(mark.atMs + 9000).perMinute).to.equal(600);
        load.rate.advance(mark.atMs + 14_000, 0, 1);
        const { perMinute } = load.at(mark.atMs + 14_000);
        expect(perMinute === 0.98 * 600).to.equal(held);
      }
    });

    it('goes back to none that had not held', () => {
      const { load, search, atMs } = fallen({}, 600, 50);
      expect(search.remembered(atMs)).to.equal(undefined);
      load.rate.advance(atMs, 0, 1);
      load.rate.advance(atMs + 700, 0, 1);
      same(load.at(atMs + 700).perMinute, Math.min(600, search.estimate * paceAt(search.pace, 700)));
    });
  });

  describe('as a limit that is named', () => {
    it('takes it at once, as the most', () => {
      const load = new Load();
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(300) }));
      expect(load.at(FROM_MS).perMinute).to.equal(300);
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(900) }));
      expect(load.at(FROM_MS)).to.deep.include({ perMinute: 600, burst: 10 });
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(5, 1000) }));
      expect(load.at(FROM_MS).perMinute).to.equal(300);
    });

    it('passes over what names no limit of a minute or less', () => {
      const load = new Load();
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(300) }));
      for (const other of [undefined, reading(0), reading(-1), reading(5, 0), reading(100, 60_001)]) {
        load.rate.reported(FROM_MS, hintsOf({ requests: other }));
        expect(load.at(FROM_MS).perMinute).to.equal(300);
      }
      load.rate.reported(FROM_MS, hintsOf({ tokens: reading(5, 0) }));
      expect(load.rate.snapshot(FROM_MS).tokens).to.equal(undefined);
    });

    it('leaves one that is shared to those who share it', () => {
      const load = new Load({}, 300);
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(300) }));
      expect(load.at(FROM_MS).perMinute).to.equal(undefined);
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(299) }));
      expect(load.at(FROM_MS).perMinute).to.equal(299);
    });

    it('takes it for the truth, and the third rejection in spite of it for a part that others have', () => {
      const load = new Load();
      load.rate.reported(FROM_MS, hintsOf({ requests: reading(300) }));
      const first = load.rejectLast(20);
      expect(load.at(first.atMs).perMinute).to.equal(300);
      same(load.at(first.atMs).level, reserve(300));
      const second = load.send(20).at(-1) as SentMark;
      expect(load.rate.rejected(second.atMs, second)).to.equal(false);
      expect(load.at(second.atMs).perMinute).to.equal(300);
      // Named again, it is still the same.
      load.rate.reported(second.atMs, hintsOf({ requests: reading(300) }));
      const third = load.rejectLast(20);
      same(load.at(third.atMs).perMinute, 0.96 * 300);
    });

    it('lets go of what was learned, and counts anew', () => {
      const load = new Load();
      const marks = load.send(20);
      load.rate.rejected(2900, marks[19] as SentMark);
      load.rate.reported(2900, hintsOf({ requests: reading(300) }));
      expect(load.at(2900).perMinute).to.equal(300);
      expect(load.rate.advance(2900, 0, 1)).to.equal(Infinity);
      // Heard late, of the same moment.
      load.rate.rejected(2900, marks[18] as SentMark);
      expect(load.at(2900).perMinute).to.equal(300);
      const next = load.rejectLast(20);
      expect(load.at(next.atMs).perMinute).to.equal(300);
      load.rejectLast(20);
      load.rate.reported(load.nextMs, hintsOf({ requests: reading(200) }));
      const later = load.rejectLast(20);
      expect(load.at(later.atMs).perMinute, 'the first after another name').to.equal(200);
    });
  });

  it('shares the least rate with what is to be had of others', () => {
    const load = new Load({}, 300);
    load.rate.reported(FROM_MS, hintsOf({ requests: reading(900) }));
    const mark = load.rejectLast(20);
    // Named above what is shared, it changes nothing; and nothing can be learned about a rate that is not limited here.
    expect(load.at(mark.atMs).perMinute).to.equal(undefined);
    expect(load.rate.layer.requests?.level(mark.atMs)).to.be.below((load.rate.layer.requests?.burst ?? 0) - 1);
  });
});
