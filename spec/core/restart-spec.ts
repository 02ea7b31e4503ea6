import { expect } from 'chai';
import { isRestart, restart } from '../../lib/core/restart.ts';

describe('restart', () => {
  it('makes a marker that says why and which model goes on', () => {
    const marker = restart('stream_truncated', 'gpt-5.5');
    expect({ ...marker }).to.deep.equal({ kind: 'restart', code: 'stream_truncated', model: 'gpt-5.5' });
    expect(isRestart(marker)).to.equal(true);
  });

  it('is told from a chunk that looks like it', () => {
    for (const value of [{ kind: 'restart', code: 'timeout', model: undefined }, {}, null, undefined, 'restart']) {
      expect(isRestart(value)).to.equal(false);
    }
  });

  it('is known by a brand that another copy of the library shares', () => {
    expect(isRestart({ [Symbol.for('sluice.restart')]: true })).to.equal(true);
  });
});
