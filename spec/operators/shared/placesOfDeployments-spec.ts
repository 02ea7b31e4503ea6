import { expect } from 'chai';
import type { AdmissionOptions, DeploymentOptions } from '../../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../../lib/limits/AdmissionPool.ts';
import { PlacesBench, requestRate, storeSays } from '../../helpers/placesBench.ts';
import type { ScriptedRoute } from '../../helpers/scriptedStore.ts';

/** The deployments a and b, whose lines are known to the store. */
function startTwo(
  options: AdmissionOptions = {},
  ofB: DeploymentOptions = {},
): { readonly bench: PlacesBench; readonly a: ScriptedRoute; readonly b: ScriptedRoute } {
  const deployments = [
    { client: 'a', quota: requestRate },
    { client: 'b', quota: requestRate, ...ofB },
  ];
  const bench = new PlacesBench({ models: { m: { deployments } }, ...options });
  for (const target of bench.targets.of(bench.machine.poolOf('m'))) target.lineOf('');
  return { bench, a: bench.route('m@a'), b: bench.route('m@b') };
}

describe('SharedPlaces of several deployments', () => {
  it('asks where the wait is shortest, as far as newcomers have been told', () => {
    const { bench, a, b } = startTwo();
    const [atA, atB] = bench.targets.of(bench.machine.poolOf('m'));
    atA?.lineOf('').waits(0, 300);
    atB?.lineOf('').waits(0, 200);
    bench.wait();
    bench.arrange();
    expect([a.open.length, b.open.length]).to.deep.equal([0, 1]);
    b.asks[0]?.queued(1, 400);
    expect([a.open.length, b.open.length], 'and then at the other one too').to.deep.equal([1, 1]);
    bench.runtime.advance(1);
    bench.wait();
    bench.arrange();
    expect([a.open.length, b.open.length]).to.deep.equal([2, 1]);
  });

  it('asks the least loaded where the waits are alike', () => {
    const { bench, a, b } = startTwo();
    const unit = (level: number) => ({ level, burst: 10, perMinute: 60 });
    a.shown = [{ layer: 'm@a', requests: unit(3), tokens: undefined }];
    b.shown = [{ layer: 'm@b', requests: unit(4), tokens: undefined }];
    bench.wait();
    bench.arrange();
    expect([a.open.length, b.open.length]).to.deep.equal([0, 1]);
    a.shown = [{ layer: 'm@a', requests: unit(5), tokens: undefined }];
    bench.wait();
    bench.arrange();
    expect([a.open.length, b.open.length]).to.deep.equal([1, 1]);
  });

  it('asks the first where nothing tells them apart', () => {
    const { bench, a } = startTwo();
    bench.wait();
    bench.arrange();
    expect(a.open).to.have.length(1);
  });

  it('counts one that has a place at both as one', () => {
    const { bench, a, b } = startTwo({ maxInFlight: 2 });
    bench.wait();
    bench.arrange();
    a.asks[0]?.queued(1, 100);
    bench.wait();
    bench.arrange();
    expect(a.open.length + b.open.length).to.equal(3);
    b.asks[0]?.refuse(storeSays());
    bench.wait();
    bench.arrange();
    expect(a.open.length + b.open.length, 'the first one still has one').to.equal(2);
  });

  it('asks no further for one that leaves as it is told that it waits', () => {
    const { bench, a, b } = startTwo();
    const ticket = bench.wait({ onQueued: () => bench.places.leave(ticket) });
    bench.arrange();
    a.asks[0]?.queued(3, 100);
    expect([a.open.length, b.asks.length]).to.deep.equal([0, 0]);
  });

  it('tells one that waits in the store, once', () => {
    const { bench, a, b } = startTwo();
    const told: unknown[] = [];
    bench.wait({ onQueued: (position, waitMs) => void told.push([position, waitMs]) });
    bench.wait();
    bench.arrange();
    a.asks[0]?.queued(7, 300);
    b.asks[0]?.queued(2, 100);
    expect(told).to.deep.equal([[7, 300]]);
  });

  it('refuses one only when all have refused it, with what the last one said', () => {
    const { bench, a, b } = startTwo();
    const ticket = bench.wait({ model: 'm' });
    bench.arrange();
    a.asks[0]?.refuse(storeSays('cost_too_large'));
    expect([bench.refused.length, bench.serves, bench.places.came]).to.deep.equal([0, 1, true]);
    bench.arrange();
    expect([a.asks.length, b.open.length], 'not where it has been refused').to.deep.equal([1, 1]);
    b.asks[0]?.refuse(storeSays('queue_timeout'));
    expect(bench.refused.map(([each, { code, model }]) => [each, code, model])).to.deep.equal([
      [ticket, 'queue_timeout', 'm'],
    ]);
    expect([bench.serves, bench.places.came]).to.deep.equal([2, true]);
  });

  it('leaves one that waits elsewhere too where it waits', () => {
    const { bench, a, b } = startTwo();
    const ticket = bench.wait();
    bench.arrange();
    a.asks[0]?.queued(1, 100);
    a.asks[0]?.refuse(storeSays());
    expect(bench.refused).to.have.length(0);
    expect(bench.places.waiterOf(ticket)?.places.size).to.equal(1);
    bench.arrange();
    expect([a.asks.length, b.asks.length]).to.deep.equal([1, 1]);
  });

  it('asks for the next one where the first has been refused and there is no room elsewhere', () => {
    const { bench, a, b } = startTwo({}, { concurrency: { limit: 1 } });
    const [first] = [bench.wait(), bench.wait()];
    bench.arrange();
    for (const each of a.asks) each.refuse(storeSays());
    bench.arrange();
    expect(b.open, 'one of them').to.have.length(1);
    bench.wait();
    bench.arrange();
    expect(a.open, 'the third').to.have.length(1);
    expect(bench.places.waiterOf(first)?.refused.size).to.equal(1);
  });

  describe('one of which refuses a call that then gets another one’s place there', () => {
    /** Waits at b, and at a by the place of one that went by what its own had brought. */
    const lentOn = (): ReturnType<typeof startTwo> & { readonly first: AdmissionTicket } => {
      const { bench, a, b } = startTwo();
      const [first, second] = [bench.wait(), bench.wait()];
      bench.arrange();
      for (const ask of a.open) ask.queued(1, 100);
      a.asks[0]?.grant();
      b.asks[0]?.queued(1, 100);
      a.asks[2]?.refuse(storeSays('queue_full'));
      expect(bench.take(second)?.ticket).to.equal(first);
      expect([a, b].map(({ asks }) => asks.map(({ open }) => open))).to.deep.equal([
        [false, true, false],
        [true, false],
      ]);
      return { bench, a, b, first };
    };

    it('lets it wait there when all others refuse it too', () => {
      const { bench, a, b, first } = lentOn();
      b.asks[0]?.refuse(storeSays());
      expect(bench.refused).to.deep.equal([]);
      a.asks[1]?.grant();
      expect(bench.take(first)?.ticket).to.equal(first);
    });

    it('asks there again when that place comes to nothing, and refuses it only then', () => {
      const { bench, a, b, first } = lentOn();
      b.asks[0]?.refuse(storeSays('cost_too_large'));
      a.asks[1]?.refuse(storeSays('queue_timeout'));
      bench.arrange();
      expect([bench.refused.length, a.asks[3]?.open]).to.deep.equal([0, true]);
      a.asks[3]?.refuse(storeSays('queue_full'));
      expect(bench.refused.map(([ticket, { code }]) => [ticket, code])).to.deep.equal([[first, 'queue_full']]);
    });

    it('asks there again when what that place has brought went back', () => {
      const { bench, a, b, first } = lentOn();
      b.asks[0]?.refuse(storeSays());
      a.asks[1]?.grant();
      bench.places.giveBack();
      bench.runtime.advance(25);
      bench.arrange();
      a.asks[3]?.grant();
      expect(bench.take(first)?.ticket).to.equal(first);
    });
  });
});
