import { expect } from 'chai';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { AttemptRecord } from '../../lib/core/errors.ts';
import { Turn } from '../../lib/operators/Turn.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failed } from '../helpers/scripted.ts';

describe('Turn', () => {
  let runtime: VirtualRuntime;
  let scope: CallScope;
  let turn: Turn;

  beforeEach(() => {
    runtime = virtualRuntime();
    scope = CallScope.start(runtime, { model: 'm1' });
    turn = new Turn(scope, runtime);
  });

  const recorded = (attempt: number, fields: Partial<AttemptRecord> = {}): AttemptRecord => ({
    attempt,
    model: 'm1',
    code: 'overloaded',
    status: undefined,
    requestId: undefined,
    retryAfterMs: undefined,
    durationMs: 0,
    ...fields,
  });

  it('counts and records an attempt of a source that does not speak to the scope', () => {
    runtime.advance(7);
    const error = turn.failure(failed('overloaded', { status: 529, requestId: 'r1', retryAfterMs: 3 }));
    const record = recorded(1, { status: 529, requestId: 'r1', retryAfterMs: 3, durationMs: 7 });
    expect(scope.call).to.deep.include({ dispatched: 1, failed: [record] });
    expect(error.attempts).to.deep.equal([record]);
  });

  it('does not count twice what the source has counted but not recorded', () => {
    scope.dispatched(0);
    turn.failure(failed('overloaded'));
    expect(scope.call).to.deep.include({ dispatched: 1, failed: [recorded(1)] });
  });

  it('neither counts nor records what the source has recorded', () => {
    scope.dispatched(0);
    scope.call.failed.push(recorded(1, { code: 'connection' }));
    turn.failure(failed('overloaded'));
    expect(scope.call).to.deep.include({ dispatched: 1, failed: [recorded(1, { code: 'connection' })] });
  });

  for (const [name, thrown, counts] of [
    ['a failure of the provider', failed('connection'), true],
    ['what others threw for a reason of their own', new TypeError('a mistake'), true],
    ['a refusal', failed('circuit_open'), false],
    ['a cancel', failed('aborted'), false],
    ['a cancel that others threw', Object.assign(new Error('stop'), { name: 'AbortError' }), false],
  ] as const) {
    it(`${counts ? 'takes' : 'does not take'} ${name} for an attempt`, () => {
      turn.failure(thrown);
      expect(scope.call.dispatched).to.equal(counts ? 1 : 0);
      expect(scope.call.failed).to.have.length(counts ? 1 : 0);
    });
  }

  it('passes on the very error that names its model and every attempt', () => {
    scope.call.failed.push(recorded(1));
    const error = failed('overloaded', { model: 'm2', attempts: [recorded(1)] });
    expect(turn.failure(error)).to.equal(error);
  });

  it('names the attempts of the call where the error knows fewer', () => {
    scope.call.failed.push(recorded(1), recorded(2));
    const error = turn.failure(failed('circuit_open', { model: 'm1', attempts: [recorded(9)] }));
    expect(error.attempts).to.deep.equal([recorded(1), recorded(2)]);
  });

  it('leaves the error what it knows beyond the call', () => {
    const known = [recorded(1), recorded(2)];
    const error = turn.failure(failed('circuit_open', { attempts: known }));
    expect(error.attempts).to.deep.equal(known);
    expect(error.model).to.equal('m1');
  });

  it('names the model of the frame only where the error names none', () => {
    expect(turn.failure(failed('circuit_open')).model).to.equal('m1');
    expect(turn.failure(failed('circuit_open', { model: 'm2' })).model).to.equal('m2');
    const nameless = new Turn(CallScope.start(runtime), runtime);
    expect(nameless.failure(failed('circuit_open')).model).to.equal(undefined);
    expect(nameless.failure(failed('circuit_open', { model: 'm2' })).model).to.equal('m2');
  });

  it('reads an instant to wait for by the wall clock', () => {
    const headers = { 'retry-after': new Date(runtime.clock.wallNow() + 5000).toUTCString() };
    const { code, retryAfterMs } = turn.failure(Object.assign(new Error('429'), { status: 429, headers }));
    expect(code).to.equal('rate_limited');
    expect(retryAfterMs).to.be.within(4000, 5000);
  });
});
