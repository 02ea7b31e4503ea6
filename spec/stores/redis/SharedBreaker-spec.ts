import { expect } from 'chai';
import { SluiceError } from '../../../lib/core/errors.ts';
import { DROPPED, SUCCESS } from '../../../lib/core/outcome.ts';
import type { Outcome } from '../../../lib/core/outcome.ts';
import type { BreakerPass, BreakerPort } from '../../../lib/core/ports.ts';
import { breakerPortContract } from '../../contract/breakerPort.ts';
import { BreakerWorld } from './breakerWorld.ts';

const FAILED: Outcome = { kind: 'failure', error: new SluiceError('server_error', 'failed') };
const BRITTLE = { consecutiveFailures: 2, openMs: 500, halfOpenMaxProbes: 1, halfOpenMaxMs: 60_000, rampMs: 0 };

interface Asked {
  pass?: BreakerPass;
  error?: SluiceError;
}

describe('SharedBreaker', () => {
  let world: BreakerWorld;
  beforeEach(() => {
    world = new BreakerWorld();
  });

  const pass = (ms: number): Promise<void> => world.runtime.advanceAsync(ms);
  const ask = (breaker: BreakerPort): Asked => {
    const asked: Asked = {};
    breaker.acquire({}).subscribe({
      next: (given) => (asked.pass = given),
      error: (error: SluiceError) => (asked.error = error),
    });
    return asked;
  };
  const asked = async (breaker: BreakerPort): Promise<Asked> => {
    const given = ask(breaker);
    await pass(5);
    return given;
  };
  const end = async (breaker: BreakerPort, outcome: Outcome): Promise<void> => {
    const { pass: given } = await asked(breaker);
    given?.dispatched();
    given?.release(outcome);
    // Successes wait for company.
    await pass(25);
  };
  const trip = async (breaker: BreakerPort): Promise<void> => {
    await end(breaker, FAILED);
    await end(breaker, FAILED);
  };

  describe('as a breaker', () => {
    breakerPortContract(() => {
      const own = new BreakerWorld();
      return {
        openMs: 200,
        make: (options) => own.add(options).breaker,
        nowMs: () => own.runtime.clock.now(),
        pass: (ms) => own.runtime.advanceAsync(ms),
      };
    });
  });

  it('opens for all when several together have had enough', async () => {
    const [one, two] = [world.add(BRITTLE).breaker, world.add(BRITTLE).breaker];
    await end(one, FAILED);
    await end(two, FAILED);
    await end(one, SUCCESS);

    expect((await asked(one)).error?.code).to.equal('circuit_open');
    expect((await asked(two)).error?.code).to.equal('circuit_open');
  });

  it('holds up no call while it is known to be closed', async () => {
    const { breaker } = world.add(BRITTLE);
    await end(breaker, SUCCESS);

    expect(ask(breaker).pass).to.not.be.undefined;
  });

  it('refuses without asking while it is known to be open', async () => {
    const { breaker } = world.add(BRITTLE);
    await trip(breaker);
    const before = world.calls;
    for (let i = 0; i < 100; i++) expect(ask(breaker).error?.retryAfterMs).to.be.within(400, 500);
    await pass(100);

    expect(world.calls).to.equal(before);
  });

  it('asks before it lets pass where nothing was heard for a third of the lease', async () => {
    const [one, two] = [world.add(BRITTLE).breaker, world.add(BRITTLE).breaker];
    await end(two, SUCCESS);
    await trip(one);
    ask(two).pass?.dispatched();
    await pass(301);
    const { error, pass: given } = ask(two);
    expect([error, given]).to.deep.equal([undefined, undefined]);
    await pass(5);

    expect((await asked(two)).error?.code).to.equal('circuit_open');
  });

  it('tells what became of many in few calls', async () => {
    const { breaker } = world.add({ ...BRITTLE, consecutiveFailures: 1000 });
    await asked(breaker);
    const given = Array.from({ length: 200 }, () => ask(breaker).pass);
    const before = world.calls;
    for (const each of given) {
      each?.dispatched();
      each?.release(SUCCESS);
    }
    await pass(60);

    expect(world.calls - before).to.equal(1);
    expect(breaker.snapshot().calls).to.equal(200);
  });

  it('takes back in every process what was let pass and not sent', async () => {
    const [one, two] = [world.add(BRITTLE).breaker, world.add(BRITTLE).breaker];
    const { pass: waiting } = await asked(two);
    let revoked: SluiceError | undefined;
    waiting?.onRevoke((refusal) => (revoked = refusal));
    await trip(one);
    await pass(310);

    expect(revoked?.code).to.equal('circuit_open');
  });

  it('tells those who listen in every process, once', async () => {
    const seen: string[][] = [[], []];
    const [one, two] = seen.map(
      (facts) =>
        world.add({ ...BRITTLE, onFact: (fact) => fact.type === 'breaker.changed' && facts.push(fact.to) }).breaker,
    );
    await end(two!, SUCCESS);
    await trip(one!);
    await pass(510);
    await end(two!, SUCCESS);
    await pass(400);
    await end(one!, SUCCESS);

    expect(seen[0]).to.deep.equal(['open', 'closed']);
    expect(seen[1]).to.deep.equal(['open', 'half_open', 'closed']);
  });

  it('lets one probe go at a time in all processes, and another one once a killed prober has lost its lease', async () => {
    const [one, two] = [world.add(BRITTLE), world.add(BRITTLE)];
    await trip(one.breaker);
    await pass(510);
    expect((await asked(one.breaker)).pass).to.not.be.undefined;
    one.kill();
    await pass(600);
    expect((await asked(two.breaker)).error?.code).to.equal('circuit_open');
    await pass(400);

    expect((await asked(two.breaker)).pass).to.not.be.undefined;
  });

  it('keeps the place of a probe that runs for longer than its lease', async () => {
    const [one, two] = [world.add(BRITTLE).breaker, world.add(BRITTLE).breaker];
    await trip(one);
    await pass(510);
    const { pass: probe } = await asked(one);
    probe?.dispatched();
    await pass(5000);

    expect((await asked(two)).error?.code).to.equal('circuit_open');
  });

  it('needs no timer while nothing is held, and none for what was sent', async () => {
    const { breaker } = world.add(BRITTLE);
    const { pass: given } = await asked(breaker);
    given?.dispatched();
    expect(world.runtime.pending).to.equal(0);
    given?.release(SUCCESS);
    await pass(60);

    expect(world.runtime.pending).to.equal(0);
  });

  it('takes other options, and goes on from where it is', async () => {
    const { breaker } = world.add(BRITTLE);
    await end(breaker, FAILED);
    breaker.reload({ ...BRITTLE, consecutiveFailures: 3 });
    await end(breaker, FAILED);
    expect(breaker.snapshot().state).to.equal('closed');
    await end(breaker, FAILED);

    expect(breaker.snapshot().state).to.equal('open');
  });

  it('ends those who wait with closed, and all that come', async () => {
    const { breaker } = world.add(BRITTLE);
    const waiting = ask(breaker);
    breaker.close();

    expect(waiting.error?.code).to.equal('closed');
    expect((await asked(breaker)).error?.code).to.equal('closed');
  });

  describe('while the store is lost', () => {
    it('goes on by itself, also where limits refuse', async () => {
      const { breaker } = world.add(BRITTLE);
      world.lose();
      const waiting = ask(breaker);
      await pass(60);
      expect(waiting.pass).to.not.be.undefined;
      await trip(breaker);

      expect((await asked(breaker)).error?.code).to.equal('circuit_open');
    });

    it('goes on from an open breaker', async () => {
      const { breaker } = world.add(BRITTLE);
      await trip(breaker);
      world.lose();
      await pass(510);
      const probe = ask(breaker);
      await pass(60);

      expect(probe.pass).to.not.be.undefined;
      expect((await asked(breaker)).error?.code).to.equal('circuit_open');
      probe.pass?.dispatched();
      probe.pass?.release(SUCCESS);
      expect(breaker.snapshot().state).to.equal('closed');
    });

    it('counts what had been let pass before, and what could not be told', async () => {
      const { breaker } = world.add(BRITTLE);
      const [first, second] = [await asked(breaker), await asked(breaker)];
      for (const { pass: given } of [first, second]) given?.dispatched();
      world.lose();
      first.pass?.release(FAILED);
      await pass(60);
      expect(breaker.snapshot().consecutiveFailures).to.equal(1);
      second.pass?.release(FAILED);

      expect(breaker.snapshot().state).to.equal('open');
    });

    it('takes back what was not sent when its own breaker opens', async () => {
      const { breaker } = world.add(BRITTLE);
      const { pass: waiting } = await asked(breaker);
      let revoked = false;
      waiting?.onRevoke(() => (revoked = true));
      world.lose();
      await end(breaker, FAILED);
      await pass(60);
      await end(breaker, FAILED);

      expect(revoked).to.be.true;
    });

    it('brings the trouble that it knows of back to a store that knows of none', async () => {
      const [one, two] = [world.add(BRITTLE).breaker, world.add(BRITTLE).breaker];
      await end(two, SUCCESS);
      const { pass: long } = await asked(one);
      long?.dispatched();
      world.lose();
      await end(one, FAILED);
      await pass(60);
      await trip(one);
      expect(one.snapshot().state).to.equal('open');
      world.comeBack();
      await pass(250);
      long?.release(DROPPED);

      expect(one.snapshot().state).to.equal('open');
      await pass(100);
      expect((await asked(two)).error?.code).to.equal('circuit_open');
    });
  });

  it('stays open where the store has forgotten all', async () => {
    const { breaker } = world.add(BRITTLE);
    await trip(breaker);
    world.forgetAll();
    await pass(501);
    const probe = await asked(breaker);
    expect(probe.pass).to.not.be.undefined;

    expect((await asked(breaker)).error?.code).to.equal('circuit_open');
  });
});
