import { expect } from 'chai';
import type { Exchange } from '../../../lib/emulator/model/Exchange.ts';
import { RequestLog } from '../../../lib/emulator/model/RequestLog.ts';

function exchange(ordinal: number, changes: Partial<Exchange> = {}): Exchange {
  return {
    ordinal,
    requestId: `req_${ordinal}`,
    model: 'm',
    conversation: undefined,
    stream: true,
    promptTokens: 1,
    reservedTokens: 0,
    verdict: 'admitted',
    refusal: undefined,
    fault: undefined,
    steps: [].values(),
    sentTokens: () => 0,
    end: () => {},
    ...changes,
  };
}

const nothing = { retryCount: undefined };

describe('RequestLog', () => {
  it('keeps order and overlap of each conversation', () => {
    const log = new RequestLog(100);
    const [a, b, c] = [1, 2, 3].map((ordinal) =>
      log.arrived(exchange(ordinal, { conversation: 'c' }), 'chat', ordinal, nothing),
    );
    if (!a || !b || !c) return expect.fail();
    log.ended(b, 'answered', 4);
    log.ended(a, 'aborted', 5);
    log.ended(a, 'answered', 6);
    const { conversations } = log.report();
    expect(conversations['c']).to.deep.equal({
      requests: 3,
      admitted: 3,
      answered: 1,
      aborted: 1,
      maxConcurrent: 3,
      arrivals: [1, 2, 3],
      completions: [2, 1],
    });
    expect(log.report()).to.include({ running: 1, requests: 3, aborts: 1 });
  });

  it('tells 429s apart by why they were sent', () => {
    const log = new RequestLog(100);
    const refused = { verdict: 'refused', refusal: 'tokens' } as const;
    log.responded(log.arrived(exchange(1, refused), 'chat', 0, nothing), 429);
    log.responded(log.arrived(exchange(2, { fault: 'reply' }), 'chat', 0, nothing), 429);
    log.responded(log.arrived(exchange(3), 'chat', 0, nothing), 200);
    const report = log.report();
    expect(report.rateLimited).to.deep.equal({ total: 2, tokens: 1, fault: 1 });
    expect(report.statuses).to.deep.equal({ 200: 1, 429: 2 });
    expect(report.refusals).to.deep.equal({ tokens: 1 });
    expect(report.faults).to.deep.equal({ reply: 1 });
    expect(report.admitted).to.equal(2);
  });

  it('measures an abort from the last write, or from arrival', () => {
    const log = new RequestLog(100);
    const silent = log.arrived(exchange(1), 'chat', 10, nothing);
    log.ended(silent, 'aborted', 25);
    const streaming = log.arrived(exchange(2), 'chat', 10, nothing);
    log.responded(streaming, 200);
    log.wrote(streaming, 100, 20);
    log.ended(streaming, 'aborted', 25);
    expect(log.report().log.map(({ phase, abortedAfterMs }) => [phase, abortedAfterMs])).to.deep.equal([
      ['headers', 15],
      ['first_content', 5],
    ]);
    expect(log.report().abortsByPhase).to.deep.equal({ headers: 1, first_content: 1 });
    expect(log.report().bytes).to.equal(100);
  });

  it('keeps a bounded number of requests and names, and counts all', () => {
    const log = new RequestLog(10);
    for (let i = 1; i <= 1_000; i++) {
      const record = log.arrived(exchange(i, { conversation: `c${i}` }), 'chat', i, nothing);
      log.ended(record, 'answered', i);
    }
    const report = log.report();
    expect(report.log.length).to.be.within(10, 11);
    expect(report.log.length + report.dropped).to.equal(1_000);
    expect(report.requests).to.equal(1_000);
    expect(Object.keys(report.conversations)).to.have.length(10);
    expect(report.models['m']?.arrivals).to.have.length(10);
  });
});
