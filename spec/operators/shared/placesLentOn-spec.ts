import { expect } from 'chai';
import { PlacesBench, requestRate, storeSays, tokenRate } from '../../helpers/placesBench.ts';

describe('SharedPlaces of one that goes by what another one’s place has brought', () => {
  it('passes its place on, if it is as good', () => {
    const bench = new PlacesBench({ quota: { account: { ...requestRate, ...tokenRate } } });
    const [first, second] = [bench.wait({ tokens: 5 }), bench.wait({ tokens: 5 })];
    bench.arrange();
    bench.ask(0).grant();
    expect(bench.take(second)?.ticket).to.equal(first);
    expect(bench.ask(1).open).to.equal(true);
    bench.arrange();
    expect(bench.route().asks, 'nobody asks anew').to.have.length(2);
    bench.ask(1).grant();
    expect(bench.take(first)?.ticket).to.equal(first);
  });

  it('takes no refusal of that place for one of its own', () => {
    const bench = new PlacesBench();
    const [first, second] = [bench.wait(), bench.wait()];
    bench.arrange();
    bench.ask(0).grant();
    bench.take(second);
    bench.ask(1).refuse(storeSays());
    expect(bench.refused).to.have.length(0);
    bench.arrange();
    expect(bench.route().asks).to.have.length(3);
    bench.ask(2).refuse(storeSays());
    expect(bench.refused.map(([ticket]) => ticket)).to.deep.equal([first]);
  });

  for (const [what, own] of [
    ['fewer tokens', { tokens: 4 }],
    ['fewer requests', { tokens: 5, requests: 0.5 }],
  ] as const) {
    it(`leaves a place for ${what}, and asks anew`, () => {
      const bench = new PlacesBench({ quota: { account: { ...requestRate, ...tokenRate } } });
      const [first, second] = [bench.wait({ tokens: 5 }), bench.wait(own)];
      bench.arrange();
      bench.ask(0).grant();
      expect(bench.take(second)?.ticket).to.equal(first);
      expect(bench.ask(1).open).to.equal(false);
      bench.arrange();
      expect(bench.route().asks[2]?.request.cost).to.deep.equal({ requests: 1, tokens: 5, explicit: true });
    });
  }

  it('leaves it where the other one has a place again', () => {
    const bench = new PlacesBench();
    const [first, second] = [bench.wait(), bench.wait()];
    bench.arrange();
    bench.ask(0).grant();
    bench.arrange();
    expect(bench.route().open, 'before anybody has looked at what came').to.have.length(2);
    bench.take(second);
    expect([1, 2].map((at) => bench.ask(at).open)).to.deep.equal([false, true]);
    expect(bench.places.waiterOf(first)?.places.size).to.equal(1);
    expect(bench.targetOf(first).asking).to.equal(1);
  });

  it('leaves it where the other one has left', () => {
    const bench = new PlacesBench();
    const [first, second] = [bench.wait(), bench.wait()];
    bench.arrange();
    bench.ask(0).grant();
    bench.places.leave(first);
    bench.take(second);
    expect([bench.ask(1).open, bench.targetOf(second).asking]).to.deep.equal([false, 0]);
  });

  it('has none to pass on if it never asked', () => {
    const bench = new PlacesBench({ quota: { account: requestRate }, maxInFlight: 1 });
    const [first, second] = [bench.wait(), bench.wait()];
    bench.arrange();
    bench.ask(0).grant();
    bench.take(second);
    expect(bench.targetOf(first).asking).to.equal(0);
    bench.arrange();
    expect(bench.ask(1).open).to.equal(true);
  });

  it('leaves it where the other one’s tenant has a quota of its own by now', () => {
    const bench = new PlacesBench();
    const [first, second] = [bench.wait({ tenant: 'acme' }), bench.wait()];
    bench.arrange();
    bench.ask(0).grant();
    bench.reload({ quota: { account: requestRate }, tenants: { acme: requestRate } });
    expect(bench.take(second)?.ticket).to.equal(first);
    expect(bench.ask(1).open).to.equal(false);
    bench.arrange();
    expect(bench.route('account m tenant:acme').open).to.have.length(1);
  });
});
