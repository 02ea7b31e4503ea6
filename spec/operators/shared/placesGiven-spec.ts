import { expect } from 'chai';
import { DROPPED_UNSENT } from '../../../lib/core/outcome.ts';
import type { Credit } from '../../../lib/operators/shared/SharedLine.ts';
import { PlacesBench, requestRate } from '../../helpers/placesBench.ts';

describe('SharedPlaces gives', () => {
  it('what has come to whoever goes, who is told of pauses from then on', () => {
    const bench = new PlacesBench();
    const ticket = bench.wait();
    bench.arrange();
    const paused = bench.ask().request.onCooldown;
    paused?.(5, 'rate_limited');
    bench.ask().grant();
    expect([bench.serves, bench.places.came]).to.deep.equal([1, true]);
    const credit = bench.take(ticket) as Credit;
    expect(credit.ticket).to.equal(ticket);
    paused?.(6, 'rate_limited');
    const told: unknown[] = [];
    credit.onCooldown = (waitMs, reason) => void told.push([waitMs, reason]);
    paused?.(7, 'rate_limited');
    expect(told).to.deep.equal([[7, 'rate_limited']]);
    expect(bench.places.waiterOf(ticket)).to.equal(undefined);
    expect(bench.ask().released).to.deep.equal([]);
  });

  it('nothing to one for whom nothing has come', () => {
    const bench = new PlacesBench();
    const ticket = bench.wait();
    bench.arrange();
    expect(bench.take(ticket)).to.equal(undefined);
    expect(bench.route().open).to.have.length(0);
  });

  it('a tenant that waits for its own quota its turn again, as it has come', () => {
    const bench = new PlacesBench({ tenants: { acme: { requestsPerMinute: 60 } } });
    const ticket = bench.wait({ tenant: 'acme' });
    expect(bench.machine.next().kind).to.equal('wait');
    expect(ticket.from.parkedIn.size).to.equal(1);
    bench.arrange();
    bench.ask(0, 'm tenant:acme').grant();
    expect(ticket.from.parkedIn.size).to.equal(0);
    expect(bench.machine.next()).to.include({ kind: 'granted', ticket });
  });

  it('back what nobody takes, and asks for nothing for a while for whom it was', () => {
    const bench = new PlacesBench();
    bench.wait();
    bench.arrange();
    bench.ask().grant();
    bench.places.giveBack();
    expect(bench.ask().released).to.deep.equal([DROPPED_UNSENT]);
    bench.places.giveBack();
    expect(bench.ask().released).to.have.length(1);
    expect(bench.arrange()).to.equal(25);
    bench.runtime.advance(24);
    expect(bench.arrange()).to.equal(25);
    expect(bench.route().asks).to.have.length(1);
    bench.runtime.advance(1);
    expect(bench.arrange()).to.equal(Infinity);
    expect(bench.route().asks).to.have.length(2);
  });

  it('back what came for one that has left meanwhile', () => {
    const bench = new PlacesBench();
    const ticket = bench.wait();
    bench.arrange();
    bench.ask().grant();
    bench.places.leave(ticket);
    bench.places.giveBack();
    expect(bench.ask().released).to.deep.equal([DROPPED_UNSENT]);
    expect(bench.arrange()).to.equal(Infinity);
  });

  it('others their turn while one rests, and looks again when the first rest is over', () => {
    const bench = new PlacesBench();
    for (let i = 0; i < 2; i++) bench.wait();
    bench.arrange();
    bench.ask(0).grant();
    bench.places.giveBack();
    bench.runtime.advance(10);
    bench.ask(1).grant();
    bench.places.giveBack();
    bench.wait();
    expect(bench.arrange()).to.equal(25);
    expect(bench.route().asks).to.have.length(3);
    bench.runtime.advance(15);
    bench.arrange();
    expect(bench.route().asks).to.have.length(4);
  });
});

describe('SharedPlaces left', () => {
  it('are given up in the store, and are free for others', () => {
    const bench = new PlacesBench({ quota: { account: requestRate }, models: { m: { concurrency: { limit: 1 } } } });
    const [first] = [bench.wait(), bench.wait()];
    const target = bench.targetOf(first);
    bench.arrange();
    expect([target.asking, target.lineOf('').places]).to.deep.equal([1, 1]);
    bench.places.leave(first);
    expect([bench.ask().open, target.asking, target.lineOf('').places]).to.deep.equal([false, 0, 0]);
    bench.places.leave(first);
    expect([target.asking, target.lineOf('').places]).to.deep.equal([0, 0]);
    bench.arrange();
    expect(bench.ask(1).open).to.equal(true);
  });

  it('are never asked for where one leaves before', () => {
    const bench = new PlacesBench();
    const ticket = bench.wait();
    bench.places.leave(ticket);
    bench.arrange();
    expect(bench.targetOf(ticket).asking).to.equal(0);
  });

  it('are given up where one leaves within the asking, and what comes then goes back', () => {
    const bench = new PlacesBench({ quota: { account: requestRate }, maxInFlight: 1 });
    const ticket = bench.wait({ onQueued: () => bench.places.leave(ticket) });
    const target = bench.targetOf(ticket);
    target.lineOf('');
    bench.route().answer = (each) => each.queued(1);
    bench.arrange();
    expect([bench.ask().open, target.asking]).to.deep.equal([false, 0]);
    const next = bench.wait({ onQueued: () => bench.places.leave(next) });
    bench.route().answer = (each) => {
      each.queued(1);
      each.grant();
    };
    bench.arrange();
    bench.places.giveBack();
    expect(bench.ask(1).released).to.deep.equal([DROPPED_UNSENT]);
    expect([target.asking, target.lineOf('').places]).to.deep.equal([0, 0]);
    bench.route().answer = undefined;
    for (let i = 0; i < 2; i++) bench.wait();
    bench.arrange();
    expect(bench.route().open, 'as many as may').to.have.length(1);
  });
});
