import { expect } from 'chai';
import { concat, NEVER, Observable, of, throwError, timer } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { RateLimitHints, Usage } from '../../lib/core/hints.ts';
import type { Admitted, AdmissionPort, AdmissionRequest } from '../../lib/core/ports.ts';
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

describe('admit on a port that is not ours', () => {
  const runtime = virtualRuntime();
  const hints = { retryAfterMs: 5 } as RateLimitHints;
  const usage: Usage = {
    inputTokens: 1,
    outputTokens: 2,
    totalTokens: 3,
    cachedInputTokens: undefined,
    reasoningTokens: undefined,
  };

  /** Notes what it is told. `more`: what such a grant may leave out. */
  function noting(more: Partial<Admitted> = {}) {
    const log: unknown[][] = [];
    let asked: AdmissionRequest | undefined;
    let revoke: ((refusal: SluiceError) => void) | undefined;
    const note =
      (name: string) =>
      (...told: unknown[]): void =>
        void log.push([name, ...told]);
    const admitted: Admitted = {
      waitedMs: 7,
      reservedTokens: 0,
      deployment: { name: 'm', client: 'main', model: 'm' },
      onRevoke: (told) => (revoke = told),
      dispatched: note('dispatched'),
      responded: note('responded'),
      observe: note('observe'),
      settle: note('settle'),
      firstContent: note('firstContent'),
      end: ({ kind }, firstContentMs) => note('end')(kind, firstContentMs),
      release: ({ kind }, firstContentMs) => note('release')(kind, firstContentMs),
      ...more,
    };
    const port = {
      acquire: (request: AdmissionRequest) => {
        asked = request;
        return of(admitted);
      },
    } as unknown as AdmissionPort;
    return { log, port, request: () => asked!, revoke: (refusal: SluiceError) => revoke?.(refusal) };
  }

  /** Tells its scope everything that a source can. */
  const telling = (value: string): Observable<string> =>
    new Observable((subscriber) => {
      const scope = currentScope()!;
      scope.dispatched(0, true);
      scope.sent(3);
      scope.responded(200);
      scope.hints(hints);
      scope.usage(usage);
      subscriber.next(value);
      subscriber.complete();
      scope.closed();
    });

  it('passes on all that the source says of its attempt, in order', () => {
    const sent: unknown[] = [];
    const { log, port } = noting({ sent: () => sent.push('sent') });
    expect(seen(telling('a').pipe(admit(port, { runtime, model: 'm' }))).seen).to.deep.equal(['a', '|']);
    expect(sent).to.deep.equal(['sent']);
    expect(log).to.deep.equal([
      ['dispatched', true],
      ['responded', 200],
      ['observe', hints],
      ['settle', usage],
      ['firstContent'],
      ['end', 'success', 0],
      ['release', 'success', 0],
    ]);
  });

  it('does without what it need not have', () => {
    expect(seen(telling('a').pipe(admit(noting().port, { runtime, model: 'm' }))).seen).to.deep.equal(['a', '|']);
  });

  it('ends what runs when it is revoked', () => {
    const { log, port, revoke } = noting();
    const { seen: list } = seen(NEVER.pipe(admit(port, { runtime, model: 'm' })));
    const refusal = new SluiceError('circuit_open', 'revoked');
    revoke(refusal);
    expect(list).to.deep.equal([refusal]);
    expect(log.map(([name, kind]) => [name, kind])).to.deep.equal([
      ['dispatched', false],
      ['end', 'dropped'],
      ['release', 'dropped'],
    ]);
  });

  it('tells of waits, pauses and settlements in the name of the call', () => {
    const events: SluiceEvent[] = [];
    const { port, request } = noting();
    const scope = CallScope.start(runtime, { id: 'c1', conversation: 'talk', deadlineAtMs: 900 });
    runInScope(scope, () =>
      seen(NEVER.pipe(admit(port, { runtime, model: 'm', onEvent: (event) => events.push(event) }))),
    );
    expect(request()).to.include({ callId: 'c1', conversation: 'talk', deadlineAtMs: 900, model: 'm' });
    request().onCooldown?.(50, 'overloaded');
    request().onSettled?.({ reservedTokens: 4, usedTokens: 3, refundedTokens: 1 });
    request().onFact?.({ type: 'breaker.changed', breaker: 'm', from: 'closed', to: 'open', reason: 'error_ratio' });
    expect(
      events.map(({ callId: _, attempt: _a, model: _m, tenant: _t, conversation: _c, ...told }) => told),
    ).to.deep.equal([
      { type: 'granted', where: 'quota', waitedMs: 7, atMs: 0 },
      { type: 'cooldown', waitMs: 50, reason: 'overloaded', atMs: 0 },
      { type: 'settled', reservedTokens: 4, usedTokens: 3, refundedTokens: 1, atMs: 0 },
      { type: 'breaker.changed', breaker: 'm', from: 'closed', to: 'open', reason: 'error_ratio', atMs: 0 },
    ]);
  });

  for (const [options, message] of [
    [{ tenant: '' }, 'tenant must be a string that is not empty, got an empty string'],
    [{ priority: '' }, 'priority must be a string that is not empty, got an empty string'],
    [{ model: '' }, 'model must be a string that is not empty, got an empty string'],
  ] as const) {
    it(`refuses ${JSON.stringify(options)}`, () => {
      expect(() => admit(noting().port, options)).to.throw(message);
    });
  }

  it('asks for a model', () => {
    const [error] = seen(of(1).pipe(admit(noting().port, { runtime }))).seen;
    expect(error).to.have.property('message', 'model must be named by the options or the call, got undefined');
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
