import { expect } from 'chai';
import { Subject, takeUntil } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceFact } from '../../lib/core/events.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { BreakerPass, BreakerPort } from '../../lib/core/ports.ts';
import { createBreaker, createBreakers } from '../../lib/operators/createBreaker.ts';
import type { CreateBreakerOptions } from '../../lib/operators/createBreaker.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const FAILED: Outcome = { kind: 'failure', error: new SluiceError('server_error', 'failed') };
const brittle = { consecutiveFailures: 1, openMs: 50, halfOpenMaxProbes: 1, halfOpenMaxMs: 200, rampMs: 0 };

describe('createBreaker', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  const breakerWith = (options: CreateBreakerOptions = {}): BreakerPort =>
    createBreaker({ ...brittle, ...options }, runtime);

  const acquire = (breaker: BreakerPort, model?: string, onFact?: (fact: SluiceFact) => void): BreakerPass => {
    let pass: BreakerPass | undefined;
    breaker.acquire({ model, onFact }).subscribe((given) => (pass = given));
    if (pass === undefined) throw new Error('no pass');
    return pass;
  };

  const refusalOf = (breaker: BreakerPort): SluiceError => {
    let refusal: unknown;
    breaker.acquire({ model: 'm' }).subscribe({ error: (error: unknown) => (refusal = error) });
    return refusal as SluiceError;
  };

  it('asks nothing before it is subscribed to', () => {
    const breaker = breakerWith();
    acquire(breaker).release(FAILED);
    runtime.advance(50);
    breaker.acquire({});

    expect(breaker.snapshot().state).to.equal('open');
  });

  it('emits one pass and completes', () => {
    const seen: string[] = [];
    breakerWith()
      .acquire({})
      .subscribe({ next: () => seen.push('pass'), complete: () => seen.push('|') });

    expect(seen).to.deep.equal(['pass', '|']);
  });

  it('refuses while open, with its name, the model and the wait', () => {
    const breaker = breakerWith({ name: 'gpt' });
    acquire(breaker).release(FAILED);
    runtime.advance(10);
    const refusal = refusalOf(breaker);

    expect(refusal).to.include({
      code: 'circuit_open',
      source: 'local',
      model: 'm',
      retryAfterMs: 40,
      retryable: false,
    });
    expect(refusal.while).to.equal('entry');
    expect(refusal.message).to.equal('the circuit breaker gpt is open');
    expect(refusalOf(breakerWith())).to.be.undefined;
  });

  it('counts a pass once, however often it is released', () => {
    const breaker = breakerWith({ consecutiveFailures: 2 });
    const pass = acquire(breaker);
    pass.release(FAILED);
    pass.release(FAILED);

    expect(breaker.snapshot()).to.include({ state: 'closed', consecutiveFailures: 1 });
  });

  describe('reports a change', () => {
    const facts: SluiceFact[] = [];
    beforeEach(() => void (facts.length = 0));

    it('to the listener of its own and to the call that brought it about, the state having changed', () => {
      const states: string[] = [];
      const breaker: BreakerPort = breakerWith({
        name: 'gpt',
        onFact: (fact) => {
          facts.push(fact);
          states.push(breaker.snapshot().state);
        },
      });
      const own: SluiceFact[] = [];
      const pass = acquire(breaker, 'm', (fact) => own.push(fact));
      acquire(breaker, 'm', () => expect.fail('it is not of this call'));
      pass.release(FAILED);

      const opened = {
        type: 'breaker.changed',
        breaker: 'gpt',
        from: 'closed',
        to: 'open',
        reason: 'consecutive_failures',
      };
      expect(facts).to.deep.equal([opened]);
      expect(own).to.deep.equal([opened]);
      expect(states).to.deep.equal(['open']);

      runtime.advance(50);
      acquire(breaker, 'm', (fact) => own.push(fact)).release(SUCCESS);
      expect(own.slice(1).map((fact) => 'to' in fact && fact.to)).to.deep.equal(['half_open', 'closed']);
      expect(states).to.deep.equal(['open', 'half_open', 'closed']);
    });

    it('and ignores a listener that throws', () => {
      const breaker = breakerWith({
        onFact: () => {
          throw new Error('listener');
        },
      });
      acquire(breaker, 'm', (fact) => facts.push(fact)).release(FAILED);

      expect(facts).to.have.length(1);
    });

    it('and gives the pass back when the listener unsubscribes before it is handed over', () => {
      const breaker = breakerWith();
      acquire(breaker).release(FAILED);
      runtime.advance(50);
      const stop = new Subject<void>();
      const passes: BreakerPass[] = [];
      const stopped = breaker.acquire({ onFact: () => stop.next() }).pipe(takeUntil(stop));
      stopped.subscribe((pass) => passes.push(pass));
      expect(passes).to.deep.equal([]);
      expect(breaker.snapshot().state).to.equal('half_open');

      acquire(breaker).release(SUCCESS);
      expect(breaker.snapshot().state).to.equal('closed');
    });
  });

  describe('when it opens', () => {
    it('revokes the passes that are not sent yet, having changed and reported it, and no others', () => {
      const log: string[] = [];
      const breaker: BreakerPort = breakerWith({ onFact: () => log.push(`now ${breaker.snapshot().state}`) });
      const [waiting, sent, released, failing] = ['a', 'b', 'c', 'd'].map((model) => acquire(breaker, model));
      for (const [name, pass] of Object.entries({ waiting, sent, released, failing })) {
        pass!.onRevoke((refusal) => log.push(`${name} ${refusal.code} ${refusal.retryAfterMs} ${refusal.model}`));
      }
      sent!.dispatched();
      failing!.dispatched();
      released!.release(DROPPED);
      failing!.release(FAILED);

      expect(log).to.deep.equal(['now open', 'waiting circuit_open 50 a']);
    });

    it('revokes a pass whose holder says only later what to do then', () => {
      const breaker = breakerWith();
      const pass = acquire(breaker);
      acquire(breaker).release(FAILED);
      const revoked: string[] = [];
      pass.onRevoke(({ code }) => revoked.push(code));

      expect(revoked).to.deep.equal(['circuit_open']);
    });

    it('revokes none that has been released, also where its holder says only later what to do', () => {
      const breaker = breakerWith();
      const pass = acquire(breaker);
      acquire(breaker).release(FAILED);
      pass.release(DROPPED);
      pass.onRevoke(() => expect.fail('it was revoked'));
    });

    it('revokes each pass once and takes its release for nothing', () => {
      const breaker = breakerWith();
      const pass = acquire(breaker);
      let revoked = 0;
      pass.onRevoke(() => {
        revoked++;
        pass.release(FAILED);
      });
      acquire(breaker).release(FAILED);
      runtime.advance(50);
      acquire(breaker).release(FAILED);

      expect(revoked).to.equal(1);
    });

    it('does not revoke what a listener acquires in that moment', () => {
      const revoked: string[] = [];
      let second: BreakerPass | undefined;
      const breaker: BreakerPort = breakerWith({
        onFact: (fact) => {
          if (!('to' in fact) || fact.to !== 'half_open' || second) return;
          breaker.acquire({}).subscribe({
            next: (pass) => {
              second = pass;
              pass.onRevoke(() => revoked.push('second'));
            },
            error: () => revoked.push('refused'),
          });
        },
        halfOpenMaxProbes: 2,
        halfOpenShare: 1,
      });
      acquire(breaker).release(FAILED);
      runtime.advance(50);
      acquire(breaker);

      expect(second).not.to.be.undefined;
      expect(revoked).to.deep.equal([]);
    });
  });

  describe('while probes wait to be sent', () => {
    const halfOpen = (): { readonly breaker: BreakerPort; readonly probe: BreakerPass } => {
      const breaker = breakerWith();
      acquire(breaker).release(FAILED);
      runtime.advance(50);
      return { breaker, probe: acquire(breaker) };
    };

    it('revokes one that is stuck though nobody asks', () => {
      const { breaker, probe } = halfOpen();
      const revoked: (number | undefined)[] = [];
      probe.onRevoke(({ retryAfterMs }) => revoked.push(retryAfterMs));
      expect(runtime.pending).to.equal(1);
      runtime.advance(199);
      expect(revoked).to.deep.equal([]);

      runtime.advance(1);
      expect(revoked).to.deep.equal([100]);
      expect(breaker.snapshot()).to.include({ state: 'open', retryAfterMs: 100 });
      expect(runtime.pending).to.equal(0);
    });

    for (const [name, act] of [
      ['sent', (probe: BreakerPass) => probe.dispatched()],
      ['released', (probe: BreakerPass) => probe.release(DROPPED)],
      ['done', (probe: BreakerPass) => probe.release(SUCCESS)],
    ] as const) {
      it(`has no timer left once the probe is ${name}`, () => {
        act(halfOpen().probe);
        expect(runtime.pending).to.equal(0);
      });
    }

    it('has no timer left for one that was released unsent while another runs', () => {
      const breaker = breakerWith({ halfOpenMaxProbes: 2, halfOpenShare: 1 });
      acquire(breaker).release(FAILED);
      runtime.advance(50);
      const [first, second] = [acquire(breaker), acquire(breaker)];
      second.dispatched();
      expect(runtime.pending).to.equal(1);

      first.release(DROPPED);
      expect(runtime.pending).to.equal(0);
    });

    it('has no timer while it is closed or open', () => {
      const breaker = breakerWith();
      const pass = acquire(breaker);
      expect(runtime.pending).to.equal(0);
      pass.release(FAILED);
      expect(runtime.pending).to.equal(0);
    });
  });

  it('throws for wrong options when it is made', () => {
    expect(() => createBreaker({ openMs: 0 }))
      .to.throw(SluiceError)
      .with.property('code', 'invalid_option');
    expect(() => createBreakers({ openMs: 0 }))
      .to.throw(SluiceError)
      .with.property('code', 'invalid_option');
    expect(() => createBreakers({ maxKeys: 0 })).to.throw('maxKeys must be');
  });
});

describe('createBreakers', () => {
  it('keeps one breaker a key, named for it', () => {
    const facts: SluiceFact[] = [];
    const breakers = createBreakers({ ...brittle, onFact: (fact) => facts.push(fact) }, virtualRuntime());
    breakers
      .of('a')
      .acquire({})
      .subscribe((pass) => pass.release(FAILED));

    expect(breakers.of('a').snapshot().state).to.equal('open');
    expect(breakers.of('b').snapshot().state).to.equal('closed');
    expect(facts[0]).to.include({ breaker: 'a' });
    expect(() => breakers.of('')).to.throw('key must be');
  });

  it('starts over a key that it has forgotten, and forgets none whose pass is held', () => {
    const breakers = createBreakers({ ...brittle, maxKeys: 1 }, virtualRuntime());
    const held: BreakerPass[] = [];
    breakers
      .of('a')
      .acquire({})
      .subscribe((pass) => held.push(pass));
    breakers.of('b').snapshot();
    held[0]!.release(FAILED);
    expect(breakers.of('a').snapshot().state).to.equal('open');

    breakers.of('c').snapshot();
    expect(breakers.of('a').snapshot().state).to.equal('closed');
  });
});
