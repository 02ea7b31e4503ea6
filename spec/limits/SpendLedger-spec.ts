import { expect } from 'chai';
import fc from 'fast-check';
import { costOfUsage, SPEND_NAMES, SpendLedger } from '../../lib/limits/SpendLedger.ts';

const price = { inputPerMTok: 2, outputPerMTok: 10, cachedInputPerMTok: 0.5 };
const usageOf = (inputTokens: number, outputTokens: number, cachedInputTokens?: number) => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
  cachedInputTokens,
  reasoningTokens: undefined,
});
const NOON = Date.UTC(2026, 1, 28, 12);

describe('SpendLedger', () => {
  let nowMs: number;
  let ledger: SpendLedger;
  beforeEach(() => {
    nowMs = NOON;
    ledger = new SpendLedger({ wallNow: () => nowMs });
  });
  const spend = (tenant: string | undefined, model: string, wasted = false, cap = Infinity): number =>
    ledger.spend({ tenant, model, usage: usageOf(500_000, 100_000), price, wasted, cap });

  it('tells the day that it counts, by UTC', () => {
    expect(ledger.day).to.equal(Date.UTC(2026, 1, 28) / 86_400_000);
    nowMs += 12 * 3_600_000;
    expect(ledger.day).to.equal(Date.UTC(2026, 2, 1) / 86_400_000);
    expect(ledger.snapshot().day).to.equal('2026-03-01');
  });

  it('prices input, cached input and output', () => {
    expect(costOfUsage(usageOf(1_000_000, 0), price)).to.equal(2);
    expect(costOfUsage(usageOf(1_000_000, 100_000, 500_000), price)).to.equal(2.25);
    expect(costOfUsage(usageOf(10, 0, 20), price)).to.equal((10 * 0.5) / 1e6);
  });

  it('adds up by model and tenant, and names what was wasted', () => {
    spend('acme', 'a');
    spend('acme', 'b', true);
    spend(undefined, 'a');
    expect(ledger.snapshot()).to.deep.equal({
      day: '2026-02-28',
      models: {
        a: { cost: 4, inputTokens: 1_000_000, outputTokens: 200_000, wastedTokens: 0 },
        b: { cost: 2, inputTokens: 500_000, outputTokens: 100_000, wastedTokens: 600_000 },
      },
      tenants: {
        acme: { cost: 4, inputTokens: 1_000_000, outputTokens: 200_000, wastedTokens: 600_000 },
        '': { cost: 2, inputTokens: 500_000, outputTokens: 100_000, wastedTokens: 0 },
      },
    });
  });

  it('refuses a tenant at its cap until midnight UTC, and nobody else', () => {
    spend('acme', 'a');
    expect(ledger.refusal('acme', 2.01)).to.equal(undefined);
    expect(ledger.refusal('acme', 2)).to.deep.equal({ cap: 2, spent: 2, retryAfterMs: 12 * 3_600_000 });
    expect(ledger.refusal('other', 2)).to.equal(undefined);
    expect(ledger.refusal('acme', Infinity)).to.equal(undefined);
    nowMs += 12 * 3_600_000;
    expect(ledger.refusal('acme', 2)).to.equal(undefined);
    expect(ledger.snapshot()).to.deep.equal({ day: '2026-03-01', models: {}, tenants: {} });
  });

  it('does not go back a day with the clock', () => {
    nowMs = Date.UTC(2026, 2, 1);
    spend('acme', 'a');
    nowMs -= 1;
    expect(ledger.refusal('acme', 2)).to.have.property('spent', 2);
    expect(ledger.snapshot().day).to.equal('2026-03-01');
  });

  it('tells so many names apart, and counts the others together', () => {
    for (let i = 0; i < 100_000; i++) spend(`t${i}`, `m${i}`, i % 2 === 0);
    spend('t0', 'm0');
    spend('other', 'm99999');
    for (const totals of [ledger.snapshot().models, ledger.snapshot().tenants]) {
      expect(Object.keys(totals)).to.have.length(SPEND_NAMES + 1);
      const all = Object.values(totals).reduce((sum, { cost }) => sum + cost, 0);
      expect(all).to.equal(2 * 100_002);
      expect(totals['other']).to.include({
        cost: 2 * (100_001 - SPEND_NAMES),
        inputTokens: 500_000 * (100_001 - SPEND_NAMES),
      });
    }
    expect(ledger.snapshot().tenants['t0']?.cost).to.equal(4);
    expect(ledger.refusal('other', 1)).to.equal(undefined);
    expect(spend('other', 'a', false, 10)).to.equal(2);
    expect(ledger.refusal('other', 2)).to.have.property('spent', 2);
    nowMs += 86_400_000;
    expect(ledger.snapshot()).to.deep.include({ models: {}, tenants: {} });
  });

  it('never forgets what a tenant with a cap has spent, however many names come', () => {
    for (let i = 0; i < 2 * SPEND_NAMES; i++) spend(`flood${i}`, 'a');
    spend('capped', 'a', false, 4);
    for (let i = 0; i < 100_000; i++) spend(`more${i}`, 'a', false, i % 2 ? 4 : Infinity);
    spend('capped', 'a', false, 4);
    expect(ledger.refusal('capped', 4)).to.have.property('spent', 4);
    expect(ledger.refusal('more1', 2)).to.have.property('spent', 2);
    expect(ledger.refusal('more99999', 2)).to.have.property('spent', 2);
    expect(ledger.refusal('more2', 2)).to.equal(undefined);
  });

  it('keeps a sum for each tenant with a cap beyond those it tells apart, and for no model', () => {
    for (let i = 0; i < SPEND_NAMES; i++) spend(`t${i}`, `m${i}`);
    spend('late', 'late');
    spend('capped', 'late', false, 4);
    const { models, tenants } = ledger.snapshot();
    expect(Object.keys(tenants).slice(-2)).to.deep.equal(['capped', 'other']);
    expect(Object.keys(models).slice(-2)).to.deep.equal([`m${SPEND_NAMES - 1}`, 'other']);
    expect(ledger.refusal('late', 1)).to.equal(undefined);
    expect(ledger.refusal('capped', 2)).to.include({ spent: 2 });
  });

  it('counts what was spent elsewhere towards a cap, and what those without a name spent to theirs', () => {
    spend('acme', 'a');
    expect(ledger.refusal('acme', 5, 3)).to.include({ spent: 5 });
    expect(ledger.refusal('acme', 5, 2.9)).to.equal(undefined);
    spend(undefined, 'a', false, 2);
    expect(ledger.refusal(undefined, 2)).to.include({ spent: 2 });
  });

  it('names the days around leap years', () => {
    for (const day of [
      '1970-01-01',
      '2000-02-29',
      '2000-03-01',
      '2100-02-28',
      '2100-03-01',
      '2399-12-31',
      '2400-02-29',
    ]) {
      for (const shift of [-1, 0, 1]) {
        const atMs = Date.parse(day) + shift * 86_400_000;
        if (atMs < 0) continue;
        const shown = new SpendLedger({ wallNow: () => atMs }).snapshot().day;
        expect(shown).to.equal(new Date(atMs).toISOString().slice(0, 10));
      }
    }
  });

  it('names every day as calendars do', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 80_000 }), (days) => {
        const date = new Date(days * 86_400_000);
        const day = new SpendLedger({ wallNow: () => date.getTime() }).snapshot().day;
        expect(day).to.equal(date.toISOString().slice(0, 10));
      }),
      { numRuns: 100 },
    );
  });
});
