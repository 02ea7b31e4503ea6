import { expect } from 'chai';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import type { Admitted, BreakerPass, Grant } from '../../../lib/core/ports.ts';
import { SharedAdmitted } from '../../../lib/operators/shared/SharedAdmitted.ts';

describe('SharedAdmitted', () => {
  const log: string[] = [];
  beforeEach(() => void (log.length = 0));

  /** Notes what it is told, under that name. */
  const noting = <T extends object>(name: string, facts: object, ...methods: string[]): T =>
    Object.fromEntries([
      ...Object.entries(facts),
      ...methods.map((method) => [
        method,
        (...told: unknown[]) => void log.push([name, method, ...told.map((each) => JSON.stringify(each))].join(' ')),
      ]),
    ]) as T;
  const attempt = ['dispatched', 'sent', 'responded', 'observe', 'settle', 'firstContent', 'end', 'release'];
  const deployment = { name: 'm@main', client: 'main', model: 'm' };
  const local = (): Admitted => noting('local', { waitedMs: 4, reservedTokens: 9, deployment }, ...attempt);
  const grant = (): Grant => noting('store', {}, ...attempt);
  const pass = (): BreakerPass => noting('breaker', {}, 'onRevoke', 'dispatched', 'firstContent', 'release');
  const released = (): void => void log.push('released');

  const live = (admitted: SharedAdmitted): readonly string[] => {
    admitted.dispatched(true);
    admitted.sent();
    admitted.responded(200);
    admitted.observe({ slowDown: true } as never);
    admitted.settle({ totalTokens: 3 } as never);
    admitted.firstContent();
    admitted.release(SUCCESS, 5);
    return log;
  };
  const success = JSON.stringify(SUCCESS);

  it('is as the machine here has granted it', () => {
    const { waitedMs, reservedTokens, deployment: place } = new SharedAdmitted(local(), grant(), released);
    expect([waitedMs, reservedTokens, place]).to.deep.equal([4, 9, deployment]);
  });

  it('tells the store and its breaker, where they decide, and here what is counted here', () => {
    const admitted = new SharedAdmitted(local(), grant(), released);
    admitted.passes(pass());
    expect(live(admitted)).to.deep.equal([
      'breaker dispatched',
      'store dispatched true',
      'store sent',
      'store responded 200',
      'local responded 200',
      'store observe {"slowDown":true}',
      'store settle {"totalTokens":3}',
      'local settle {"totalTokens":3}',
      'breaker firstContent',
      `breaker release ${success}`,
      `store release ${success}`,
      `local end ${success} 5`,
      `local release ${success} 5`,
      'released',
    ]);
  });

  it('tells the machine here where nothing of the store decides', () => {
    expect(live(new SharedAdmitted(local(), undefined, released))).to.deep.equal([
      'local dispatched true',
      'local sent',
      'local responded 200',
      'local observe {"slowDown":true}',
      'local settle {"totalTokens":3}',
      `local end ${success} 5`,
      `local release ${success} 5`,
      'released',
    ]);
  });

  it('is revoked by the breaker, if there is one, and by nothing else', () => {
    const admitted = new SharedAdmitted(local(), grant(), released);
    admitted.onRevoke(() => {});
    expect(log).to.deep.equal([]);
    admitted.passes(pass());
    admitted.onRevoke(() => {});
    expect(log.map((line) => line.trim())).to.deep.equal(['breaker onRevoke']);
  });

  it('does with ports that leave out what they may', () => {
    const small = (name: string, facts: object): never =>
      noting(name, facts, 'dispatched', 'responded', 'observe', 'settle', 'end', 'release');
    const grantOf: Grant = noting('store', {}, 'dispatched', 'observe', 'settle', 'release');
    const admitted = new SharedAdmitted(small('local', {}), grantOf, released);
    admitted.passes(noting('breaker', {}, 'onRevoke', 'dispatched', 'release'));
    expect(() => live(admitted)).not.to.throw();
    log.length = 0;
    expect(() => live(new SharedAdmitted(small('local', {}), undefined, released))).not.to.throw();
  });
});
