import { expect } from 'chai';
import { systemRuntime } from '../../lib/index.ts';
import { runSoak } from './parts/soak.ts';

describe('many calls through everything', () => {
  it('end as they should, and leave nothing behind', async function () {
    this.timeout(60_000);
    const { calls, answered, cancelled, failed, attempts, samples, left } = await runSoak(1_500, systemRuntime);

    expect(calls).to.equal(1_500);
    expect(cancelled).to.equal(150);
    expect(answered + cancelled + (failed['stream_truncated'] ?? 0)).to.equal(calls);
    expect(Object.keys(failed)).to.have.members(failed['stream_truncated'] === undefined ? [] : ['stream_truncated']);
    expect(attempts).to.be.above(calls);
    expect(left).to.equal(0);
    expect((samples.at(-1)?.heapBytes ?? NaN) - (samples[2]?.heapBytes ?? NaN)).to.be.below(4e6);
  });
});
