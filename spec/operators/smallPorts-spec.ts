import { expect } from 'chai';
import { Observable, of } from 'rxjs';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { BreakerPort, QuotaPort } from '../../lib/core/ports.ts';
import { circuitBreak } from '../../lib/operators/circuitBreak.ts';
import { throttleByBucket } from '../../lib/operators/throttleByBucket.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { recording } from '../helpers/scripted.ts';

/** Ports of others may leave out what ours have besides. */
describe('ports that know the least', () => {
  const runtime = virtualRuntime();

  /** Tells its scope everything that a source can. */
  const telling = new Observable<string>((subscriber) => {
    const scope = currentScope()!;
    scope.dispatched(0, true);
    scope.sent(0);
    scope.responded(200);
    subscriber.next('a');
    subscriber.complete();
    scope.closed();
  });

  it('do for throttleByBucket', () => {
    const log: string[] = [];
    const quota: QuotaPort = {
      acquire: () =>
        of({
          waitedMs: 0,
          reservedTokens: 0,
          dispatched: () => log.push('dispatched'),
          observe: () => {},
          settle: () => {},
          release: ({ kind }) => log.push(kind),
        }),
      observe: () => {},
      snapshot: () => ({ waiting: 0, cooldownMs: 0, layers: [] }),
    };
    expect(recording(telling.pipe(throttleByBucket(quota, { runtime })))).to.deep.include({
      values: ['a'],
      done: true,
    });
    expect(log).to.deep.equal(['dispatched', 'success']);
  });

  it('do for circuitBreak', () => {
    const log: string[] = [];
    const breaker: BreakerPort = {
      acquire: () =>
        of({
          onRevoke: () => {},
          dispatched: () => log.push('dispatched'),
          release: ({ kind }) => log.push(kind),
        }),
      snapshot: () => ({ state: 'closed', retryAfterMs: 0, consecutiveFailures: 0, calls: 0, failures: 0 }),
    };
    expect(recording(telling.pipe(circuitBreak(breaker, { runtime })))).to.deep.include({ values: ['a'], done: true });
    expect(log).to.deep.equal(['dispatched', 'success']);
  });
});
