import { expect } from 'chai';
import { AdmissionTenants, clampTo } from '../../lib/limits/AdmissionTenant.ts';
import type { AdmissionTenant, Parking } from '../../lib/limits/AdmissionTenant.ts';
import type { TenantAdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';

type Options = Readonly<Record<string, TenantAdmissionOptions>>;

const ONE = { requests: 1, tokens: 0 };

/** Somewhere to be parked, which remembers who was let go. */
class Place implements Parking {
  readonly unparked: string[] = [];
  unpark(tenant: string): void {
    this.unparked.push(tenant);
  }
}

function machine(options?: Options): {
  tenants: AdmissionTenants;
  at: (name?: string, nowMs?: number) => AdmissionTenant;
} {
  const tenants = new AdmissionTenants(options, 0);
  return { tenants, at: (name, nowMs = 0) => tenants.at(name, 0, nowMs) };
}

describe('AdmissionTenants', () => {
  describe('as rules', () => {
    it('gives each its own, or those of the default, and none to calls without a tenant', () => {
      const { tenants, at } = machine({ default: { maxInFlight: 2, requestsPerMinute: 60 }, acme: { weight: 3 } });
      expect(at('acme').rules).to.deep.include({ maxInFlight: Infinity, weight: 3 });
      expect(at('acme').layer).to.equal(undefined);
      expect(at('other').rules).to.deep.include({ maxInFlight: 2, weight: 1 });
      expect(at('other').layer?.name).to.equal('tenant');
      expect(at(undefined)).to.deep.include({ name: '', layer: undefined });
      expect(at(undefined).rules.maxInFlight).to.equal(Infinity);
      expect(at('other')).to.equal(at('other')).and.to.not.equal(at('third'));
      expect(at(undefined)).to.equal(at(''));
      expect(tenants.find('acme')).to.equal(at('acme'));
      expect([tenants.find('nobody'), tenants.find(undefined)]).to.deep.equal([undefined, at('')]);
      expect(tenants.size).to.equal(4);
    });

    it('limits tokens alone where only they are given', () => {
      const { at } = machine({ acme: { tokensPerMinute: 600 } });
      expect(at('acme').layer?.tokens?.perMinute).to.equal(600);
    });

    it('refuses wrong ones when it is made, by their names', () => {
      expect(() => machine({ acme: { requestsPerMinute: -1 } })).to.throw('tenants.acme.requestsPerMinute');
      expect(() => machine({ acme: { weight: 0 } })).to.throw('tenants.acme.weight');
    });

    it('blocks one at its ceiling or at what it may have of it, and else for its own quota', () => {
      const { tenants, at } = machine({ acme: { maxInFlight: 2, requestsPerMinute: 60, tokensPerMinute: 600 } });
      const acme = at('acme');
      tenants.move(acme, 0, 1);
      expect(tenants.blockedMs(acme, ONE, 0)).to.equal(0);
      acme.lent = 1;
      expect(tenants.blockedMs(acme, ONE, 0)).to.equal(Infinity);
      acme.lent = 3;
      tenants.move(acme, 0, 1);
      expect(tenants.blockedMs(acme, ONE, 0)).to.equal(Infinity);
      tenants.move(acme, 0, -1);
      acme.layer?.requests?.charge(0, 1);
      acme.layer?.tokens?.charge(0, 600);
      expect(tenants.blockedMs(acme, ONE, 0)).to.equal(1000);
      // A guess above one minute's worth is taken for that.
      expect(tenants.blockedMs(acme, { requests: 1, tokens: 1e9 }, 0)).to.equal(60_000);
      expect(tenants.blockedMs(at('free'), { requests: 1e9, tokens: 1e9 }, 0)).to.equal(0);
    });
  });

  describe('as parking', () => {
    it('wakes those who are parked when their time has come, and lets them go everywhere', () => {
      const { tenants, at } = machine();
      const [here, there] = [new Place(), new Place()];
      expect(tenants.nextWakeAtMs).to.equal(Infinity);
      tenants.park(at('a'), here, 100);
      tenants.park(at('a'), there, 200);
      expect(tenants.nextWakeAtMs).to.equal(100);
      tenants.park(at('b'), here, 50);
      expect(tenants.nextWakeAtMs).to.equal(50);
      tenants.park(at('c'), here, 30);
      tenants.park(at('c'), here, 70);
      expect(tenants.nextWakeAtMs).to.equal(30);
      tenants.wake(49);
      expect(here.unparked).to.deep.equal(['c']);
      tenants.wake(100);
      expect(here.unparked).to.deep.equal(['c', 'b', 'a']);
      expect(there.unparked).to.deep.equal(['a']);
      expect(tenants.nextWakeAtMs).to.equal(Infinity);
      expect(at('a').parkedIn.size).to.equal(0);
    });

    it('wakes earlier where that is known later, and not again when that was done', () => {
      const { tenants, at } = machine();
      const here = new Place();
      tenants.park(at('a'), here, 100);
      tenants.park(at('a'), here, 40);
      expect(tenants.nextWakeAtMs).to.equal(40);
      tenants.wake(40);
      expect(tenants.nextWakeAtMs).to.equal(Infinity);
      tenants.wake(100);
      expect(here.unparked).to.deep.equal(['a']);
    });

    it('wakes nobody by time alone who waits for one of its own to end', () => {
      const { tenants, at } = machine();
      const here = new Place();
      tenants.move(at('a'), 2, 1);
      tenants.park(at('a'), here, Infinity);
      expect(tenants.nextWakeAtMs).to.equal(Infinity);
      tenants.wake(1e9);
      expect(here.unparked).to.deep.equal([]);
      tenants.move(at('a'), -1, 1);
      expect(here.unparked).to.deep.equal([]);
      tenants.move(at('a'), 0, -1);
      expect(here.unparked).to.deep.equal(['a']);
    });

    it('lets one go that nobody waits for any more', () => {
      const { tenants, at } = machine();
      const here = new Place();
      tenants.move(at('a'), 2, 0);
      tenants.park(at('a'), here, 100);
      tenants.move(at('a'), -1, 0);
      expect(here.unparked).to.deep.equal([]);
      tenants.move(at('a'), -1, 0);
      expect(here.unparked).to.deep.equal(['a']);
      expect(tenants.nextWakeAtMs).to.equal(Infinity);
    });
  });

  describe('as reserves', () => {
    it('owes those who wait what they have less than their reserve', () => {
      const { tenants, at } = machine({ acme: { reservedInFlight: 2 }, big: { reservedInFlight: 5 } });
      const names = (): string[] => [...tenants.owed].map(({ name }) => name);
      expect(tenants.owedSlots).to.equal(0);
      tenants.move(at('other'), 3, 0);
      expect([tenants.owedSlots, names()]).to.deep.equal([0, []]);
      tenants.move(at('acme'), 1, 0);
      tenants.move(at('big'), 9, 0);
      expect([tenants.owedSlots, names()]).to.deep.equal([6, ['acme', 'big']]);
      tenants.move(at('acme'), 4, 0);
      expect([tenants.owedSlots, names()]).to.deep.equal([7, ['acme', 'big']]);
      // One who was given a slot stands last.
      tenants.move(at('acme'), -1, 1);
      expect([tenants.owedSlots, names()]).to.deep.equal([6, ['big', 'acme']]);
      tenants.move(at('acme'), -1, 1);
      expect([tenants.owedSlots, names()]).to.deep.equal([5, ['big']]);
      tenants.move(at('acme'), -1, 1);
      tenants.move(at('acme'), 0, -1);
      expect([tenants.owedSlots, names()]).to.deep.equal([5, ['big']]);
      tenants.move(at('acme'), 0, -1);
      expect([tenants.owedSlots, names()]).to.deep.equal([6, ['big', 'acme']]);
      tenants.move(at('acme'), -2, 0);
      expect([tenants.owedSlots, names()]).to.deep.equal([5, ['big']]);
    });

    it('shows who has something in flight or waiting', () => {
      const { tenants, at } = machine();
      at('idle');
      tenants.move(at('a'), 2, 0);
      tenants.move(at('b'), 0, 3);
      expect(tenants.snapshot()).to.deep.equal({
        a: { inFlight: 0, waiting: 2 },
        b: { inFlight: 3, waiting: 0 },
      });
    });
  });

  describe('as standing', () => {
    it('moves one on by what it was granted over its weight, and the present by all of it over all that wait', () => {
      const { tenants, at } = machine({ heavy: { weight: 4 } });
      const [heavy, light] = [at('heavy'), at('light')];
      tenants.move(heavy, 2, 0);
      tenants.move(light, 1, 0);
      tenants.charge(heavy, 20);
      tenants.charge(light, 0);
      // A call is work too; the first grant is seen when the next one is made: 20 over 5.
      expect([heavy.tag, light.tag, at('new').tag]).to.deep.equal([5, 4, 4]);
      tenants.move(light, -1, 1);
      tenants.charge(heavy, 20);
      expect([heavy.tag, at('newer').tag]).to.deep.equal([10, 5]);
      tenants.charge(heavy, 40);
      expect([heavy.tag, at('newest').tag]).to.deep.equal([20, 10]);
    });

    it('gives no credit for having been away, and lets a debt stand', () => {
      const { tenants, at } = machine();
      const [away, other] = [at('away'), at('other')];
      tenants.move(other, 9, 0);
      for (let i = 0; i < 5; i++) tenants.charge(other, 10);
      tenants.move(away, 1, 0);
      expect([away.tag, other.tag]).to.deep.equal([40, 50]);
      tenants.charge(away, 100);
      const { tag } = away;
      tenants.move(away, -1, 0);
      tenants.move(away, 1, 0);
      expect(away.tag).to.equal(tag).and.to.be.above(100);
    });

    it('counts the weight of each that waits once', () => {
      const { tenants, at } = machine({ a: { weight: 3 } });
      const [a, b] = [at('a'), at('b')];
      tenants.move(a, 1, 0);
      tenants.move(a, 1, 0);
      tenants.move(b, 1, 0);
      tenants.move(a, -1, 1);
      tenants.charge(b, 8);
      tenants.charge(a, 6);
      // 8 over the weights 3 and 1.
      expect(at('x').tag).to.equal(2);
      tenants.move(a, -1, 1);
      tenants.move(a, 0, -2);
      const c = at('c');
      tenants.move(c, 1, 0);
      expect(c.tag).to.equal(2);
      tenants.charge(c, 4);
      // 6 over 3 and 1, and then 4 over 1 and 1.
      expect(at('y').tag).to.equal(3.5);
      tenants.move(at('d'), 1, 0);
      tenants.charge(at('d'), 1);
      expect(at('z').tag).to.equal(5.5);
    });
  });

  describe('as reloading', () => {
    it('takes weights, reserves and rates for all at once, and parks nobody for what was', () => {
      const { tenants, at } = machine({ a: { reservedInFlight: 1 }, b: { requestsPerMinute: 60, burstRequests: 4 } });
      const [a, b, c] = [at('a'), at('b'), at('c')];
      const here = new Place();
      tenants.move(a, 2, 0);
      tenants.move(b, 2, 0);
      b.layer?.requests?.charge(0, 3);
      tenants.park(b, here, 1000);
      tenants.reload(
        {
          b: { requestsPerMinute: 120, burstRequests: 4, reservedInFlight: 1 },
          default: { reservedInFlight: 2, weight: 3 },
        },
        0,
        0,
      );
      expect(here.unparked).to.deep.equal(['b']);
      expect([a.rules.weight, b.rules.weight, c.rules.reservedInFlight]).to.deep.equal([3, 1, 2]);
      expect(b.layer?.requests).to.include({ perMinute: 120 });
      expect(b.layer?.requests?.level(0)).to.equal(1);
      expect(tenants.owedSlots).to.equal(3);
      expect([...tenants.owed]).to.deep.equal([a, b]);
      // Two wait, of weights 3 and 1.
      tenants.charge(a, 12);
      tenants.charge(b, 1);
      expect(at('x').tag).to.equal(3);
      tenants.reload(undefined, 0, 0);
      expect([tenants.owedSlots, [...tenants.owed], b.layer]).to.deep.equal([0, [], undefined]);
      expect(at('later').rules.weight).to.equal(1);
    });

    it('takes another margin of arrival', () => {
      const { tenants, at } = machine({ a: { requestsPerMinute: 600, burstRequests: 10 } });
      at('a');
      tenants.reload({ a: { requestsPerMinute: 600, burstRequests: 10 } }, 100, 0);
      at('a').layer?.requests?.charge(0, 10);
      expect(at('a').layer?.requests?.level(100)).to.be.closeTo(0, 0.1);
    });
  });

  describe('as memory', () => {
    const fill = (at: (name?: string) => AdmissionTenant, from: number, to: number): AdmissionTenant[] =>
      Array.from({ length: to - from }, (_, i) => at(`t${from + i}`));

    it('forgets those of whom nothing is left, once there are many', () => {
      const { tenants, at } = machine({ limited: { requestsPerMinute: 60 }, resting: { requestsPerMinute: 60 } });
      const [running, open, waiting, limited, resting] = ['running', 'open', 'waiting', 'limited', 'resting'].map(
        (name) => at(name),
      ) as [AdmissionTenant, AdmissionTenant, AdmissionTenant, AdmissionTenant, AdmissionTenant];
      tenants.move(running, 0, 1);
      open.open++;
      tenants.move(waiting, 1, 0);
      limited.layer?.requests?.charge(0, 1);
      fill(at, 5, 1024);
      expect(tenants.size).to.equal(1024);
      expect(tenants.find('resting')).to.equal(resting);
      at('one more');
      expect(tenants.size).to.equal(5);
      for (const one of [running, open, waiting, limited]) expect(tenants.find(one.name)).to.equal(one);
      fill(at, 0, 500);
      expect(tenants.size).to.equal(505);
    });

    it('looks through many that are in use only when there are twice as many', () => {
      const { tenants, at } = machine();
      for (const one of fill(at, 0, 1024)) tenants.move(one, 0, 1);
      fill(at, 1024, 2048);
      expect(tenants.size).to.equal(2048);
      at('one more');
      expect(tenants.size).to.equal(1025);
    });
  });
});

describe('clampTo', () => {
  it('takes a guess for no more than a minute of each', () => {
    const layer = new QuotaLayer('m', { requestsPerMinute: 60, tokensPerMinute: 600 }, 0, 0);
    expect(clampTo(layer, { requests: 61, tokens: 599 })).to.deep.equal({ requests: 60, tokens: 599 });
    expect(clampTo(layer, { requests: 1, tokens: 601 })).to.deep.equal({ requests: 1, tokens: 600 });
    const none = new QuotaLayer('m', {}, 0, 0);
    expect(clampTo(none, { requests: 61, tokens: 601 })).to.deep.equal({ requests: 61, tokens: 601 });
  });
});
