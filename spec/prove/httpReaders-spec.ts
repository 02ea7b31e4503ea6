import { expect } from 'chai';
import { leaving, stalling } from './parts/httpReaders.ts';

describe('readers of streams over HTTP', function () {
  this.timeout(90_000);

  it('that leave in mid-stream leave nothing', async () => {
    const { outcomes, heapPerClient, upstreamAborts, ...left } = await leaving(60);

    expect(outcomes).to.deep.equal({ left: 120 });
    expect(upstreamAborts).to.equal(120);
    expect(left).to.deep.equal({ clients: 120, running: 0, timers: 0, upstreamRunning: 0, connections: 0 });
    expect(heapPerClient).to.be.below(5000);
  });

  it('that stop reading cost bounded memory, are dropped, and hold up nobody', async () => {
    const { outcomes, memoryPerClient, takenPerClient, bodyBytes, ...left } = await stalling(20, 10);

    // What the sockets of both ends hold is up to the system, and the answer so far is kept for `partial`.
    expect(takenPerClient).to.be.below(bodyBytes / 2);
    expect(memoryPerClient).to.be.below(takenPerClient + 1_000_000);
    expect(outcomes).to.deep.equal({ done: 30, dropped: 20 });
    expect(left).to.include({ running: 0, timers: 0, upstreamRunning: 0 });
    // Loose, as the machine may be busy: those that stall would hold the others up for seconds.
    expect(left.besideMs).to.be.below(left.aloneMs + 3000);
  });
});
