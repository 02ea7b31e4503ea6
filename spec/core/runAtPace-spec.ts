import { expect } from 'chai';
import type { Demand } from '../../lib/core/attempt.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentPace, runAtPace } from '../../lib/core/pace.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const runtime = virtualRuntime();
const demand = (): Demand => ({ ready: () => undefined });

describe('runAtPace', () => {
  it('gives its pace to every call that starts in it, and to none after it', () => {
    const slow = demand();
    const [first, second] = runAtPace(slow, () => [CallScope.start(runtime), CallScope.start(runtime)]);
    expect([first?.demand, second?.demand]).to.deep.equal([slow, slow]);
    expect(CallScope.start(runtime).demand).to.be.undefined;
  });

  it('lets a consumer within another have its own', () => {
    const [outer, inner] = [demand(), demand()];
    runAtPace(outer, () => {
      expect(runAtPace(inner, currentPace)).to.equal(inner);
      expect(runAtPace(undefined, currentPace)).to.be.undefined;
      expect(currentPace()).to.equal(outer);
    });
  });

  it('ends also where the work throws', () => {
    expect(() =>
      runAtPace(demand(), () => {
        throw new Error('thrown');
      }),
    ).to.throw('thrown');
    expect(currentPace()).to.be.undefined;
  });

  it('stays in the frames of a call further up, unless one is given', () => {
    const [ambient, own] = [demand(), demand()];
    const scope = runAtPace(ambient, () => CallScope.start(runtime));
    expect(scope.with({ model: 'm' }).forNextAttempt().demand).to.equal(ambient);
    expect(scope.with({ demand: own }).demand).to.equal(own);
    expect(runAtPace(ambient, () => CallScope.start(runtime, { demand: own })).demand).to.equal(own);
  });
});
