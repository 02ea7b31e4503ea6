import { expect } from 'chai';
import type { LimitReading } from '../../lib/core/hints.ts';
import { LearnedRate } from '../../lib/limits/LearnedRate.ts';
import type { LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const minute = (limit: number): LimitReading => ({
  limit,
  remaining: undefined,
  resetMs: undefined,
  windowMs: 60_000,
});
/** Someone always waits for the rate, and is sent whenever there is room. */
class Load {
  readonly rate: LearnedRate;
  nowMs = 0;

  constructor(options: LayerOptions, sharedPerMinute = Infinity) {
    this.rate = new LearnedRate('m', options, sharedPerMinute, 0, 0);
  }

  get perMinute(): number | undefined {
    return this.rate.snapshot(this.nowMs).requests?.perMinute;
  }

  /** Sends `perSecond` evenly, of which the provider refuses the last where it is told so. */
  send(forMs: number, perSecond: number, rejectsLast = false): void {
    const untilMs = this.nowMs + forMs;
    for (; this.nowMs < untilMs; this.nowMs += 1000 / perSecond) {
      const mark = this.rate.sent(this.nowMs);
      this.rate.advance(this.nowMs, 0, 1);
      if (rejectsLast && this.nowMs + 1000 / perSecond >= untilMs) this.rate.rejected(this.nowMs, mark);
    }
  }
}

describe('LearnedRate', () => {
  it('shows and limits nothing before it has learned anything', () => {
    const load = new Load({});
    load.send(10_000, 50);
    expect(load.rate.snapshot(load.nowMs)).to.deep.equal({ layer: 'm', requests: undefined, tokens: undefined });
    expect(load.rate.advance(load.nowMs, 0, 1)).to.equal(Infinity);
  });

  it('takes a limit of tokens that is named, and never more than was configured', () => {
    const { rate } = new Load({ tokensPerMinute: 6000, burstTokens: 1000 });
    const tokens = (): object => rate.snapshot(0).tokens ?? {};

    rate.reported(0, hintsOf({ tokens: minute(3000) }));
    expect(tokens()).to.include({ perMinute: 3000, burst: 1000 });
    rate.reported(0, hintsOf({ tokens: { ...minute(9000), windowMs: 86_400_000 } }));
    rate.reported(0, hintsOf({ tokens: minute(0) }));
    expect(tokens()).to.include({ perMinute: 3000 });
    rate.reported(0, hintsOf({ tokens: minute(9000) }));
    expect(tokens()).to.include({ perMinute: 6000, burst: 1000 });
  });

  it('is out of the way again once the shared rate has held for 10 s', () => {
    const load = new Load({}, 600);
    load.send(6000, 10, true);
    expect(load.perMinute).to.be.within(300, 600);
    load.send(60_000, 10);
    expect(load.perMinute).to.equal(undefined);
    expect(load.rate.advance(load.nowMs, 0, 1)).to.equal(Infinity);
  });

  it('only begins to measure at the first rejection after a rate has come back', () => {
    const load = new Load({}, 600);
    load.send(6000, 10);
    load.send(200, 10, true);
    load.send(1500, 3, true);
    expect(load.perMinute).to.be.below(450);
    for (let n = 0; n < 60 && (load.perMinute ?? 0) < 590; n++) load.send(500, (load.perMinute ?? 0) / 60);
    load.send(4000, 10);
    load.send(200, 10, true);
    expect(load.perMinute).to.be.within(550, 600);
  });
});
