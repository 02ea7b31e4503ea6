import { expect } from 'chai';
import { checkedAdmissionRules, checkedTenantRules, own } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionOptions, TenantAdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';

describe('checkedAdmissionRules', () => {
  it('has a default for everything', () => {
    expect(checkedAdmissionRules({})).to.deep.equal({
      maxInFlight: Infinity,
      levels: [
        { name: 'interactive', maxInFlight: Infinity },
        { name: 'batch', maxInFlight: Infinity },
      ],
      ageingMs: 10_000,
      passShare: 0.5,
    });
  });

  it('takes what is given', () => {
    const options: AdmissionOptions = {
      maxInFlight: 9,
      quota: { account: { passShare: 0 } },
      priorities: {
        order: ['a', 'b', 'c'],
        levels: { b: { maxInFlight: 2 }, default: { maxInFlight: 7 } },
        ageingMs: 5,
      },
    };
    expect(checkedAdmissionRules(options)).to.deep.equal({
      maxInFlight: 9,
      levels: [
        { name: 'a', maxInFlight: 7 },
        { name: 'b', maxInFlight: 2 },
        { name: 'c', maxInFlight: 7 },
      ],
      ageingMs: 5,
      passShare: 0,
    });
  });

  it('refuses what is wrong by its name', () => {
    for (const [options, message] of [
      [{ maxInFlight: 0 }, 'maxInFlight'],
      [{ priorities: { order: [] } }, 'priorities.order must be a list of at least one name'],
      [{ priorities: { order: ['a', ''] } }, 'priorities.order'],
      [{ priorities: { levels: { batch: { maxInFlight: 0.5 } } } }, 'priorities.batch.maxInFlight'],
      [{ priorities: { ageingMs: -1 } }, 'priorities.ageingMs'],
      [{ quota: { account: { passShare: -1 } } }, 'passShare'],
    ] as const) {
      expect(() => checkedAdmissionRules(options))
        .to.throw(message)
        .with.property('code', 'invalid_option');
    }
  });
});

describe('checkedTenantRules', () => {
  it('has a default for everything but rates, which it passes on', () => {
    expect(checkedTenantRules('t', { requestsPerMinute: 5 })).to.deep.equal({
      maxInFlight: Infinity,
      reservedInFlight: 0,
      weight: 1,
      rates: { requestsPerMinute: 5 },
    });
    const given: TenantAdmissionOptions = { maxInFlight: 3, reservedInFlight: 2, weight: 0.5 };
    expect(checkedTenantRules('t', given)).to.deep.equal({ ...given, rates: {} });
  });

  it('refuses what is wrong by the name of the tenant', () => {
    for (const option of ['maxInFlight', 'reservedInFlight', 'weight'] as const) {
      expect(() => checkedTenantRules('t', { [option]: -1 })).to.throw(`tenants.t.${option}`);
    }
  });
});

describe('own', () => {
  it('is what is named, or else the default, and nothing that was inherited', () => {
    expect(own(undefined, 'a')).to.equal(undefined);
    expect(own({ a: 1, default: 2 }, 'a')).to.equal(1);
    expect(own({ a: 1, default: 2 }, 'b')).to.equal(2);
    expect(own({ a: 1 }, 'b')).to.equal(undefined);
    expect(own({ a: 1, default: 2 }, 'toString')).to.equal(2);
    expect(own<number>(Object.create({ a: 1, default: 2 }) as Record<string, number>, 'a')).to.equal(undefined);
  });
});
