import { expect } from 'chai';
import { LiveSeries } from '../../../lib/http/live/LiveSeries.ts';
import type { LiveSample } from '../../../lib/http/live/LiveSeries.ts';

const IDLE: LiveSample = { inFlight: 0, waiting: 0, breakers: {} };

describe('LiveSeries', () => {
  it('counts each second apart', () => {
    const series = new LiveSeries(10_000, () => ({ ...IDLE, inFlight: 3, waiting: 2 }));
    series.attempt(10_100, false);
    series.attempt(10_200, true);
    series.call(10_999, 'success', 2);
    series.call(11_000, 'failure', 1);
    series.advance(12_000);
    const gauges = { inFlight: 3, waiting: 2, p50Ms: null, p95Ms: null };
    expect(series.since(0)).to.deep.equal([
      { second: 0, calls: 1, failed: 0, attempts: 2, rateLimited: 1, ...gauges, breakers: {} },
      { second: 1, calls: 1, failed: 1, attempts: 0, rateLimited: 0, ...gauges },
    ]);
    expect(series.since(1).map(({ second }) => second)).to.deep.equal([1]);
  });

  it('sums five minutes, the second that runs included', () => {
    const series = new LiveSeries(0, () => IDLE);
    for (let second = 0; second < 400; second++) {
      series.attempt(second * 1_000, second % 4 === 0);
      series.attempt(second * 1_000, false);
      series.call(second * 1_000, second % 10 === 0 ? 'failure' : 'success', 2);
    }
    expect(series.totals(399_500)).to.deep.equal({
      ...{ calls: 301, failed: 30, dropped: 0, attempts: 602, rateLimited: 75 },
      rateLimitedShare: 75 / 602,
      amplification: 2,
    });
    expect(series.added).to.equal(399);
    expect(series.since(0)).to.have.length(300);
  });

  it('leaves calls that sent nothing out of the attempts per call', () => {
    const series = new LiveSeries(0, () => IDLE);
    series.attempt(0, false);
    series.call(0, 'success', 1);
    series.call(0, 'failure', 0);
    series.call(0, 'dropped', 0);
    expect(series.totals(0)).to.include({ calls: 3, failed: 1, dropped: 1, amplification: 1 });
  });

  it('knows no shares of nothing', () => {
    const totals = new LiveSeries(0, () => IDLE).totals(0);
    expect([totals.rateLimitedShare, totals.amplification]).to.deep.equal([null, null]);
  });

  it('forgets everything in a long silence, and asks how things stand only once after it', () => {
    let asked = 0;
    const series = new LiveSeries(0, () => (asked++, IDLE));
    series.attempt(500, true);
    series.advance(86_400_000);
    expect(asked).to.equal(1);
    expect(series.totals(86_400_000)).to.include({ attempts: 0, rateLimited: 0, rateLimitedShare: null });
    const points = series.since(0);
    expect([points.length, points[0]?.second, points.at(-1)?.second]).to.deep.equal([300, 86_100, 86_399]);
  });

  it('gives the time to first content of 15 seconds in a point, and of a minute in all', () => {
    const series = new LiveSeries(0, () => IDLE);
    for (let i = 0; i < 100; i++) series.firstContent(100, i < 90 ? 200 : 3_000);
    series.advance(20_000);
    const points = series.since(0);
    expect(points[0]?.p50Ms).to.be.closeTo(200, 10);
    expect(points[14]?.p95Ms).to.be.closeTo(3_000, 150);
    expect(points[15]?.p95Ms).to.equal(null);
    expect(series.firstContentOf(59_999).p50Ms).to.be.closeTo(200, 10);
    expect(series.firstContentOf(60_000)).to.deep.equal({ p50Ms: null, p95Ms: null });
  });

  it('shows the worst that a breaker was in a second', () => {
    const series = new LiveSeries(0, () => ({ ...IDLE, breakers: { m: 'closed' } }));
    series.breaker(100, 'm', 'open');
    series.breaker(200, 'm', 'half_open');
    series.breaker(300, 'unknown', 'open');
    series.advance(3_000);
    expect(series.since(0).map(({ breakers }) => breakers)).to.deep.equal([{ m: 'open' }, { m: 'closed' }, undefined]);
  });

  it('names all breakers in the first point that it gives', () => {
    const series = new LiveSeries(0, () => ({ ...IDLE, breakers: { m: 'closed' } }));
    series.advance(4_000);
    expect(series.since(2).map(({ breakers }) => breakers)).to.deep.equal([{ m: 'closed' }, undefined]);
  });
});
