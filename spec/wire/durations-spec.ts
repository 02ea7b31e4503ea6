import { expect } from 'chai';
import fc from 'fast-check';
import {
  parseDecimal,
  parseDurationObject,
  parseSeconds,
  parseUnits,
  parseWaitText,
} from '../../lib/wire/durations.ts';

describe('durations', () => {
  it('parses plain decimals and nothing else as a number', () => {
    expect(['30', ' 0.5 ', '0', '.5', '1.'].map(parseDecimal)).to.deep.equal([30, 0.5, 0, 0.5, 1]);
    for (const text of ['', ' ', '-1', '+1', '1e3', '0x10', 'Infinity', 'NaN', '1s', '1 2', '9'.repeat(400), '1,5']) {
      expect(parseDecimal(text), text).to.equal(undefined);
    }
    expect(parseSeconds('1.5')).to.equal(1_500);
    expect(parseDecimal('.25')).to.equal(0.25);
  });

  it('reads texts of up to 64 characters', () => {
    expect(parseDecimal('1'.padStart(64, '0'))).to.equal(1);
    expect(parseDecimal('1'.padStart(65, '0'))).to.equal(undefined);
    expect(parseUnits('1s'.padStart(64, '0'))).to.equal(1_000);
    expect(parseUnits('1s'.padStart(65, '0'))).to.equal(undefined);
  });

  it('parses numbers with units', () => {
    const expected: Readonly<Record<string, number>> = {
      '1s': 1_000,
      '6m0s': 360_000,
      '20ms': 20,
      '2m59.56s': 179_560,
      '7.66s': 7_660,
      '1h2m3s': 3_723_000,
      '500us': 0.5,
      '250µs': 0.25,
      '1000000ns': 1,
      '34s': 34_000,
      '1d': 86_400_000,
      '6m 0s': 360_000,
      ' 5s ': 5_000,
    };
    for (const [text, ms] of Object.entries(expected)) expect(parseUnits(text), text).to.be.closeTo(ms, 1e-6);
    for (const text of ['', '12', 's', '-1s', '1x', '1s!', '1.s', 'soon', '9'.repeat(80) + 's']) {
      expect(parseUnits(text), text).to.equal(undefined);
    }
  });

  it('parses the object form of a protobuf Duration', () => {
    expect(parseDurationObject({ seconds: '34', nanos: 500_000_000 })).to.equal(34_500);
    expect(parseDurationObject({ seconds: 2 })).to.equal(2_000);
    expect(parseDurationObject({ nanos: 5_000_000 })).to.equal(5);
    expect(parseDurationObject({ seconds: 0 })).to.equal(0);
    for (const value of [null, 3, {}, { seconds: 'x' }, { seconds: -1 }]) {
      expect(parseDurationObject(value)).to.equal(undefined);
    }
  });

  it('finds the wait in a sentence, in any spelling of its units', () => {
    const expected: Readonly<Record<string, number>> = {
      'Please try again in 644ms.': 644,
      'Limit 10000, Used 8554, Requested 3082. Please try again in 9.816s. See the limits page.': 9_816,
      'try again in 6m0s': 360_000,
      'Please try again in 7m12.5s. Visit the page.': 432_500,
      'Please retry after 33 seconds.': 33_000,
      'Retry after 1 hour': 3_600_000,
      'Please retry in 38.61s.': 38_610,
      'Try again in 26 seconds.': 26_000,
      'try again in 1 minute and 20 seconds': 80_000,
      'try again in 12 minutes, 5 seconds': 725_000,
      'please wait for 3 s': 3_000,
      'You must wait 12 seconds before the next call': 12_000,
      'resets in 2h30m': 9_000_000,
      'try again in about 2 days': 172_800_000,
      'retry after 33': 33_000,
      'Retry-After: 30': 30_000,
      'retry your request after 5 sec': 5_000,
      'Try\nagain\nin\n20s': 20_000,
      'Try again \t in\r\n20s': 20_000,
    };
    for (const [text, ms] of Object.entries(expected)) expect(parseWaitText(text), text).to.be.closeTo(ms, 1e-6);
  });

  it('does not take other numbers for a wait', () => {
    for (const text of [
      '',
      'Limit 30000, Used 29937, Requested 385.',
      'retry 3 times',
      'retry after 33 requests',
      'resets at 12:00',
      'wait 30 users',
      'try again later',
      'try again in a few seconds',
      'try again in 5 models',
      `${'x'.repeat(2_000)} try again in 5s`,
    ]) {
      expect(parseWaitText(text), text).to.equal(undefined);
    }
  });

  it('answers a finite number of 0 or more, or nothing, for any text, in no time', () => {
    const word = fc.constantFrom(
      'try again in',
      'retry after',
      '9',
      '99999999999',
      '.',
      's',
      'ms',
      'm',
      ' and ',
      ',',
      '-',
      'wait for ',
      'hours',
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(word, { maxLength: 40 }).map((words) => words.join(' ')),
    );
    fc.assert(
      fc.property(text, (any) => {
        for (const parse of [parseDecimal, parseSeconds, parseUnits, parseWaitText]) {
          const ms = parse(any);
          if (ms !== undefined) expect(ms).to.be.within(0, Number.MAX_VALUE);
        }
      }),
    );
    const before = process.cpuUsage().user;
    for (const part of ['try again in ', '1s', '1 s and ', 'retry ', '9', ' ']) parseWaitText(part.repeat(100_000));
    expect(process.cpuUsage().user - before).to.be.below(1_000_000);
  });
});
