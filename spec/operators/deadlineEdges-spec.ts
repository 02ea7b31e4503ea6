import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { concat, NEVER, of } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { AttemptRecord } from '../../lib/core/errors.ts';
import { after } from '../../lib/operators/after.ts';
import { withDeadline } from '../../lib/operators/withDeadline.ts';
import { withSignal } from '../../lib/operators/withSignal.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { recording } from '../helpers/scripted.ts';

describe('deadlines and signals at their edges', () => {
  let runtime: VirtualRuntime;
  beforeEach(() => {
    runtime = virtualRuntime();
  });

  it('let a stream go on whose first value came in the tick of the subscription', () => {
    const seen = recording(concat(of('a'), NEVER).pipe(withDeadline(50, { runtime })));
    expect(runtime.pending).to.equal(0);
    runtime.advance(100);
    expect(seen).to.deep.include({ values: ['a'], error: undefined });
  });

  it('leave no timer for a source that ends at once', () => {
    expect(recording(of<string>().pipe(withDeadline(50, { runtime }))).done).to.be.true;
    expect(runtime.pending).to.equal(0);
  });

  it('say that the deadline has passed, and what the last of the attempts said of waiting', () => {
    const record = (attempt: number, retryAfterMs: number): AttemptRecord => ({
      attempt,
      model: 'm1',
      code: 'overloaded',
      status: undefined,
      requestId: undefined,
      retryAfterMs,
      durationMs: 0,
    });
    for (const waits of [[5], [5, 6, 7]]) {
      const scope = CallScope.start(runtime, { model: 'm1' });
      scope.call.failed.push(...waits.map((waitMs, n) => record(n + 1, waitMs)));
      const seen = recording(NEVER.pipe(withDeadline(50, { runtime })), scope);
      runtime.advance(50);
      expect(seen.error?.message).to.equal('the deadline passed before the answer came');
      expect(seen.error?.retryAfterMs).to.equal(waits.at(-1));
    }
  });

  it('say that the signal was aborted, and leave no listener on it', () => {
    const controller = new AbortController();
    const seen = recording(NEVER.pipe(withSignal(controller.signal, { runtime })));
    const other = recording(NEVER.pipe(withSignal(controller.signal, { runtime })));
    expect(getEventListeners(controller.signal, 'abort')).to.have.length(2);
    other.subscription.unsubscribe();
    expect(getEventListeners(controller.signal, 'abort')).to.have.length(1);
    controller.abort();
    expect(seen.error?.message).to.equal('the signal of the call was aborted');
    expect(getEventListeners(controller.signal, 'abort')).to.have.length(0);
  });

  it('name what is no signal', () => {
    expect(() => withSignal({} as AbortSignal)).to.throw('signal must be an AbortSignal, got an object');
  });

  it('wait once', () => {
    const seen = recording(after(runtime, 30));
    runtime.advance(29);
    expect(seen).to.deep.include({ values: [], done: false });
    runtime.advance(1);
    expect(seen).to.deep.include({ values: [undefined], done: true });
    recording(after(runtime, 30)).subscription.unsubscribe();
    expect(runtime.pending).to.equal(0);
  });
});
