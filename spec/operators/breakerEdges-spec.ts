import { expect } from 'chai';
import { combineLatest, throwError } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceFact } from '../../lib/core/events.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { BreakerPass, BreakerPort } from '../../lib/core/ports.ts';
import { createBreaker } from '../../lib/operators/createBreaker.ts';
import type { CreateBreakerOptions } from '../../lib/operators/createBreaker.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const FAILED: Outcome = { kind: 'failure', error: new SluiceError('server_error', 'failed') };
const brittle = { consecutiveFailures: 1, openMs: 50, halfOpenMaxProbes: 1, halfOpenMaxMs: 200, rampMs: 0 };

/** What `createBreaker` tells of passes that are out while its state changes. */
describe('createBreaker at its edges', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  const breakerWith = (options: CreateBreakerOptions = {}): BreakerPort =>
    createBreaker({ ...brittle, ...options }, runtime);

  const acquire = (breaker: BreakerPort): BreakerPass => {
    let pass: BreakerPass | undefined;
    breaker.acquire({}).subscribe((given) => (pass = given));
    if (pass === undefined) throw new Error('no pass');
    return pass;
  };
  const refused = (breaker: BreakerPort, onFact?: (fact: SluiceFact) => void): SluiceError | undefined => {
    let refusal: SluiceError | undefined;
    breaker.acquire({ onFact }).subscribe({ error: (error: SluiceError) => (refusal = error) });
    return refusal;
  };
  const trip = (breaker: BreakerPort): void => {
    acquire(breaker).release(FAILED);
    runtime.advance(50);
  };

  it('asks nothing for one that has gone before it asked', () => {
    const breaker = breakerWith();
    trip(breaker);
    const failed = throwError(() => new Error('failed'));
    combineLatest([failed, breaker.acquire({})]).subscribe({ error: () => {} });
    expect(breaker.snapshot().state).to.equal('open');
  });

  it('tells a call that it refuses of what it found out by asking', () => {
    const breaker = breakerWith();
    trip(breaker);
    acquire(breaker).dispatched();
    runtime.advance(200);
    const told: unknown[] = [];
    refused(breaker, (fact) => fact.type === 'breaker.changed' && told.push([fact.to, fact.reason]));
    expect(told).to.deep.equal([['open', 'probe_stuck']]);
  });

  it('names its state in words', () => {
    const breaker = breakerWith();
    trip(breaker);
    acquire(breaker);
    expect(refused(breaker)?.message).to.equal('the circuit breaker breaker is half-open');
  });

  it('revokes nothing when it closes', () => {
    const breaker = breakerWith({ halfOpenMaxProbes: 2, halfOpenShare: 1 });
    trip(breaker);
    const [first, second] = [acquire(breaker), acquire(breaker)];
    second.onRevoke(() => expect.fail('it was revoked'));
    first.release(SUCCESS);
    expect(breaker.snapshot().state).to.equal('closed');
  });

  it('has no more to do with a pass that it has revoked', () => {
    const breaker = breakerWith({ consecutiveFailures: 2 });
    const kept = acquire(breaker);
    acquire(breaker).release(FAILED);
    acquire(breaker).release(FAILED);
    let revoked = 0;
    kept.onRevoke(() => revoked++);
    runtime.advance(50);
    acquire(breaker).dispatched();
    expect(runtime.pending).to.equal(0);
    expect(revoked).to.equal(1);
  });
});
