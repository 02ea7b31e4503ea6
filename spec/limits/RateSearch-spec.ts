import { expect } from 'chai';
import fc from 'fast-check';
import { BetweenRejections } from '../../lib/limits/BetweenRejections.ts';
import { paceAt } from '../../lib/limits/ProbePace.ts';
import { RateSearch } from '../../lib/limits/RateSearch.ts';

describe('BetweenRejections', () => {
  it('counts what passed between two rejections, whatever was refused in between', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (refused) => {
        const between = new BetweenRejections();
        const first = between.send(0);
        between.uncount(first);
        between.mark(first);
        const marks = refused.map((_, i) => between.send(10 * (i + 1)));
        marks.forEach((mark, i) => refused[i] && between.uncount(mark));
        const last = between.send(10 * (refused.length + 1));
        between.uncount(last);
        expect(between.until(last)).to.deep.equal({
          passed: refused.filter((one) => !one).length,
          refused: refused.filter((one) => one).length,
          overMs: 10 * (refused.length + 1),
        });
      }),
      { numRuns: 100 },
    );
  });

  it('counts a rejection that is heard late to the time before', () => {
    const between = new BetweenRejections();
    const [early, marked] = [between.send(0), between.send(1)];
    between.uncount(marked);
    between.mark(marked);
    between.uncount(early);
    between.send(5);
    const last = between.send(10);
    between.uncount(last);
    expect(between.until(last)).to.deep.equal({ passed: 1, refused: 0, overMs: 9 });
  });

  it('knows nothing before a first mark, and after it was told to forget', () => {
    const between = new BetweenRejections();
    const mark = between.send(0);
    expect(between.until(mark)).to.equal(undefined);
    between.mark(mark);
    between.forget();
    expect(between.until(between.send(5))).to.equal(undefined);
  });
});

describe('paceAt', () => {
  const pace = fc.record({
    spread: fc.double({ min: 0.001, max: 0.1, noNaN: true }),
    overMs: fc.integer({ min: 100, max: 60_000 }),
    doublesMs: fc.integer({ min: 100, max: 5000 }),
    holds: fc.boolean(),
  });

  it('never falls as time goes on, has no jumps and begins below the estimate', () => {
    fc.assert(
      fc.property(pace, fc.integer({ min: 0, max: 70_000 }), (probe, atMs) => {
        expect(paceAt(probe, 0)).to.be.below(1);
        const [here, next] = [paceAt(probe, atMs), paceAt(probe, atMs + 1)];
        expect(next).to.be.at.least(here);
        expect(next - here).to.be.at.most(Math.max(0.01, 0.02 * here));
      }),
      { numRuns: 300 },
    );
  });

  it('sends as much as the estimate allows by the time the excess begins', () => {
    const probe = { spread: 0.05, overMs: 1000, doublesMs: 500, holds: false };
    let sent = 0;
    for (let ms = 0; ms < 1000; ms++) sent += paceAt(probe, ms + 0.5);
    expect(sent).to.be.closeTo(1000, 0.1);
  });
});

describe('RateSearch', () => {
  it('comes to what passes between rejections, from whatever it began with', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 600, max: 20_000 }),
        fc.double({ min: 0.2, max: 5, noNaN: true }),
        (real, factor) => {
          const search = new RateSearch(0, factor * real, undefined);
          let nowMs = 0;
          for (let i = 0; i < 8; i++) {
            nowMs += 5000;
            const passed = Math.round(real / 12);
            search.measured(nowMs, { passed, refused: 0, overMs: 5000 }, search.estimate * 1.02);
            search.stretch(nowMs, 1);
          }
          expect(search.estimate / real).to.be.within(0.95, 1.05);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('probes ever more rarely as measurements agree, and as rejections come in larger numbers', () => {
    const search = new RateSearch(0, 600, undefined);
    search.measured(5000, { passed: 50, refused: 0, overMs: 5000 }, 605);
    search.stretch(5000, 1);
    const { overMs } = search.pace;
    search.measured(20_000, { passed: 150, refused: 0, overMs: 15_000 }, 605);
    search.stretch(20_000, 1);
    expect(search.pace.overMs).to.be.above(overMs);
    search.stretch(20_000, 5);
    expect(search.pace.overMs).to.be.at.least(60_000);
  });

  it('measures again soon where what passed before tells nothing', () => {
    const search = new RateSearch(0, 600, undefined);
    for (const nowMs of [5000, 20_000]) {
      search.measured(nowMs, { passed: nowMs / 100, refused: 0, overMs: nowMs }, 605);
      search.stretch(nowMs, 1);
    }
    const { estimate } = search;
    search.again();
    expect(search.pace).to.deep.equal({ spread: 0.04, overMs: 2000, doublesMs: 1000, holds: false });
    expect(search.estimate).to.equal(estimate);
  });

  it('holds what got through for certain where the provider is slow', () => {
    const search = new RateSearch(0, 60, undefined);
    search.measured(10_000, { passed: 10, refused: 0, overMs: 10_000 }, 66);
    expect(search.pace.holds).to.equal(true);
    expect(search.estimate * paceAt(search.pace, 20_000)).to.be.below(60);
  });

  it('remembers the rate before a fall for a minute, and looks for it often at first', () => {
    const search = new RateSearch(0, 600, 600);
    search.tooFew(1000, { passed: 2, refused: 0, overMs: 1000 }, true);
    search.stretch(1000, 1);
    expect(search.remembered(1000)).to.equal(600);
    expect(search.pace.overMs).to.be.below(1000);
    search.stretch(10_000, 1);
    expect(search.pace.overMs).to.be.within(3000, 5000);
    expect(search.remembered(61_000)).to.equal(undefined);
    search.returned(600);
    expect(search.remembered(10_000)).to.equal(undefined);
    expect(search.estimate).to.equal(600);
  });
});
