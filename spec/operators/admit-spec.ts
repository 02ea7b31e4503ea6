import { expect } from 'chai';
import { concat, NEVER, of, throwError, timer } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { admit, admitTo } from '../../lib/operators/admit.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { marbles } from '../helpers/marbles.ts';
import { seen } from '../helpers/seen.ts';
import { speakingSource } from '../helpers/speakingSource.ts';

describe('admit', () => {
  it(
    'holds a source back until there is room for it',
    marbles((m) => {
      const gate = admit<string>(createAdmission({ maxInFlight: 1 }, m.runtime), { model: 'm', runtime: m.runtime });
      m.expectObservable(m.cold('-a-|').pipe(gate)).toBe('-a-|');
      m.expectObservable(m.cold('-b-|').pipe(gate)).toBe('----b-|');
    }),
  );

  it('keeps the slot until the body reader has settled, at most a second, but judges at once', () => {
    for (const [closesAfterMs, freeAtMs] of [
      [300, 300],
      [Infinity, 1000],
    ] as const) {
      const runtime = virtualRuntime();
      const admission = createAdmission(
        { maxInFlight: 1, models: { m: { breaker: { consecutiveFailures: 1 } } } },
        runtime,
      );
      const failing = throwError(() => new SluiceError('server_error', 'broken', { status: 500 }));
      const gate = admit<never>(admission, { model: 'm', runtime });
      const { seen: list } = seen(speakingSource(runtime, failing, { closesAfterMs }).pipe(gate));
      expect(list[0]).to.have.property('code', 'server_error');
      expect(admission.snapshot().models['m']?.deployments[0]?.breaker.state).to.equal('open');
      runtime.advance(freeAtMs - 1);
      expect(admission.snapshot().inFlight).to.equal(1);
      runtime.advance(1);
      expect(admission.snapshot().inFlight).to.equal(0);
    }
  });

  it('gives all back when unsubscribed while waiting, and the slot when running', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const gate = admit<never>(admission, { model: 'm', runtime });
    const running = seen(NEVER.pipe(gate)).subscription;
    seen(NEVER.pipe(gate)).subscription.unsubscribe();
    expect(admission.snapshot()).to.deep.include({ inFlight: 1, waiting: 0 });
    running.unsubscribe();
    expect(admission.snapshot()).to.deep.include({ inFlight: 0, waiting: 0 });
    expect(runtime.pending).to.equal(0);
  });

  it('ends with circuit_open what waits for something further up as the breaker opens', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ models: { m: { breaker: { consecutiveFailures: 1 } } } }, runtime);
    const gate = admit<string>(admission, { model: 'm', runtime });
    const closed = createAdmission({ maxInFlight: 1 }, runtime);
    seen(NEVER.pipe(admit(closed, { model: 'm', runtime })));
    const { seen: list } = seen(of('late').pipe(admit(closed, { model: 'm', runtime }), gate));
    seen(throwError(() => new SluiceError('connection', 'gone')).pipe(gate));
    expect(list).to.have.length(1);
    expect(list[0]).to.have.property('code', 'circuit_open');
    expect(admission.snapshot().inFlight).to.equal(0);
  });

  it('reads model, tenant and priority from the call, unless it is told others', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({}, runtime);
    const scope = CallScope.start(runtime, { model: 'n', tenant: 'acme', priority: 'batch' });
    runInScope(scope, () => seen(NEVER.pipe(admit(admission, { runtime }))));
    expect(admission.snapshot().models).to.have.keys('n');
    expect(admission.snapshot().tenants).to.deep.equal({ acme: { inFlight: 1, waiting: 0 } });
    expect(admission.snapshot().priorities['batch']).to.deep.equal({ inFlight: 1 });
    const options = { runtime, model: 'm', tenant: 'other', priority: 'interactive' };
    runInScope(scope, () => seen(NEVER.pipe(admit(admission, options))));
    expect(admission.snapshot().tenants).to.have.keys('acme', 'other');
    expect(admission.snapshot().priorities['interactive']).to.deep.equal({ inFlight: 1 });
    expect(seen(of(1).pipe(admit(admission, { runtime }))).seen[0]).to.have.property('code', 'invalid_option');
  });

  it('takes cost and maxWaitMs as told', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ quota: { account: { tokensPerMinute: 600 } } }, runtime);
    seen(NEVER.pipe(admit(admission, { runtime, model: 'm', cost: () => 600 })));
    const { seen: list } = seen(
      of(1).pipe(admit(admission, { runtime, model: 'm', cost: { tokens: 10 }, maxWaitMs: 10 })),
    );
    expect(list[0]).to.have.property('code', 'queue_timeout');
    expect(() => admit(admission, { cost: -1 })).to.throw(SluiceError, 'cost');
    expect(() => admit(admission, { maxWaitMs: NaN })).to.throw(SluiceError, 'maxWaitMs');
    expect(() => admit(admission, { model: '' })).to.throw(SluiceError, 'model');
  });

  it('reports what happens to the call', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const events: SluiceEvent[] = [];
    const gate = admit<unknown>(admission, { runtime, model: 'm', onEvent: (event) => events.push(event) });
    seen(concat(timer(50, runtime.scheduler as never), of('a')).pipe(gate));
    seen(of('b').pipe(gate));
    runtime.run();
    expect(events.map(({ type }) => type)).to.deep.equal(['granted', 'queued', 'settled', 'granted', 'settled']);
  });

  it('serves a synchronous source that take stops, and starts afresh at each subscription', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    const source = of(1, 2, 3).pipe(admit(admission, { runtime, model: 'm' }));
    expect(seen(source).seen).to.deep.equal([1, 2, 3, '|']);
    expect(seen(source).seen).to.deep.equal([1, 2, 3, '|']);
    expect(admission.snapshot().inFlight).to.equal(0);
  });
});

describe('admitTo', () => {
  it('makes the source for the deployment that was chosen', () => {
    const runtime = virtualRuntime();
    const deployments = [
      { client: 'main', concurrency: { limit: 1 } },
      { client: 'azure', model: 'm-eu', concurrency: { limit: 1 } },
    ];
    const admission = createAdmission({ models: { m: { deployments } } }, runtime);
    const ask = ({ client, model }: { client: string; model: string }) => concat(of(`${client} ${model}`), NEVER);
    const list = [1, 2].flatMap(() => seen(admitTo(admission, ask, { runtime, model: 'm' })).seen);
    expect(list).to.deep.equal(['main m', 'azure m-eu']);
  });

  it('emits what making the source throws, and holds nothing then', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({}, runtime);
    const fault = new Error('no such client');
    const { seen: list } = seen(
      admitTo(
        admission,
        () => {
          throw fault;
        },
        { runtime, model: 'm' },
      ),
    );
    expect(list).to.deep.equal([fault]);
    expect(admission.snapshot().inFlight).to.equal(0);
  });
});
