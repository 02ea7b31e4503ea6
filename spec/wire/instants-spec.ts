import { expect } from 'chai';
import fc from 'fast-check';
import { parseEpoch, parseHttpDate, parseRfc3339 } from '../../lib/wire/instants.ts';

describe('instants', () => {
  it('agree with Date on every RFC 3339 instant', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date('2399-12-31T23:59:59Z'), noInvalidDate: true }), (date) => {
        expect(parseRfc3339(date.toISOString())).to.be.closeTo(date.getTime(), 1e-3);
        const whole = Math.floor(date.getTime() / 1_000) * 1_000;
        expect(parseHttpDate(date.toUTCString())).to.equal(whole);
      }),
    );
  });

  it('take offsets, fractions and small letters', () => {
    const noon = Date.UTC(2026, 0, 1, 12);
    for (const text of [
      '2026-01-01T12:00:00Z',
      '2026-01-01t12:00:00.000z',
      '2026-01-01T14:00:00+02:00',
      '2026-01-01T06:30:00-05:30',
      '2026-01-01T14:00:00+0200',
      ' 2026-01-01 12:00:00Z ',
    ]) {
      expect(parseRfc3339(text), text).to.equal(noon);
    }
    expect(parseRfc3339('2024-02-29T00:00:00Z')).to.equal(Date.UTC(2024, 1, 29));
    expect(parseRfc3339('2026-01-01T12:00:00.123456789Z')).to.be.closeTo(noon + 123.456789, 1e-3);
  });

  it('take the three forms of an HTTP date', () => {
    const instant = Date.UTC(2026, 0, 1, 0, 0, 20);
    for (const text of [
      'Thu, 01 Jan 2026 00:00:20 GMT',
      'Thursday, 01-Jan-26 00:00:20 GMT',
      'Thu Jan  1 00:00:20 2026',
      '01 Jan 2026 00:00:20 UTC',
      ' Thu, 1 Jan 2026 00:00:20 GMT ',
    ]) {
      expect(parseHttpDate(text), text).to.equal(instant);
    }
    expect(parseHttpDate('Sat Jan 31 00:00:20 2026')).to.equal(Date.UTC(2026, 0, 31, 0, 0, 20));
  });

  it('take the last day of each month, leap years among them, and not the day after', () => {
    for (const year of [1900, 2000, 2024, 2025, 2100]) {
      for (let month = 1; month <= 12; month++) {
        const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
        const dayOf = (day: number): string =>
          `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}T00:00:00Z`;
        expect(parseRfc3339(dayOf(last)), dayOf(last)).to.equal(Date.UTC(year, month - 1, last));
        expect(parseRfc3339(dayOf(last + 1)), dayOf(last + 1)).to.equal(undefined);
        expect(parseRfc3339(dayOf(0)), dayOf(0)).to.equal(undefined);
      }
    }
  });

  it('take the end of a day and a leap second, and no later time of day', () => {
    expect(parseRfc3339('2026-01-01T24:00:00Z')).to.equal(Date.UTC(2026, 0, 2));
    expect(parseRfc3339('2016-12-31T23:59:60Z')).to.equal(Date.UTC(2017, 0, 1));
    for (const time of ['25:00:00', '23:60:00', '23:59:61']) {
      expect(parseRfc3339(`2026-01-01T${time}Z`), time).to.equal(undefined);
    }
  });

  it('refuse an instant with anything around it', () => {
    for (const text of [
      '2026-01-01T12:00:00Z',
      '01 Jan 2026 00:00:20 GMT',
      'Thu, 01 Jan 2026 00:00:20 GMT',
      'Thu Jan  1 00:00:20 2026',
    ]) {
      for (const more of [`at ${text}`, `${text} or so`]) {
        expect(parseRfc3339(more), more).to.equal(undefined);
        expect(parseHttpDate(more), more).to.equal(undefined);
      }
    }
  });

  it('refuse what is no instant', () => {
    for (const text of [
      '',
      '2026',
      '2026-13-01T00:00:00Z',
      '2026-02-30T00:00:00Z',
      '2025-02-29T00:00:00Z',
      '2026-01-01T25:00:00Z',
      '2026-01-01',
      '2026-01-01T00:00:00',
      'soon',
    ]) {
      expect(parseRfc3339(text), text).to.equal(undefined);
      expect(parseHttpDate(text), text).to.equal(undefined);
    }
    expect(parseHttpDate('Thu, 01 Foo 2026 00:00:20 GMT')).to.equal(undefined);
    expect(parseHttpDate('Thu, 41 Jan 2026 00:00:20 GMT')).to.equal(undefined);
  });

  it('tell epochs in seconds and milliseconds from delays', () => {
    expect(parseEpoch(1_767_225_607)).to.equal(1_767_225_607_000);
    expect(parseEpoch(1_767_225_607_123)).to.equal(1_767_225_607_123);
    expect(parseEpoch(1e9)).to.equal(1e12);
    expect(parseEpoch(1e11)).to.equal(1e11);
    for (const value of [0, 60, 2_592_000, 999_999_999, 1e14, 1e15]) expect(parseEpoch(value)).to.equal(undefined);
  });
});
