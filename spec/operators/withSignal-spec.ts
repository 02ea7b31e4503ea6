import { expect } from 'chai';
import { catchError, EMPTY, Observable, of, range, take, throwError } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { SluiceError } from '../../lib/core/errors.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { withSignal } from '../../lib/operators/withSignal.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { marbles } from '../helpers/marbles.ts';
import { failed, recording, scripted, speaking, thrown } from '../helpers/scripted.ts';

/** A signal that tells how many listen. */
function counted(): { readonly controller: AbortController; readonly signal: AbortSignal; readonly listeners: number } {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  return {
    controller,
    signal,
    get listeners() {
      return listeners;
    },
  };
}

describe('withSignal', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  it(
    'ends a call with an error when the signal is aborted, and the source with it',
    marbles((m) => {
      const controller = new AbortController();
      m.runtime.scheduler.schedule(() => controller.abort(), 5);
      const source = m.cold('--a----b-|');
      const result = source.pipe(
        withSignal(controller.signal),
        catchError((error: unknown) => of((error as SluiceError).code)),
      );
      m.expectObservable(result).toBe('--a--(x|)', { a: 'a', x: 'aborted' });
      m.expectSubscriptions(source.subscriptions).toBe('^----!');
    }),
  );

  it('lets nothing start where the signal has been aborted already', () => {
    const source = scripted(runtime, { values: ['a'] });
    const { error } = recording(source.source.pipe(withSignal(AbortSignal.abort('enough'))));
    expect(error?.code).to.equal('aborted');
    expect(source.log).to.deep.equal([]);
  });

  it('is the source itself without a signal', () => {
    const source = of(1);
    expect(source.pipe(withSignal(undefined))).to.equal(source);
  });

  it('takes one listener and leaves none, however the call ends', () => {
    const watched = counted();
    const guard = withSignal<unknown>(watched.signal);
    for (const source of [EMPTY, of(1), range(0, 100), throwError(() => failed('overloaded'))]) {
      recording(source.pipe(guard));
      expect(watched.listeners).to.equal(0);
    }
    recording(range(0, 100).pipe(guard, take(2)));
    expect(watched.listeners).to.equal(0);

    const left = recording(scripted(runtime, { hangs: true }).source.pipe(guard));
    expect(watched.listeners).to.equal(1);
    left.subscription.unsubscribe();
    expect(watched.listeners).to.equal(0);

    recording(scripted(runtime, { hangs: true }).source.pipe(guard));
    watched.controller.abort();
    expect(watched.listeners).to.equal(0);
  });

  it('stops a synchronous source as soon as the one downstream has had enough', () => {
    let made = 0;
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && made < 1_000) subscriber.next(made++);
    });
    recording(endless.pipe(withSignal(new AbortController().signal), take(3)));
    expect(made).to.equal(3);
  });

  it('keeps what the caller said: text as it is, the name of an error, and neither its content', () => {
    const causes = [
      'the user closed the tab 4711',
      'x'.repeat(300),
      new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
      new RangeError('my prompt was: tell me about Berta'),
      undefined,
    ].map((reason) => recording(of(1).pipe(withSignal(AbortSignal.abort(reason)))).error?.cause);
    expect(causes[0]).to.deep.equal({
      name: 'AbortError',
      code: undefined,
      message: 'the user closed the tab 4711',
    });
    expect(causes[1]?.message).to.have.length(200);
    expect(causes[2]?.name).to.equal('TimeoutError');
    expect(causes[3]?.name).to.equal('RangeError');
    expect(causes[3]?.message).to.not.include('Berta');
    expect(causes[4]?.name).to.equal('AbortError');
  });

  it('stops a wait between two attempts, and tells what had failed and where the call stood', () => {
    const controller = new AbortController();
    const source = scripted(runtime, { error: failed('overloaded', { status: 529 }) }, { values: ['late'] });
    const call = recording(
      speaking(runtime, 'm1', source.source).pipe(
        retryWithJitter({ attempts: 3, baseMs: 1_000, jitter: 'none', runtime }),
        withSignal(controller.signal, { runtime }),
      ),
    );
    runtime.advance(500);
    expect(runtime.pending).to.equal(1);
    controller.abort('stop');
    expect(runtime.pending).to.equal(0);
    expect(call.error).to.include({ code: 'aborted', source: 'local', retryable: false, while: 'backoff' });
    expect(call.error?.attempts.map(({ status }) => status)).to.deep.equal([529]);
    runtime.advance(10_000);
    expect(source.log).to.deep.equal(['subscribe', 'teardown']);
  });

  it('delivers in the frame of the one downstream, and is one call with what stands above', () => {
    const scope = CallScope.start(runtime, { id: 'outer' });
    const seen: (string | undefined)[] = [];
    const source = new Observable<number>((subscriber) => {
      seen.push(currentScope()?.callId);
      subscriber.next(1);
    });
    const controller = new AbortController();
    const result = new Observable<number>((subscriber) =>
      source.pipe(withSignal(controller.signal)).subscribe({
        next: () => seen.push(currentScope()?.callId),
        error: () => {
          seen.push(currentScope()?.callId);
          subscriber.complete();
        },
      }),
    );
    recording(result, scope);
    controller.abort();
    expect(seen).to.deep.equal(['outer', 'outer', 'outer']);
  });

  it('refuses what is no signal', () => {
    for (const wrong of [null, {}, new AbortController()]) {
      expect(thrown(() => withSignal(wrong as never)).code).to.equal('invalid_option');
    }
  });
});
