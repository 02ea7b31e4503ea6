import { expect } from 'chai';
import { defer, EMPTY, NEVER, Observable, of, take, throwError } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { ErrorCode, SluiceError } from '../../lib/core/errors.ts';
import { degradeTo } from '../../lib/operators/degradeTo.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { withDeadline } from '../../lib/operators/withDeadline.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { marbles } from '../helpers/marbles.ts';
import { failed, recording, scripted } from '../helpers/scripted.ts';

const failing = (code: ErrorCode) => throwError(() => failed(code));
const sorry = degradeTo<string>((failure) => of(`sorry: ${failure.code}`));

describe('degradeTo', () => {
  it(
    'answers in place of a failure, after the source was torn down',
    marbles((m) => {
      const source = m.cold('--#', undefined, failed('overloaded'));
      const reply = m.cold('  -r|');
      m.expectObservable(source.pipe(degradeTo(() => reply))).toBe('---r|');
      m.expectSubscriptions(source.subscriptions).toBe('^-!');
      m.expectSubscriptions(reply.subscriptions).toBe('--^-!');
    }),
  );

  it('stays out of sources that answer, are empty or silent', () => {
    expect(recording(of('a', 'b').pipe(sorry)).values).to.deep.equal(['a', 'b']);
    expect(recording(EMPTY.pipe(sorry))).to.deep.include({ values: [], done: true });
    expect(recording(NEVER.pipe(sorry))).to.deep.include({ values: [], done: false });
  });

  it('passes a failure on after the first value', () => {
    const script = scripted(virtualRuntime(), { values: ['a'], error: failed('connection') });
    const seen = recording(script.source.pipe(sorry));
    expect(seen.values).to.deep.equal(['a']);
    expect(seen.error?.code).to.equal('connection');
  });

  it('answers for failures of a provider and refusals of our own', () => {
    for (const code of ['overloaded', 'bad_request', 'circuit_open', 'timeout_deadline', 'queue_full'] as const) {
      expect(recording(failing(code).pipe(sorry)).values).to.deep.equal([`sorry: ${code}`]);
    }
  });

  it('does not answer where nobody waits any more', () => {
    for (const code of ['aborted', 'superseded', 'closed', 'lane_lost'] as const) {
      expect(recording(failing(code).pipe(sorry)).error?.code).to.equal(code);
    }
  });

  it('answers only on the codes it is told', () => {
    const reply = () => of('sorry');
    expect(recording(failing('auth').pipe(degradeTo(reply, { onlyOn: ['overloaded'] }))).error?.code).to.equal('auth');
    expect(recording(failing('auth').pipe(degradeTo(reply, { onlyOn: ['auth'] }))).values).to.deep.equal(['sorry']);
    expect(recording(failing('auth').pipe(degradeTo(reply, { except: ['auth'] }))).error?.code).to.equal('auth');
  });

  it('hands over every failed attempt, and what others threw as one of our errors', () => {
    const runtime = virtualRuntime();
    const failures: SluiceError[] = [];
    const reset = Object.assign(new Error('socket'), { code: 'ECONNRESET' });
    const source = scripted(runtime, { error: reset }).source;
    const degraded = degradeTo<string>((failure) => {
      failures.push(failure);
      return EMPTY;
    });
    recording(source.pipe(retryWithJitter({ attempts: 3, runtime }), degraded));
    runtime.run();
    recording(source.pipe(degraded));

    expect(failures.map(({ code, attempts }) => [code, attempts.length])).to.deep.equal([
      ['connection', 3],
      ['connection', 1],
    ]);
  });

  it('answers for a deadline that is set further up', () => {
    const runtime = virtualRuntime();
    const seen = recording(NEVER.pipe(withDeadline(20, { runtime }), sorry));
    runtime.advance(20);
    expect(seen.values).to.deep.equal(['sorry: timeout_deadline']);
  });

  it('fails with what the reply throws or fails with', () => {
    const mistake = new Error('mistake');
    const throwing = degradeTo<string>(() => {
      throw mistake;
    });
    expect(recording(failing('overloaded').pipe(throwing)).error).to.equal(mistake);
    expect(recording(failing('overloaded').pipe(degradeTo(() => throwError(() => mistake)))).error).to.equal(mistake);
  });

  it('ends the source and the reply on unsubscribe, in the same tick', () => {
    const runtime = virtualRuntime();
    const source = scripted(runtime, { hangs: true });
    recording(source.source.pipe(sorry)).subscription.unsubscribe();
    const reply = scripted(runtime, { hangs: true });
    recording(failing('overloaded').pipe(degradeTo(() => reply.source))).subscription.unsubscribe();
    expect([source.active, reply.active]).to.deep.equal([0, 0]);
    expect(reply.startsMs).to.have.length(1);
  });

  it('stops a synchronous reply as soon as the one downstream has had enough', () => {
    let made = 0;
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && made < 1000) subscriber.next(made++);
    });
    recording(
      failing('overloaded').pipe(
        degradeTo(() => endless),
        take(3),
      ),
    );
    expect(made).to.equal(3);
  });

  it('starts afresh for each subscription, which knows of no values but its own', () => {
    const script = scripted(virtualRuntime(), { values: ['a'], hangs: true }, { error: failed('overloaded') });
    const assembled = script.source.pipe(sorry);
    recording(assembled);
    expect(recording(assembled).values).to.deep.equal(['sorry: overloaded']);
  });

  it('asks for the reply in the frame of the call', () => {
    const scope = CallScope.start(virtualRuntime(), { id: 'call-1' });
    const frames: (string | undefined)[] = [];
    const reply = () => {
      frames.push(currentScope()?.callId);
      return defer(() => of(frames.push(currentScope()?.callId)));
    };
    recording(failing('overloaded').pipe(degradeTo(reply)), scope);
    expect(frames).to.deep.equal(['call-1', 'call-1']);
  });
});
