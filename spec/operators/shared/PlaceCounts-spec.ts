import { expect } from 'chai';
import type { Admission } from '../../../lib/limits/Admission.ts';
import type { AdmissionTicket } from '../../../lib/limits/AdmissionPool.ts';
import { PlaceCounts } from '../../../lib/operators/shared/PlaceCounts.ts';
import type { Waiter } from '../../../lib/operators/shared/Waiter.ts';

describe('PlaceCounts', () => {
  interface Bounds {
    readonly all?: number;
    readonly lent?: number;
    readonly inFlight?: number;
    readonly ofLevel?: number;
    readonly lentToLevel?: number;
    readonly levelInFlight?: number;
  }
  const machineOf = ({ all = 100, lent = 100, inFlight = 0, ofLevel = 100, ...bounds }: Bounds = {}): Admission =>
    ({
      rules: { maxInFlight: all, levels: [{ name: 'urgent', maxInFlight: ofLevel }, { name: 'batch' }] },
      levels: {
        lent: new Map(bounds.lentToLevel === undefined ? [] : [['urgent', bounds.lentToLevel]]),
        inFlight: bounds.levelInFlight === undefined ? [] : [bounds.levelInFlight],
      },
      lent,
      inFlight,
    }) as unknown as Admission;
  const ticketOf = (tenant = 't', level = 0, { most = 100, lent = 100, inFlight = 0 } = {}): AdmissionTicket =>
    ({
      level,
      tenant,
      from: { name: tenant, rules: { maxInFlight: most }, lent, inFlight },
    }) as unknown as AdmissionTicket;

  it('leaves room by what is bound, lent and in flight, whichever is least', () => {
    const room = (bounds: Bounds, ticket = ticketOf()): number => new PlaceCounts().room(machineOf(bounds), ticket);
    expect(room({})).to.equal(100);
    expect(room({ all: 9, inFlight: 2 })).to.equal(7);
    expect(room({ all: 9, lent: 5, inFlight: 2 })).to.equal(3);
    expect(room({ ofLevel: 6, levelInFlight: 1 })).to.equal(5);
    expect(room({ ofLevel: 6, lentToLevel: 4, levelInFlight: 1 })).to.equal(3);
    expect(room({}, ticketOf('t', 0, { most: 8, inFlight: 3 }))).to.equal(5);
    expect(room({}, ticketOf('t', 0, { most: 8, lent: 4, inFlight: 3 }))).to.equal(1);
    expect(room({ ofLevel: 6 }, ticketOf('t', 1))).to.equal(100);
    expect(room({}, ticketOf('t', 7))).to.equal(100);
  });

  it('takes off the places that are in lines: of all, of the priority and of the tenant', () => {
    const counts = new PlaceCounts();
    for (const [tenant, level] of [
      ['t', 0],
      ['t', 1],
      ['u', 0],
    ] as const) {
      counts.add(ticketOf(tenant, level), 1);
    }
    expect(counts.room(machineOf({ all: 10 }), ticketOf())).to.equal(7);
    expect(counts.room(machineOf({ ofLevel: 10 }), ticketOf())).to.equal(8);
    expect(counts.room(machineOf(), ticketOf('t', 0, { most: 10 }))).to.equal(8);
    expect(counts.room(machineOf(), ticketOf('u', 0, { most: 10 }))).to.equal(9);
    counts.add(ticketOf('t', 0), -1);
    expect(counts.room(machineOf({ all: 10 }), ticketOf())).to.equal(8);
    expect(counts.room(machineOf({ ofLevel: 10 }), ticketOf())).to.equal(9);
    expect(counts.room(machineOf(), ticketOf('t', 0, { most: 10 }))).to.equal(9);
  });

  it('counts anew those that have a place', () => {
    const counts = new PlaceCounts();
    counts.add(ticketOf('gone', 1), 1);
    const waiter = (places: number): Waiter =>
      ({ ticket: ticketOf(), places: new Map(Array.from({ length: places }, (_, n) => [n, {}])) }) as unknown as Waiter;
    counts.recount([waiter(0), waiter(1), waiter(2)]);
    expect(counts.room(machineOf({ all: 10 }), ticketOf())).to.equal(8);
    expect(counts.room(machineOf({ ofLevel: 10 }), ticketOf())).to.equal(8);
    expect(counts.room(machineOf(), ticketOf('gone', 1, { most: 10 }))).to.equal(10);
  });
});
