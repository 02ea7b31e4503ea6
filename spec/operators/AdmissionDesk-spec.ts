import { expect } from 'chai';
import sinon from 'sinon';
import type { AdmissionRequest } from '../../lib/core/ports.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import { AdmissionDesk } from '../../lib/operators/AdmissionDesk.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

describe('AdmissionDesk', () => {
  const cost = { requests: 1, tokens: 10, explicit: false };

  function desk(options: AdmissionOptions) {
    const runtime = virtualRuntime();
    const machine = new Admission(options, runtime.clock, runtime.random);
    const next = sinon.spy(machine, 'next');
    const heard: string[] = [];
    const at = new AdmissionDesk(machine, runtime, undefined);
    return {
      runtime,
      next,
      heard,
      ask(name: string, more: Partial<AdmissionRequest> = {}): void {
        const onQueued = (position: number): void => void heard.push(`${name} queued at ${position}`);
        at.acquire({ model: 'm', cost, onQueued, ...more }).subscribe({
          next: () => heard.push(`${name} went at ${runtime.clock.now()}`),
          error: ({ code }: { code: string }) => heard.push(`${name} ${code} at ${runtime.clock.now()}`),
        });
      },
    };
  }

  const account = { requestsPerMinute: 60, burstRequests: 1, arrivalMarginMs: 0 };

  it('looks for whom to serve once, however many come behind others of their kind', () => {
    const { ask, next, heard } = desk({ quota: { account } });
    for (const name of ['a', 'b']) ask(name);
    const before = next.callCount;
    for (let i = 0; i < 100; i++) ask(`c${i}`);
    expect(next.callCount).to.equal(before);
    expect(heard.slice(0, 4)).to.deep.equal(['a went at 0', 'b queued at 1', 'c0 queued at 2', 'c1 queued at 3']);
  });

  it('looks anew for one of another tenant, priority, model or size, who may go before them', () => {
    const others: Partial<AdmissionRequest>[] = [
      { tenant: 'other' },
      { priority: 'urgent' },
      { model: 'other' },
      { cost: { ...cost, tokens: 1000 } },
    ];
    for (const other of others) {
      const { ask, next } = desk({ quota: { account }, priorities: { order: ['urgent', 'batch'] } });
      for (const name of ['a', 'b']) ask(name, { priority: 'batch' });
      const before = next.callCount;
      ask('c', { priority: 'batch', ...other });
      expect(next.callCount, JSON.stringify(other)).to.be.above(before);
    }
  });

  it('lets one that may wait for less time than those before it go in time', () => {
    const { ask, runtime, heard } = desk({ quota: { account } });
    for (const name of ['a', 'b', 'c']) ask(name, { maxWaitMs: 30_000 });
    ask('d', { maxWaitMs: 3500 });
    runtime.advance(2500);
    ask('e', { maxWaitMs: 20_000 });
    runtime.advance(10_000);
    expect(heard.filter((line) => !line.includes('queued'))).to.deep.equal([
      'a went at 0',
      'b went at 1000',
      'c went at 2000',
      'd went at 3000',
      'e went at 4000',
    ]);
  });

  it('tells the one that had to make room for one behind others', () => {
    const order = ['urgent', 'batch'];
    const { ask, heard } = desk({ quota: { account: { ...account, maxWaiting: 2 } }, priorities: { order } });
    ask('a', { priority: 'urgent' });
    ask('b', { priority: 'urgent' });
    ask('c', { priority: 'batch' });
    ask('d', { priority: 'urgent' });
    expect(heard).to.include('c queue_full at 0');
  });
});
