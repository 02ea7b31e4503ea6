import { expect } from 'chai';
import { closest } from '../../lib/policy/closest.ts';

describe('closest', () => {
  const known = ['attempts', 'baseMs', 'capMs', 'maxHintMs'];
  const cases: readonly (readonly [string, string | undefined])[] = [
    ['attempt', 'attempts'],
    ['atempts', 'attempts'],
    ['attepmts', 'attempts'],
    ['attempst', 'attempts'],
    ['ATTEMPTS', 'attempts'],
    ['max_hint_ms', 'maxHintMs'],
    ['cap-ms', 'capMs'],
    ['capMS', 'capMs'],
    ['bseMs', 'baseMs'],
    ['tries', undefined],
    ['', undefined],
    ['x'.repeat(10_000), undefined],
  ];
  for (const [name, expected] of cases) {
    it(`finds ${String(expected)} for ${JSON.stringify(name.slice(0, 20))}`, () => {
      expect(closest(name, known)).to.equal(expected);
    });
  }

  it('counts two swapped letters as one fault', () => {
    expect(closest('bca', ['acb', 'bac'])).to.equal('bac');
  });

  it('does not offer the name itself', () => {
    expect(closest('capMs', ['capMs'])).to.equal(undefined);
  });
});
