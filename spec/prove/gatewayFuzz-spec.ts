import { expect } from 'chai';
import { gatewayFuzz } from './parts/gatewayFuzz.ts';

describe('a gateway that is sent wrong requests', function () {
  this.timeout(60_000);
  this.slow(10_000);

  it('answers each with the right status and a JSON error, and nothing of it stays', async () => {
    const report = await gatewayFuzz({ requests: 800, seed: 7, concurrency: 16 });
    expect(report.faults).to.deep.equal([]);
    expect(report).to.include({ faultCount: 0, uncaught: 0, callsLeft: 0, socketsLeft: 0, alive: true });
    expect(report.kinds.map(({ kind }) => kind)).to.have.length(15);
  });
});
