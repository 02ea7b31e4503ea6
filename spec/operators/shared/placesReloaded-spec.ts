import { expect } from 'chai';
import { PlacesBench, requestRate, tokenRate } from '../../helpers/placesBench.ts';

const two = {
  m: {
    deployments: [
      { client: 'a', quota: requestRate },
      { client: 'b', quota: requestRate },
    ],
  },
};

describe('SharedPlaces when other options hold', () => {
  it('stay where they lead to the same quota', () => {
    const bench = new PlacesBench({ models: two });
    bench.wait();
    bench.arrange();
    bench.reload({ models: two, maxInFlight: 9 });
    bench.arrange();
    expect(bench.ask(0, 'm@a').open).to.equal(true);
    expect(bench.targets.of(bench.machine.poolOf('m')).map(({ asking }) => asking)).to.deep.equal([1, 0]);
  });

  it('are left where a deployment is gone or its quota is another one, and asked for anew', () => {
    const bench = new PlacesBench({ models: two });
    bench.wait();
    bench.arrange();
    bench.reload({ models: { m: { deployments: two.m.deployments.slice(1) } } });
    expect(bench.ask(0, 'm@a').open).to.equal(false);
    bench.arrange();
    const [target] = bench.targets.of(bench.machine.poolOf('m'));
    expect(target?.asking).to.equal(1);
    bench.reload({ models: { m: { deployments: [{ client: 'b', quota: tokenRate }] } } });
    expect(target?.asking).to.equal(0);
    bench.arrange();
    expect(target?.asking).to.equal(1);
  });

  it('are counted by the priorities that hold now', () => {
    const priorities = (...order: string[]) => ({ order, levels: { later: { maxInFlight: 1 } } });
    const bench = new PlacesBench({ quota: { account: requestRate }, priorities: priorities('now', 'later') });
    bench.wait({ priority: 'later' });
    bench.arrange();
    bench.reload({ quota: { account: requestRate }, priorities: priorities('later') });
    bench.wait({ priority: 'later' });
    bench.arrange();
    expect(bench.route().open).to.have.length(1);
  });

  it('are asked for by the priorities that hold now, for those who still wait', () => {
    const bench = new PlacesBench({ quota: { account: requestRate }, priorities: { order: ['now', 'later'] } });
    const [stays, leaves] = [bench.wait({ priority: 'later' }), bench.wait({ priority: 'later' })];
    bench.reload({ quota: { account: requestRate }, priorities: { order: ['later'] } });
    bench.places.leave(leaves);
    bench.arrange();
    expect(bench.route().open).to.have.length(1);
    expect(bench.places.waiterOf(stays)?.places.size).to.equal(1);
  });
});
