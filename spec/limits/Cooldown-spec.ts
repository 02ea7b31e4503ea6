import { expect } from 'chai';
import fc from 'fast-check';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import type { CooldownOptions } from '../../lib/limits/Cooldown.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';

const never = (): number => 0;
const always = (): number => 0.999;

/** Lets everyone who can go, go, millisecond by millisecond; the first one is answered after `answerMs`. */
function returns(cooldown: Cooldown, count: number, fromMs: number, answerMs: number): number[] {
  const instants: number[] = [];
  let trial: { number: number; answerAtMs: number } | undefined;
  for (let nowMs = fromMs; instants.length < count; nowMs++) {
    if (trial && nowMs >= trial.answerAtMs) {
      cooldown.answered(nowMs, trial.number);
      trial = undefined;
    }
    while (cooldown.waitMs(nowMs) === 0 && instants.length < count) {
      const number = cooldown.passed(nowMs);
      if (number !== undefined) trial = { number, answerAtMs: nowMs + answerMs };
      instants.push(nowMs);
    }
  }
  return instants;
}

describe('Cooldown', () => {
  it('holds nobody before a hint', () => {
    const cooldown = new Cooldown({}, never);

    expect(cooldown.waitMs(0)).to.equal(0);
    expect(cooldown.passed(0)).to.be.undefined;
  });

  it('holds everyone for the wait that was asked for', () => {
    const cooldown = new Cooldown({}, never);

    expect(cooldown.hint(0, 2000)).to.equal(2000);
    expect(cooldown.waitMs(0)).to.equal(2000);
    expect(cooldown.waitMs(1999.5)).to.equal(1);
    expect(cooldown.waitMs(2000)).to.equal(0);
  });

  it('is idle before a pause, and again when the ramp after it is over', () => {
    const cooldown = new Cooldown({ rampMs: 100, staggerMs: 20 }, never);
    expect(cooldown.idle).to.equal(true);
    cooldown.hint(0, 50);
    expect(cooldown.idle).to.equal(false);
    const trial = cooldown.passed(50) as number;
    cooldown.answered(60, trial);
    expect([cooldown.waitMs(60), cooldown.idle]).to.deep.equal([20, false]);
    expect([cooldown.waitMs(159), cooldown.idle]).to.deep.equal([0, false]);
    expect([cooldown.waitMs(160), cooldown.idle]).to.deep.equal([0, true]);
    expect(cooldown.passed(160)).to.equal(undefined);
  });

  it('takes other rules, and keeps the pause that has begun', () => {
    const cooldown = new Cooldown({ unhintedMs: 500 }, never);
    expect(cooldown.rejected(0, 0)).to.equal(500);
    cooldown.reload({ unhintedMs: 2000 });
    expect(cooldown.waitMs(0)).to.equal(500);
    expect(cooldown.rejected(10, 10)).to.equal(2000);
    expect(() => cooldown.reload({ unhintedMs: -1 })).to.throw('cooldown.unhintedMs must be finite');
  });

  it('does not take a first one that gave up for one of a later pause', () => {
    const cooldown = new Cooldown({}, never);
    cooldown.hint(0, 50);
    const first = cooldown.passed(50) as number;
    cooldown.hint(60, 100);
    const second = cooldown.passed(160) as number;
    expect(second).to.not.equal(first);
    cooldown.gaveUp(170, first);
    expect(cooldown.waitMs(170)).to.equal(1990);
    cooldown.gaveUp(170, second);
    expect(cooldown.waitMs(170)).to.equal(0);
  });

  it('takes the later of overlapping hints', () => {
    const cooldown = new Cooldown({}, never);
    cooldown.hint(0, 2000);

    expect(cooldown.hint(500, 1000)).to.equal(0);
    expect(cooldown.waitMs(500)).to.equal(1500);
    expect(cooldown.hint(600, 3000)).to.equal(3000);
    expect(cooldown.waitMs(600)).to.equal(3000);
  });

  it('begins nothing for a wait of 0, of less, or that is no number', () => {
    const cooldown = new Cooldown({}, never);

    for (const waitMs of [0, -5, NaN]) expect(cooldown.hint(0, waitMs)).to.equal(0);
    expect(cooldown.waitMs(0)).to.equal(0);
  });

  it('adds jitter to a wait, a tenth of it and a second at most', () => {
    const short = new Cooldown({}, always);
    short.hint(0, 1000);
    expect(short.waitMs(0)).to.equal(1100);

    const long = new Cooldown({}, always);
    long.hint(0, 600_000);
    expect(long.waitMs(0)).to.equal(600_999);

    const none = new Cooldown({ jitter: 0 }, always);
    none.hint(0, 1000);
    expect(none.waitMs(0)).to.equal(1000);
  });

  it('lets the first one back go alone until it is answered', () => {
    const cooldown = new Cooldown({}, never);
    cooldown.hint(0, 100);

    const trial = cooldown.passed(100);
    expect(trial).to.be.a('number');
    expect(cooldown.waitMs(100)).to.equal(2000);
    expect(cooldown.certainMs(100)).to.equal(0);
    cooldown.answered(150, trial!);
    expect(cooldown.waitMs(150)).to.equal(20);
  });

  it('does not wait for the answer of the first one for ever', () => {
    const cooldown = new Cooldown({ trialMs: 300 }, never);
    cooldown.hint(0, 100);
    cooldown.passed(100);

    expect(cooldown.waitMs(100)).to.equal(300);
    expect(cooldown.passed(400)).to.be.undefined;
    expect(cooldown.waitMs(400)).to.equal(20);
  });

  it('sends the next one alone where the first one gave up', () => {
    const cooldown = new Cooldown({}, never);
    cooldown.hint(0, 100);
    const first = cooldown.passed(100)!;
    cooldown.gaveUp(120, first);

    expect(cooldown.waitMs(120)).to.equal(0);
    const second = cooldown.passed(120)!;
    cooldown.answered(130, first);
    expect(cooldown.waitMs(130), 'an answer to the one that gave up').to.be.above(1000);
    cooldown.answered(140, second);
    expect(cooldown.waitMs(140)).to.equal(20);
  });

  it('ignores the answer of a first one once a new pause has begun', () => {
    const cooldown = new Cooldown({}, never);
    cooldown.hint(0, 100);
    const first = cooldown.passed(100)!;
    cooldown.hint(110, 500);

    cooldown.answered(120, first);
    cooldown.gaveUp(120, first);

    expect(cooldown.waitMs(120)).to.equal(490);
  });

  it('brings 20 back at 20 instants, none early, the first one alone', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const cooldown = new Cooldown({}, seededRandom(seed));
      for (let n = 0; n < 20; n++) cooldown.hint(n / 10, 600_000);

      const instants = returns(cooldown, 20, 599_000, 250);

      expect(new Set(instants).size).to.equal(20);
      expect(instants[0]).to.be.at.least(600_001.9);
      expect(instants[1]! - instants[0]!).to.be.above(250);
    }
  });

  it('lets them follow faster and faster, and then freely', () => {
    const cooldown = new Cooldown({}, never);
    cooldown.hint(0, 100);
    const instants = returns(cooldown, 500, 0, 0);

    expect(instants[2]! - instants[1]!).to.be.within(19, 21);
    expect(instants[40]! - instants[39]!).to.be.below(12);
    expect(instants.at(-1)! - instants[0]!).to.be.at.most(1021);
  });

  it('staggers and ramps as told', () => {
    const span = (options: CooldownOptions): number => {
      const cooldown = new Cooldown(options, never);
      cooldown.hint(0, 100);
      const instants = returns(cooldown, 20, 0, 0);
      return instants.at(-1)! - instants[0]!;
    };

    expect(span({ staggerMs: 40 })).to.be.above(span({ staggerMs: 20 }));
    expect(span({ rampMs: 100 })).to.be.below(span({ rampMs: 1000 }));
    // The first one is answered in the next millisecond.
    expect(span({ staggerMs: 0 })).to.equal(1);
    expect(span({ rampMs: 0 })).to.equal(1);
  });

  it('pauses for a rejection without a hint, once for all that left before the pause', () => {
    const cooldown = new Cooldown({}, never);

    expect(cooldown.rejected(100, 50)).to.equal(1000);
    expect(cooldown.rejected(200, 60)).to.equal(0);
    expect(cooldown.waitMs(200)).to.equal(900);
    cooldown.passed(1100);
    expect(cooldown.rejected(1200, 1100)).to.equal(1000);
    expect(cooldown.waitMs(1200)).to.equal(1000);
  });

  it('pauses for as long as told after a rejection without a hint, or not at all', () => {
    const cooldown = new Cooldown({ unhintedMs: 300 }, never);
    cooldown.rejected(0, 0);
    expect(cooldown.waitMs(0)).to.equal(300);

    const none = new Cooldown({ unhintedMs: 0 }, never);
    none.rejected(0, 0);
    expect(none.waitMs(0)).to.equal(0);
  });

  for (const option of ['unhintedMs', 'jitter', 'trialMs', 'staggerMs', 'rampMs'] as const) {
    it(`refuses a negative ${option}, and one that is no number`, () => {
      for (const value of [-1, NaN, Infinity]) {
        expect(() => new Cooldown({ [option]: value }, never)).to.throw(`cooldown.${option} must be finite`);
      }
    });
  }

  it('takes no pause of no time, and none that ends no later, for a new one', () => {
    const cooldown = new Cooldown({}, never);
    expect(cooldown.hint(0, 0)).to.equal(0);
    expect(cooldown.idle).to.equal(true);
    expect(cooldown.hint(0, 100)).to.equal(100);
    expect(cooldown.hint(0, 100)).to.equal(0);
    expect(cooldown.hint(50, 50)).to.equal(0);
    expect(cooldown.hint(50, 51)).to.equal(51);
  });

  it('does not open earlier for a pause that grows', () => {
    let draw = 0.999;
    const cooldown = new Cooldown({}, () => draw);
    cooldown.hint(0, 1000);
    draw = 0;
    cooldown.hint(50, 960);
    expect(cooldown.waitMs(50)).to.equal(1050);
  });

  it('counts a rejection against the pause under way, which growing does not begin anew', () => {
    const cooldown = new Cooldown({ unhintedMs: 5000 }, never);
    cooldown.hint(0, 1000);
    cooldown.hint(50, 2000);
    expect(cooldown.rejected(60, 20)).to.equal(5000);
  });

  for (const [name, atMs] of [
    ['as one is over', 100],
    ['long after one is over', 300],
  ] as const) {
    it(`begins a new pause ${name} and nobody has gone yet`, () => {
      const cooldown = new Cooldown({ unhintedMs: 5000 }, never);
      cooldown.hint(0, 100);
      cooldown.hint(atMs, 300);
      expect(cooldown.rejected(atMs + 50, atMs - 50)).to.equal(0);
      expect(cooldown.rejected(atMs + 50, atMs)).to.equal(5000);
    });
  }

  it('holds nobody once the ramp is over, however wide the last gap was', () => {
    const cooldown = new Cooldown({ rampMs: 10, staggerMs: 50 }, never);
    cooldown.hint(0, 100);
    cooldown.answered(100, cooldown.passed(100) as number);
    expect(cooldown.waitMs(105)).to.equal(45);
    expect(cooldown.waitMs(110)).to.equal(0);
  });

  it('adds up to as much again to a gap at random', () => {
    const cooldown = new Cooldown({ jitter: 0 }, () => 0.5);
    cooldown.hint(0, 100);
    cooldown.answered(100, cooldown.passed(100) as number);
    expect(cooldown.waitMs(100)).to.equal(30);
    cooldown.passed(350);
    // Three quarters of the ramp are left.
    expect(cooldown.waitMs(350)).to.equal(23);
  });

  it('draws nothing while nobody is held', () => {
    const cooldown = new Cooldown({}, () => expect.fail('drawn'));
    expect(cooldown.passed(0)).to.equal(undefined);
    expect(cooldown.waitMs(0)).to.equal(0);
  });

  it('lets nobody go before the latest wait that was asked for is over, for every history', () => {
    const step = fc.record({ gapMs: fc.integer({ min: 0, max: 3000 }), hintMs: fc.nat(5000), kind: fc.nat(4) });
    fc.assert(
      fc.property(fc.integer(), fc.array(step, { maxLength: 50 }), (seed, steps) => {
        const cooldown = new Cooldown({}, seededRandom(seed));
        let nowMs = 0;
        let floorMs = 0;
        let trial: number | undefined;
        for (const { gapMs, hintMs, kind } of steps) {
          nowMs += gapMs;
          if (kind === 0) {
            cooldown.hint(nowMs, hintMs);
            floorMs = Math.max(floorMs, nowMs + hintMs);
          } else if (kind === 1 && trial !== undefined) cooldown.answered(nowMs, trial);
          else if (kind === 2 && trial !== undefined) cooldown.gaveUp(nowMs, trial);
          else if (cooldown.waitMs(nowMs) === 0) {
            expect(nowMs).to.be.at.least(floorMs);
            trial = cooldown.passed(nowMs) ?? trial;
          }
          expect(cooldown.waitMs(nowMs)).to.be.within(0, 8000);
        }
      }),
      { numRuns: 200 },
    );
  });
});
