import { expect } from 'chai';
import type { SentMark } from '../../lib/limits/BetweenRejections.ts';
import { paceAt } from '../../lib/limits/ProbePace.ts';
import { RateSearch } from '../../lib/limits/RateSearch.ts';
import { FROM_MS, Load, reserve, same, start } from '../helpers/learnedLoad.ts';

// The search for the rate has its own tests: here a second one is told what the first one should be.

describe('LearnedRate', () => {
  describe('as a first rejection', () => {
    it('begins from what was configured, with nothing left', () => {
      const load = new Load();
      const mark = load.send(20).at(-1) as SentMark;
      expect(load.rate.rejected(mark.atMs, mark)).to.equal(false);
      expect(load.at(mark.atMs)).to.deep.equal({ perMinute: 576, level: 0, burst: 4.8 });
    });

    it('takes no larger burst than was configured', () => {
      const load = new Load({ requestsPerMinute: 600, burstRequests: 2 });
      const mark = load.rejectLast(20);
      expect(load.at(mark.atMs).burst).to.equal(2);
      const large = new Load({ requestsPerMinute: 600, burstRequests: 50 });
      expect(large.at(FROM_MS).burst).to.equal(50);
      expect(large.at(large.rejectLast(20).atMs).burst).to.equal(4.8);
      const slow = new Load({ requestsPerMinute: 60 });
      same(slow.at(slow.rejectLast(20).atMs).burst, 1 + 57.6 / 600);
    });

    it('begins from the rate that is shared, where that is the lower one', () => {
      const load = new Load({}, 300);
      same(load.at(load.rejectLast(20).atMs).perMinute, 0.96 * 300);
    });

    for (const [name, count, everyMs, perMinute] of [
      ['what got through', 21, 100, (20 - 0) * 30],
      ['what got through in the last ten seconds', 210, 100, ((100 - 1) * 60_000) / 9900],
      ['what got through in a second, where all came at once', 8, 0, 420],
      ['600 where too few came to tell', 7, 100, 600],
      ['60 at least', 8, 1300, 60],
    ] as const) {
      it(`begins from ${name}, where nothing was configured`, () => {
        const load = new Load({});
        const mark = load.rejectLast(count, everyMs);
        same(load.at(mark.atMs).perMinute, 0.96 * perMinute);
      });
    }

    it('takes off what is heard to have been rejected with it', () => {
      const load = new Load({});
      const marks = load.send(21);
      const last = marks.at(-1) as SentMark;
      for (const [i, perMinute] of [600, 570, 540].entries()) {
        expect(load.rate.rejected(last.atMs, marks[20 - i] as SentMark)).to.equal(false);
        same(load.at(last.atMs).perMinute, 0.96 * perMinute);
        expect(load.at(last.atMs).level).to.equal(0);
      }
    });
  });

  describe('as a measurement', () => {
    /** 20 were sent by 2,900, and the last of them rejected. */
    const begun = (): { load: Load; search: RateSearch } => {
      const load = new Load();
      load.rejectLast(20);
      return { load, search: new RateSearch(2900, 600, undefined) };
    };

    it('measures by what passed since the last rejection', () => {
      const { load, search } = begun();
      const mark = load.send(30).at(-1) as SentMark;
      expect(load.rate.rejected(mark.atMs, mark)).to.equal(true);
      search.measured(5900, { passed: 29, refused: 0, overMs: 3000 }, 576);
      search.stretch(5900, 1);
      expect(mark.atMs).to.equal(5900);
      const { perMinute, level } = load.at(5900);
      same(perMinute, start(search));
      same(level, reserve(Math.min(search.estimate, start(search))));
    });

    it('does not count those that were rejected meanwhile, nor those that never arrived', () => {
      const { load, search } = begun();
      const marks = load.send(30);
      load.rate.lost(marks[3] as SentMark);
      load.rate.rejected(5900, marks[29] as SentMark);
      search.measured(5900, { passed: 28, refused: 1, overMs: 3000 }, 576);
      search.stretch(5900, 1);
      same(load.at(5900).perMinute, start(search));
      same(load.at(5900).level, reserve(Math.min(search.estimate, start(search))));
    });

    it('takes off what was sent since, and adds what came in', () => {
      const { load, search } = begun();
      const mark = load.send(30).at(-1) as SentMark;
      load.send(2);
      load.rate.rejected(6300, mark);
      search.measured(6300, { passed: 29, refused: 0, overMs: 3000 }, 576);
      search.stretch(6300, 1);
      const perMinute = Math.min(search.estimate, start(search));
      same(load.at(6300).level, (perMinute * 400) / 60_000 - 2 + reserve(perMinute));
    });

    it('owes no more than 1.2 s of the rate, and a slow one 28 s', () => {
      for (const [perMinute, count, everyMs, mostMs] of [
        [600, 30, 100, 1200],
        [200, 10, 300, 28_000],
      ] as const) {
        const load = new Load({ requestsPerMinute: perMinute });
        load.rejectLast(20);
        const mark = load.send(count, everyMs).at(-1) as SentMark;
        load.send(200, 0);
        load.rate.rejected(mark.atMs, mark);
        const search = new RateSearch(2900, perMinute, undefined);
        search.measured(mark.atMs, { passed: count - 1, refused: 0, overMs: mark.atMs - 2900 }, 0.96 * perMinute);
        search.stretch(mark.atMs, 1);
        expect(search.slow).to.equal(perMinute === 200);
        const known = Math.min(search.estimate, start(search));
        same(load.at(mark.atMs).level, Math.max(-200, (-known * mostMs) / 60_000) + reserve(known));
      }
    });

    it('takes those that had been sent before it was heard for the same rejection', () => {
      const { load, search } = begun();
      const marks = load.send(32);
      load.rate.rejected(6100, marks[29] as SentMark);
      const { perMinute } = load.at(6100);
      expect(load.rate.rejected(6100, marks[31] as SentMark)).to.equal(true);
      expect(load.rate.rejected(6100, marks[30] as SentMark)).to.equal(true);
      expect(load.at(6100).perMinute).to.equal(perMinute);
      search.measured(6100, { passed: 29, refused: 0, overMs: 3000 }, 576);
      for (const cluster of [1, 2, 3]) search.stretch(6100, cluster);
      // Three were rejected for one look: the next one comes that much later.
      const nextMs = 6100 + 20_000;
      load.rate.advance(6100, 0, 1);
      expect(load.rate.advance(6200, 0, 1)).to.equal(250);
      load.rate.advance(nextMs, 0, 1);
      same(load.at(nextMs).perMinute, Math.min(600, search.estimate * paceAt(search.pace, 20_000)));
    });

    for (const [fresh, few] of [
      [8, true],
      [9, false],
    ] as const) {
      it(`tells ${few ? 'only that the rate is lower' : 'the rate'} from ${fresh - 1} that passed and one that did not`, () => {
        const { load, search } = begun();
        load.rejectLast(fresh, 300);
        const nowMs = 2900 + 100 + 300 * (fresh - 1);
        const between = { passed: fresh - 1, refused: 0, overMs: nowMs - 2900 };
        if (few) search.tooFew(nowMs, between, true);
        else search.measured(nowMs, between, 576);
        search.stretch(nowMs, 1);
        same(load.at(nowMs).perMinute, start(search));
      });
    }

    it('measures on from a rejection that tells something, and goes back further after one that does not', () => {
      const { load, search } = begun();
      const first = load.rejectLast(30);
      search.measured(first.atMs, { passed: 29, refused: 0, overMs: 3000 }, 576);
      search.stretch(first.atMs, 1);
      const next = load.send(1)[0] as SentMark;
      const set = start(search);
      expect(load.rate.rejected(next.atMs, next)).to.equal(false);
      search.tooFew(next.atMs, { passed: 0, refused: 0, overMs: 100 }, true);
      search.stretch(next.atMs, 1);
      same(load.at(next.atMs).perMinute, start(search));
      expect(start(search)).to.be.below(set);

      const again = load.send(1)[0] as SentMark;
      load.rate.rejected(again.atMs, again);
      search.tooFew(again.atMs, { passed: 0, refused: 1, overMs: 200 }, false);
      search.stretch(again.atMs, 1);
      same(load.at(again.atMs).perMinute, start(search));

      // Something passes again: no more than that, or than somewhat less than was tried, comes in.
      load.nextMs = 8000;
      const before = load.at(7000).perMinute as number;
      const last = load.rejectLast(4, 150);
      expect(400).to.be.within(0.6 * search.estimate, 0.85 * before);
      search.afterDebt((3 * 60_000) / 450);
      search.stretch(last.atMs, 1);
      same(load.at(last.atMs).perMinute, start(search));
    });

    it('owes what was rejected while nothing passed, and is patient for longer each time', () => {
      const { load } = begun();
      load.rejectLast(30);
      for (let n = 1; n <= 6; n++) {
        const mark = load.send(1, 0)[0] as SentMark;
        load.send(60, 0);
        load.rate.rejected(mark.atMs, mark);
        const { level, perMinute = 0 } = load.at(mark.atMs);
        const mostMs = 1200 * 2 ** Math.min(4, n);
        const estimate = perMinute / 0.96;
        if (estimate >= 330) same(level, Math.max(-60 - (n - 1), (-perMinute * mostMs) / 60_000) + reserve(perMinute));
        load.nextMs += 100;
      }
    });

    it('takes a debt that follows a large first burst for no lower rate, three times', () => {
      for (const [others, falls] of [
        [3, true],
        [4, false],
      ] as const) {
        const load = new Load();
        const marks = load.send(20, 0);
        load.rate.rejected(FROM_MS, marks[19] as SentMark);
        for (let i = 0; i < others; i++) load.rate.rejected(FROM_MS, marks[i] as SentMark);
        load.nextMs = 3000;
        const next = load.send(1)[0] as SentMark;
        load.rate.rejected(3000, next);
        expect((load.at(3000).perMinute as number) < 576, `${others} others`).to.equal(falls);
        if (falls) continue;
        // All of the burst is owed: what was refused with it, and this one.
        same(load.at(3000).level, -others + reserve(576));
        load.rate.rejected(3100, load.send(1)[0] as SentMark);
        expect(load.at(3100).perMinute).to.equal(576);
        load.rate.rejected(3200, load.send(1)[0] as SentMark);
        expect(load.at(3200).perMinute, 'the third time').to.be.below(576);
      }
    });

    it('falls by less at the first of those between which nothing passed', () => {
      const { load, search } = begun();
      for (const [nowMs, refused] of [
        [8000, 0],
        [13_000, 1],
      ] as const) {
        load.nextMs = nowMs;
        const mark = load.rejectLast(1);
        search.tooFew(nowMs, { passed: 0, refused, overMs: nowMs - 2900 }, refused === 0);
        search.stretch(nowMs, 1);
        expect(mark.atMs).to.equal(nowMs);
        same(load.at(nowMs).perMinute, start(search));
      }
    });

    it('takes no debt of a first burst for what is left once something has passed', () => {
      for (const fresh of [4, 30]) {
        const load = new Load();
        const marks = load.send(20, 0);
        load.rate.rejected(FROM_MS, marks[19] as SentMark);
        for (let i = 0; i < 4; i++) load.rate.rejected(FROM_MS, marks[i] as SentMark);
        load.nextMs = 5000;
        const mark = load.rejectLast(fresh);
        const { perMinute = 0 } = load.at(mark.atMs);
        expect(perMinute, `${fresh} passed`).to.be.below(576);
        load.nextMs = mark.atMs + 3000;
        const next = load.rejectLast(1);
        expect(load.at(next.atMs).perMinute, `${fresh} passed, then none`).to.be.below(perMinute);
      }
    });

    it('counts from the rejection on that nobody waits, and no pause for that', () => {
      for (const [pausedMs, learns] of [
        [0, false],
        [5, true],
      ] as const) {
        const { load } = begun();
        if (pausedMs > 0) load.rate.advance(2900, pausedMs, 1);
        load.rate.advance(3900, 0, 1);
        const { perMinute } = load.at(3900);
        load.rejectLast(10, 300);
        expect((load.at(load.nextMs).perMinute as number) < (perMinute as number)).to.equal(learns);
      }
    });

    it('learns nothing from what passed while nobody waited', () => {
      for (const [idleMs, learns] of [
        [900, true],
        [901, false],
      ] as const) {
        const { load, search } = begun();
        load.rate.advance(2900, 0, 0);
        load.rate.advance(2900 + idleMs, 0, 1);
        const mark = load.rejectLast(30);
        expect(mark.atMs).to.equal(5900);
        if (learns) search.measured(5900, { passed: 29, refused: 0, overMs: 3000 }, load.at(5900).perMinute as number);
        search.stretch(5900, 1);
        if (!learns) same(load.at(5900).perMinute, 576);
        // From here on it counts again.
        load.rejectLast(30);
        if (learns) continue;
        search.measured(8900, { passed: 29, refused: 0, overMs: 3000 }, 576);
        search.stretch(8900, 1);
        same(load.at(8900).perMinute, start(search));
      }
    });
  });
});
