import { expect } from 'chai';
import { Admission } from '../../../lib/limits/Admission.ts';
import type { AdmissionGrant } from '../../../lib/limits/AdmissionGrant.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../../lib/limits/AdmissionPool.ts';
import type { AdmissionTenant } from '../../../lib/limits/AdmissionTenant.ts';
import { SharedCeilings } from '../../../lib/operators/shared/SharedCeilings.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { ScriptedStore } from '../../helpers/scriptedStore.ts';

describe('SharedCeilings', () => {
  let store: ScriptedStore;
  let machine: Admission;
  let ceilings: SharedCeilings;
  let changed: number;

  /** `have`: what each of the slots has at first. */
  function start(options: AdmissionOptions, have = Infinity): void {
    const { clock, random } = virtualRuntime();
    store = new ScriptedStore();
    store.have = have;
    machine = new Admission(options, clock, random);
    changed = 0;
    ceilings = new SharedCeilings(machine, store.connect(), () => changed++);
  }
  const tenantOf = (name: string): AdmissionTenant => machine.tenants.at(name, 0, 0);
  /** It has come, and waits. */
  const ask = (tenant: string, priority?: string): AdmissionTicket => {
    const ticket = machine.ask({ model: 'm', tenant, priority, cost: { requests: 1, tokens: 0, explicit: true } });
    if (ticket.kind !== 'ticket') throw new Error(ticket.code);
    ceilings.enter(ticket.from);
    return ticket;
  };
  const granted = (): AdmissionGrant => {
    const step = machine.next();
    if (step.kind !== 'granted') throw new Error(step.kind);
    ceilings.touch(step.ticket.tenant);
    return step.grant;
  };
  const levels = (first?: number, second?: number): AdmissionOptions => ({
    priorities: {
      order: ['now', 'la{t}er'],
      levels: { now: { maxInFlight: first }, 'la{t}er': { maxInFlight: second } },
    },
  });
  const tenants = (limits: Record<string, number | undefined>): AdmissionOptions => ({
    tenants: Object.fromEntries(Object.entries(limits).map(([name, maxInFlight]) => [name, { maxInFlight }])),
  });

  it('are named in the store for what they hold', () => {
    start({ maxInFlight: 9, ...levels(8, 7), ...tenants({ 'a%b': 6, free: undefined }) });
    ask('a%b');
    ask('free');
    ask('');
    expect([...store.slots].map(([name, { limit }]) => [name, limit])).to.deep.equal([
      ['calls', 9],
      ['priority.now', 8],
      ['priority.la%7bt%7der', 7],
      ['tenant.a%25b', 6],
    ]);
  });

  it('are none where nothing is bound', () => {
    start({});
    ask('acme');
    expect(ceilings.update([0, 0])).to.equal(false);
    expect(store.slots.size).to.equal(0);
    expect([machine.lent, machine.levels.lent.get('interactive'), tenantOf('acme').lent]).to.deep.equal(
      Array(3).fill(Infinity),
    );
  });

  it('let the machine have from the first what the store has lent, and nothing more', () => {
    start({ maxInFlight: 9, ...levels(8), ...tenants({ acme: 6 }) }, 2);
    expect([machine.lent, machine.levels.lent.get('now')]).to.deep.equal([2, 2]);
    expect(machine.levels.lent.get('la{t}er')).to.equal(Infinity);
    ask('acme');
    expect(tenantOf('acme').lent).to.equal(2);
  });

  it('tell the store what is taken and what is wanted', () => {
    start({ maxInFlight: 9, ...levels(8, 7), ...tenants({ acme: 6 }) });
    for (const priority of ['now', 'now', 'la{t}er', 'la{t}er', 'la{t}er']) ask('acme', priority);
    granted();
    ceilings.update([1, 3]);
    const used = (name: string): readonly number[] => store.slotsOf(name).used;
    expect(used('calls')).to.deep.equal([1, 4]);
    expect(used('priority.now')).to.deep.equal([1, 1]);
    expect(used('priority.la%7bt%7der')).to.deep.equal([0, 3]);
    expect(used('tenant.acme')).to.deep.equal([1, 4]);
    ceilings.update([]);
    expect(used('priority.now')).to.deep.equal([1, 0]);
  });

  it('say whether there is more to have than before: of all, a priority or a tenant', () => {
    start({ maxInFlight: 9, ...levels(8), ...tenants({ acme: 6 }) }, 0);
    ask('acme');
    expect(ceilings.update([1, 0])).to.equal(false);
    for (const name of ['calls', 'priority.now', 'tenant.acme']) {
      store.slotsOf(name).have = 2;
      ceilings.lent();
      expect(ceilings.update([1, 0]), name).to.equal(true);
      expect(ceilings.update([1, 0]), name).to.equal(false);
      ceilings.lent();
      expect(ceilings.update([1, 0]), name).to.equal(false);
    }
    expect([machine.lent, machine.levels.lent.get('now'), tenantOf('acme').lent]).to.deep.equal([2, 2, 2]);
    for (const slots of store.slots.values()) slots.have = 1;
    ceilings.lent();
    expect(ceilings.update([1, 0])).to.equal(false);
    expect([machine.lent, machine.levels.lent.get('now'), tenantOf('acme').lent]).to.deep.equal([1, 1, 1]);
  });

  it('say so where one of several tenants has more, whichever it is', () => {
    for (const lucky of ['a', 'b']) {
      start(tenants({ a: 2, b: 2, c: undefined }), 0);
      for (const tenant of ['a', 'b', 'c']) ask(tenant);
      ceilings.update([3, 0]);
      store.slotsOf(`tenant.${lucky}`).have = 1;
      for (const tenant of ['a', 'b', 'c', 'stranger']) ceilings.touch(tenant);
      expect(ceilings.update([3, 0]), lucky).to.equal(true);
    }
  });

  it('let those go on that waited for the ceiling of their tenant', () => {
    start(tenants({ acme: 2 }), 0);
    const ticket = ask('acme');
    expect(machine.next().kind).to.equal('wait');
    expect(tenantOf('acme').parkedIn.size).to.equal(1);
    ceilings.update([1, 0]);
    expect(tenantOf('acme').parkedIn.size, 'it has no more').to.equal(1);
    store.slotsOf('tenant.acme').have = 1;
    ceilings.lent();
    ceilings.update([1, 0]);
    expect(machine.next()).to.include({ kind: 'granted', ticket });
  });

  it('tell the store of those tenants only for which something has changed', () => {
    start(tenants({ a: 2, b: 2 }));
    const told: string[] = [];
    for (const name of ['a', 'b']) {
      ask(name);
      store.slotsOf(`tenant.${name}`).use = () => void told.push(name);
    }
    ceilings.update([2, 0]);
    expect(told).to.deep.equal(['a', 'b']);
    const ticket = ask('a');
    ceilings.update([3, 0]);
    expect(told).to.deep.equal(['a', 'b', 'a']);
    machine.cancel(ticket);
    ceilings.update([2, 0]);
    expect(told, 'until it is touched').to.deep.equal(['a', 'b', 'a']);
    ceilings.touch('a');
    ceilings.update([2, 0]);
    expect(told).to.deep.equal(['a', 'b', 'a', 'a']);
    const finds = machine.tenants.find.bind(machine.tenants);
    machine.tenants.find = (name) => {
      told.push(`looks at ${name}`);
      return finds(name);
    };
    ceilings.update([2, 0]);
    expect(told.slice(4)).to.deep.equal([]);
    ceilings.lent();
    ceilings.update([2, 0]);
    expect(told.slice(4), 'whatever the store has changed').to.deep.equal(['looks at a', 'looks at b']);
  });

  it('hear of what the store changes', () => {
    start({ maxInFlight: 9 });
    store.slotsOf('calls').onChange?.();
    expect(changed).to.equal(1);
  });

  it('say why nobody may go: for all, for a priority or for a tenant', () => {
    start({ maxInFlight: 9, ...levels(undefined, 7), ...tenants({ acme: 6 }) });
    ask('acme');
    const refusing = (level: number, tenant: string): string | undefined => ceilings.refusing(level, tenant);
    expect([refusing(0, ''), refusing(1, 'acme'), refusing(7, 'acme')]).to.deep.equal(Array(3).fill(undefined));
    store.slotsOf('tenant.acme').refusing = 'T';
    expect([refusing(0, 'acme'), refusing(7, 'acme'), refusing(0, 'other')]).to.deep.equal(['T', 'T', undefined]);
    store.slotsOf('priority.la%7bt%7der').refusing = 'P';
    expect([refusing(0, ''), refusing(1, ''), refusing(1, 'acme')]).to.deep.equal([undefined, 'P', 'P']);
    store.slotsOf('calls').refusing = 'C';
    expect([refusing(0, ''), refusing(1, 'acme')]).to.deep.equal(['C', 'C']);
  });

  describe('reloaded', () => {
    const reload = (options: AdmissionOptions): void => {
      machine.reload(options);
      ceilings.reload();
    };

    it('take other limits, and go on with what they have', () => {
      start({ maxInFlight: 9, ...levels(8), ...tenants({ acme: 6 }) }, 3);
      ask('acme');
      const before = [...store.slots.values()];
      reload({ maxInFlight: 5, ...levels(2), ...tenants({ acme: 1 }) });
      expect([...store.slots.values()]).to.deep.equal(before);
      expect(before.map(({ limit, closed }) => [limit, closed])).to.deep.equal([
        [5, false],
        [2, false],
        [1, false],
      ]);
      expect([machine.lent, machine.levels.lent.get('now'), tenantOf('acme').lent]).to.deep.equal([3, 2, 1]);
    });

    it('give back those of a priority that is gone, and no others', () => {
      start(levels(8, 7));
      reload({ priorities: { order: ['now'], levels: { now: { maxInFlight: 8 } } } });
      expect([store.slotsOf('priority.now').closed, store.slotsOf('priority.la%7bt%7der').closed]).to.deep.equal([
        false,
        true,
      ]);
    });

    it('are lifted where there is no limit any more, for tenants that are not known here too', () => {
      start({ maxInFlight: 9, ...levels(8), ...tenants({ acme: 6, gone: 6 }) }, 3);
      ask('acme');
      machine.cancel(ask('gone'));
      const finds = machine.tenants.find.bind(machine.tenants);
      machine.tenants.find = (name) => (name === 'gone' ? undefined : finds(name));
      reload({});
      expect([...store.slots].filter(([, { closed }]) => !closed)).to.deep.equal([]);
      expect([machine.lent, tenantOf('acme').lent]).to.deep.equal([Infinity, Infinity]);
    });

    it('do with priorities of which they have not heard yet', () => {
      start(levels(8, 7));
      machine.reload({ priorities: { order: ['now', 'new'], levels: { new: { maxInFlight: 3 } } } });
      expect(ceilings.update([0, 0])).to.equal(false);
      expect(machine.levels.lent.get('new')).to.equal(undefined);
      ceilings.reload();
      expect(machine.levels.lent.get('new')).to.equal(3);
    });

    it('tell the store anew of all tenants that have one', () => {
      start(tenants({ acme: 6 }), 3);
      ask('acme');
      ceilings.update([1, 0]);
      reload(tenants({}));
      reload(tenants({ acme: 4 }));
      ceilings.update([1, 0]);
      expect(store.slotsOf('tenant.acme')).to.deep.include({ limit: 4, used: [0, 1], closed: false });
    });
  });

  it('give everything back when they are closed', () => {
    start({ maxInFlight: 9, ...levels(8, 7), ...tenants({ acme: 6 }) });
    ask('acme');
    ceilings.close();
    expect([...store.slots.values()].map(({ closed }) => closed)).to.deep.equal(Array(4).fill(true));
  });

  it('give back those of a tenant that this process has forgotten, as soon as they are looked at', () => {
    start({ ...tenants({ acme: 6 }) });
    ask('acme');
    const first = store.slotsOf('tenant.acme');
    machine.tenants.find = () => undefined;
    expect(ceilings.update([0, 0])).to.equal(false);
    expect(first.closed).to.equal(true);
    first.closed = false;
    ceilings.lent();
    ceilings.update([0, 0]);
    ceilings.close();
    expect(first.closed, 'once').to.equal(false);
    store.have = 2;
    ask('acme');
    expect(tenantOf('acme').lent, 'by slots of its own again').to.equal(2);
  });

  describe('of many tenants', () => {
    const MANY = 1024;
    const stand = (name: string): boolean => !store.slotsOf(`tenant.${name}`).closed;
    const enterMany = (from: number, count: number): void => {
      for (let i = from; i < from + count; i++) {
        // Kept by the machine for what its quota has to forget.
        const tenant = machine.tenants.at(`t${i}`, 0, 0);
        tenant.open = 1;
        ceilings.enter(tenant);
      }
    };
    const standing = (): number => [...store.slots.values()].filter(({ closed }) => !closed).length;

    it('are given back where nothing is in flight or waits, once there are many', () => {
      start(tenants({ default: 6 }));
      ask('busy');
      granted();
      ask('waits');
      enterMany(0, MANY - 2);
      expect(standing()).to.equal(MANY);
      enterMany(MANY - 2, 1);
      expect([standing(), stand('busy'), stand('waits'), stand('t0')]).to.deep.equal([3, true, true, false]);
      store.have = 2;
      enterMany(0, 1);
      expect([stand('t0'), tenantOf('t0').lent], 'by slots of its own again').to.deep.equal([true, 2]);
    });

    it('are swept again only when there are twice as many', () => {
      start(tenants({ default: 6 }));
      for (let i = 0; i < MANY; i++) ask(`w${i}`);
      enterMany(0, MANY);
      expect(standing(), 'all of the first stand, and count twice').to.equal(2 * MANY);
      enterMany(MANY, 1);
      expect(standing()).to.equal(MANY + 1);
    });
  });
});
