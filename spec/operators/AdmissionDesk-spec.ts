import { expect } from 'chai';
import type { Subscription } from 'rxjs';
import sinon from 'sinon';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceFact } from '../../lib/core/events.ts';
import { DROPPED_UNSENT } from '../../lib/core/outcome.ts';
import type { Admitted, AdmissionRequest } from '../../lib/core/ports.ts';
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
      machine,
      at,
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

  it('grants at once where nobody waits, and looks once whether there is more to do', () => {
    const { machine, ask, next, heard } = desk({});
    const asked = sinon.spy(machine, 'ask');
    ask('a');
    expect([heard, asked.callCount, next.callCount]).to.deep.equal([['a went at 0'], 0, 1]);
  });

  it('hands out one after the other, also what is asked for as another is granted', () => {
    const { at, machine, heard, ask } = desk({});
    at.acquire({ model: 'm', cost }).subscribe((admitted) => {
      ask('b', { model: 'other' });
      admitted.release(DROPPED_UNSENT);
      heard.push(`a has gone, ${machine.waiting} waits`);
    });
    expect(heard).to.deep.equal(['a has gone, 1 waits', 'b went at 0']);
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

  describe('with a breaker', () => {
    const breaker = { consecutiveFailures: 1, openMs: 1000, halfOpenMaxMs: 500, halfOpenShare: 1 };

    interface Asked {
      readonly subscription: Subscription;
      admitted: Admitted | undefined;
      code: string | undefined;
    }

    /** One that has failed once, and may be probed. */
    function broken(onFact: (fact: SluiceFact) => void = () => {}) {
      const runtime = virtualRuntime();
      const machine = new Admission({ models: { m: { breaker } } }, runtime.clock, runtime.random);
      const at = new AdmissionDesk(machine, runtime, onFact);
      const ask = (more: Partial<AdmissionRequest> = {}): Asked => {
        const asked: Partial<Asked> = {};
        const subscription = at.acquire({ model: 'm', cost, ...more }).subscribe({
          next: (admitted) => {
            asked.admitted = admitted;
            admitted.onRevoke(({ code }) => (asked.code = `revoked, ${code}`));
          },
          error: ({ code }: SluiceError) => (asked.code = code),
        });
        return Object.assign(asked, { subscription }) as Asked;
      };
      const error = new SluiceError('server_error', 'it failed', { status: 500 });
      ask().admitted?.release({ kind: 'failure', error });
      runtime.advance(breaker.openMs);
      return { at, runtime, machine, ask };
    }

    it('takes a probe back that was not sent in time, and tells of it to all', () => {
      const facts: SluiceFact[] = [];
      const { runtime, ask } = broken((fact) => facts.push(fact));
      const probe = ask();
      facts.length = 0;
      runtime.advance(breaker.halfOpenMaxMs - 1);
      expect([probe.code, facts]).to.deep.equal([undefined, []]);
      runtime.advance(1);
      expect(probe.code).to.equal('revoked, circuit_open');
      expect(facts).to.deep.equal([
        { type: 'breaker.changed', breaker: 'm', from: 'half_open', to: 'open', reason: 'probe_stuck' },
      ]);
    });

    it('gives back what was granted to one that a listener has unsubscribed meanwhile', () => {
      const { at, machine, ask } = broken((fact) => {
        if (fact.type === 'breaker.changed' && fact.to === 'half_open') leaving.unsubscribe();
      });
      let leaving: Pick<Subscription, 'unsubscribe'> = { unsubscribe: () => {} };
      machine.lent = 0;
      const gone = ask();
      leaving = gone.subscription;
      machine.lent = 1;
      at.serve();
      const next = ask();
      expect([gone.admitted, machine.waiting]).to.deep.equal([undefined, 0]);
      expect(next.admitted, 'the place of the probe is free').to.not.equal(undefined);
      next.admitted?.release(DROPPED_UNSENT);
      expect(machine.inFlight).to.equal(0);
    });

    it('grants all the same where a listener throws', () => {
      const { ask } = broken(() => {
        throw new Error('of the listener');
      });
      const probe = ask({
        onFact: () => {
          throw new Error('of the request');
        },
      });
      expect(probe.admitted).to.not.equal(undefined);
    });
  });

  it('goes on at once where one that had to make room has left before it could be told', () => {
    const { at, runtime, heard, ask } = desk({
      quota: { account: { ...account, maxWaiting: 1 } },
      priorities: { order: ['urgent', 'batch'] },
    });
    ask('a', { priority: 'urgent' });
    const batch = at
      .acquire({ model: 'm', cost, priority: 'batch' })
      .subscribe({ error: ({ code }: SluiceError) => heard.push(`b ${code}`) });
    // Granted at once, and until that has been dealt with nobody else is told of anything.
    at.acquire({ model: 'other', cost: { ...cost, requests: 0 }, priority: 'urgent' }).subscribe(() => {
      ask('c', { priority: 'urgent' });
      batch.unsubscribe();
    });
    expect(heard).to.deep.equal(['a went at 0', 'c queued at 2']);
    runtime.advance(1500);
    expect(heard).to.deep.equal(['a went at 0', 'c queued at 2', 'c went at 1000']);
  });
});
