import { expect } from 'chai';
import fc from 'fast-check';
import { NEVER, of, Observable, Subject, throwError } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import { currentPace, runAtPace } from '../../lib/core/pace.ts';
import type { AnswerEvent } from '../../lib/http/AnswerEvent.ts';
import { replayable } from '../../lib/http/replayable.ts';
import type { ReplayableOptions } from '../../lib/http/replayable.ts';
import type { ReplayRequest, Replays } from '../../lib/http/Replays.ts';
import { readEventId, ReplayLog } from '../../lib/http/ReplayLog.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { say, stop } from '../helpers/chunks.ts';
import { seen } from '../helpers/seen.ts';

const part = (words: string): AnswerPart => say(words) as unknown as AnswerPart;
const end = stop() as unknown as AnswerPart;

interface Bench {
  readonly answers: Replays;
  readonly runtime: VirtualRuntime;
  /** One for each call that was made. */
  readonly calls: Subject<AnswerPart>[];
  read(request?: ReplayRequest): ReturnType<typeof seen>;
}

function bench(options: ReplayableOptions = {}): Bench {
  const runtime = virtualRuntime();
  let named = 0;
  const answers = replayable({ runtime, newName: () => `s${++named}`, ...options });
  const calls: Subject<AnswerPart>[] = [];
  const ask = (): Observable<AnswerPart> => {
    const call = new Subject<AnswerPart>();
    calls.push(call);
    return call;
  };
  return { answers, runtime, calls, read: (request = {}) => seen(answers.open(request, ask)) };
}

const told = (list: readonly unknown[]): string =>
  list
    .map((event) => {
      if (typeof event !== 'object' || event === null) return String(event);
      const { data, type, statusCode, code } = event as AnswerEvent & { statusCode?: number; code?: string };
      return statusCode ?? code ?? (data as { readonly text?: string }).text ?? type;
    })
    .join(' ');
const ids = (list: readonly unknown[]): unknown[] =>
  list.filter((event) => typeof event === 'object').map((event) => (event as AnswerEvent).id);

describe('replayable', () => {
  it('asks once, and names every event by stream and number', () => {
    const { calls, read } = bench();
    const first = read();
    calls[0]?.next(part('a'));
    calls[0]?.next(end);
    calls[0]?.complete();
    expect(told(first.seen)).to.equal('a done |');
    expect(ids(first.seen)).to.deep.equal(['s1-1', 's1-2']);
  });

  it('gives one that comes back what it missed, and then what comes, from one call', () => {
    const { calls, read } = bench();
    const first = read();
    calls[0]?.next(part('a'));
    calls[0]?.next(part('b'));
    first.subscription.unsubscribe();
    calls[0]?.next(part('c'));
    const second = read({ lastEventId: 's1-1' });
    calls[0]?.next(part('d'));
    calls[0]?.complete();
    expect(told(second.seen)).to.equal('b c d done |');
    expect(calls).to.have.length(1);
  });

  it('serves several readers, each from its own place', () => {
    const { calls, read } = bench();
    const lists = [read().seen];
    calls[0]?.next(part('a'));
    lists.push(read({ lastEventId: 's1-0' }).seen, read({ lastEventId: 's1-1' }).seen);
    calls[0]?.next(part('b'));
    expect(lists.map(told)).to.deep.equal(['a b', 'a b', 'b']);
    expect(calls).to.have.length(1);
  });

  it('answers 204 where the stream was read to its end, also when it is kept no longer', () => {
    const { answers, calls, runtime, read } = bench({ keepMs: 1000 });
    read();
    calls[0]?.next(part('a'));
    calls[0]?.complete();
    expect(told(read({ lastEventId: 's1-2' }).seen)).to.equal('204');
    runtime.advance(1000);
    expect(answers.snapshot()).to.deep.equal({ streams: 0, running: 0, bytes: 0 });
    expect(told(read({ lastEventId: 's1-2' }).seen)).to.equal('204');
    expect(told(read({ lastEventId: 's1-1' }).seen)).to.equal('410');
    expect(calls).to.have.length(1);
  });

  for (const id of ['s9-1', 's1-7', 's1', 's1-', '-1', 's1-1 ', 's1--1', 's1-1e1', `${'s'.repeat(65)}-1`, '../s1-1']) {
    it(`answers 410 for the id ${id.slice(0, 10)}, and asks nothing`, () => {
      const { calls, read } = bench();
      read();
      calls[0]?.next(part('a'));
      expect(told(read({ lastEventId: id }).seen)).to.equal('410');
      expect(calls).to.have.length(1);
    });
  }

  it('takes no id, an empty one or null as a wish for a new stream', () => {
    const { calls, read } = bench();
    for (const lastEventId of [undefined, '', null]) read({ lastEventId });
    expect(calls).to.have.length(3);
  });

  it('knows a stream to its owner only', () => {
    const { answers, calls, read } = bench();
    read({ owner: 'ann' });
    calls[0]?.next(part('a'));
    expect(told(read({ owner: 'bob', lastEventId: 's1-0' }).seen)).to.equal('410');
    expect(told(read({ lastEventId: 's1-0' }).seen)).to.equal('410');
    expect(answers.stop({ owner: 'bob', lastEventId: 's1-0' })).to.equal(false);
    expect(told(read({ owner: 'ann', lastEventId: 's1-0' }).seen)).to.equal('a');
  });

  describe('keys', () => {
    it('are asked once, also where no id came', () => {
      const { calls, read } = bench();
      read({ key: 'm1' }).subscription.unsubscribe();
      const second = read({ key: 'm1' });
      calls[0]?.next(part('a'));
      expect(told(second.seen)).to.equal('a');
      read({ key: 'm2' });
      read({ key: 'm1', owner: 'ann' });
      expect(calls).to.have.length(3);
    });

    it('that are wrong fail', () => {
      const { read } = bench();
      expect(told(read({ key: '' }).seen)).to.equal('invalid_request');
      expect(told(read({ key: 'x'.repeat(201) }).seen)).to.equal('invalid_request');
    });

    it('resume what runs, and nothing else', () => {
      const { answers, calls, read } = bench();
      expect(told(seen(answers.resume({ key: 'm1' })).seen)).to.equal('204');
      read({ key: 'm1' });
      calls[0]?.next(part('a'));
      expect(told(seen(answers.resume({ key: 'm1' })).seen)).to.equal('a');
      calls[0]?.complete();
      expect(told(seen(answers.resume({ key: 'm1' })).seen)).to.equal('204');
      expect(told(seen(answers.resume({ lastEventId: 's1-1' })).seen)).to.equal('done |');
    });
  });

  describe('a stream that nobody reads', () => {
    it('is aborted and forgotten after keepMs', () => {
      const { answers, calls, runtime, read } = bench({ keepMs: 500 });
      const { subscription } = read();
      calls[0]?.next(part('a'));
      subscription.unsubscribe();
      runtime.advance(300);
      calls[0]?.next(part('b'));
      runtime.advance(199);
      expect(calls[0]?.observed).to.equal(true);
      runtime.advance(1);
      expect(calls[0]?.observed).to.equal(false);
      expect(answers.snapshot()).to.deep.equal({ streams: 0, running: 0, bytes: 0 });
      expect(runtime.pending).to.equal(0);
      expect(told(read({ lastEventId: 's1-1' }).seen)).to.equal('410');
    });

    it('is kept when somebody comes back in time', () => {
      const { calls, runtime, read } = bench({ keepMs: 500 });
      read().subscription.unsubscribe();
      calls[0]?.next(part('a'));
      runtime.advance(400);
      read({ lastEventId: 's1-1' });
      runtime.advance(5000);
      expect(calls[0]?.observed).to.equal(true);
    });
  });

  describe('a failure', () => {
    it('before the first event is told as it is, and keeps nothing', () => {
      const { answers, runtime } = bench();
      const failure = new SluiceError('overloaded', 'busy');
      const failed = (): ReturnType<typeof seen> => seen(answers.open({ key: 'm1' }, () => throwError(() => failure)));
      expect(failed().seen).to.deep.equal([failure]);
      expect(answers.snapshot().streams).to.equal(0);
      expect(runtime.pending).to.equal(0);
      expect(failed().seen).to.deep.equal([failure]);
    });

    it('after it is an event, which those that come later get too', () => {
      const { calls, read } = bench({ messageOf: () => 'sorry' });
      const first = read();
      calls[0]?.next(part('a'));
      calls[0]?.error(new Error('secret'));
      expect(told(first.seen)).to.equal('a failure |');
      const second = read({ lastEventId: 's1-1' });
      expect(second.seen[0]).to.have.nested.property('data.error.message', 'sorry');
    });

    it('of ask is that of the call', () => {
      const { answers } = bench();
      const list = seen(
        answers.open({}, () => {
          throw new Error('own');
        }),
      ).seen;
      expect(list[0]).to.have.property('message', 'own');
    });
  });

  it('stops a stream by its id or key, and aborts the call', () => {
    const { answers, calls, read } = bench();
    const first = read({ key: 'm1' });
    calls[0]?.next(part('a'));
    expect(answers.stop({ lastEventId: 's1-1' })).to.equal(true);
    expect(calls[0]?.observed).to.equal(false);
    expect(told(first.seen)).to.equal('a failure |');
    expect(answers.stop({ key: 'm1' })).to.equal(false);
    const second = read({ key: 'm2' });
    expect(answers.stop({ key: 'm2' })).to.equal(true);
    expect(told(second.seen)).to.equal('aborted');
  });

  it("reads the provider at no reader's pace", () => {
    const { answers } = bench();
    let pace: unknown = 'unset';
    const source = new Observable<AnswerPart>(() => {
      pace = currentPace();
    });
    runAtPace({ ready: () => undefined }, () => answers.open({}, () => source).subscribe());
    expect(pace).to.equal(undefined);
  });

  it('takes a synchronous answer', () => {
    const { answers } = bench();
    expect(told(seen(answers.open({}, () => of(part('a'), end))).seen)).to.equal('a done |');
  });

  it('ends all when it is closed', () => {
    const { answers, calls, runtime, read } = bench();
    const first = read();
    const second = read();
    calls[0]?.next(part('a'));
    answers.close();
    expect(told(first.seen)).to.equal('a failure |');
    expect(told(second.seen)).to.equal('closed');
    expect(told(read().seen)).to.equal('closed');
    expect(answers.snapshot()).to.deep.equal({ streams: 0, running: 0, bytes: 0 });
    expect(runtime.pending).to.equal(0);
  });

  describe('bounds', () => {
    it('refuses a new stream where maxStreams run, and drops an ended one first', () => {
      const { answers, calls, read } = bench({ maxStreams: 2 });
      read();
      read();
      expect(told(read().seen)).to.equal('queue_full');
      calls[0]?.complete();
      read();
      expect(calls).to.have.length(3);
      expect(answers.snapshot()).to.include({ streams: 2, running: 2 });
      expect(told(read({ lastEventId: 's1-1' }).seen)).to.equal('204');
    });

    it('drops ended streams past maxBytes, the oldest first', () => {
      const { answers, calls, read } = bench({ maxBytes: 2000 });
      for (let at = 0; at < 3; at++) {
        read();
        calls[at]?.next(part('x'.repeat(200)));
        calls[at]?.complete();
      }
      expect(answers.snapshot().bytes).to.be.at.most(2000);
      expect(told(read({ lastEventId: 's1-1' }).seen)).to.equal('410');
      expect(told(read({ lastEventId: 's3-1' }).seen)).to.equal('done |');
    });

    it('drops the first events of a stream that is too long, which goes on for those that read it', () => {
      const { answers, calls, read } = bench({ maxBytes: 2000 });
      const first = read();
      for (let at = 0; at < 50; at++) calls[0]?.next(part('x'.repeat(100)));
      expect(first.seen).to.have.length(50);
      expect(answers.snapshot().bytes).to.be.at.most(2000);
      expect(told(read({ lastEventId: 's1-3' }).seen)).to.equal('410');
      expect(read({ lastEventId: 's1-49' }).seen).to.have.length(1);
    });

    it('hold for any history, and nothing is left at the end', () => {
      const step = fc.record({
        kind: fc.constantFrom('open', 'leave', 'say', 'end', 'fail', 'back', 'wait'),
        which: fc.nat(5),
        size: fc.nat(400),
      });
      fc.assert(
        fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
          const { answers, calls, runtime, read } = bench({ keepMs: 100, maxBytes: 1500, maxStreams: 4 });
          const readers: ReturnType<typeof seen>[] = [];
          for (const { kind, which, size } of steps) {
            const call = calls[which];
            if (kind === 'open') readers.push(read());
            else if (kind === 'leave') readers[which]?.subscription.unsubscribe();
            else if (kind === 'say') call?.next(part('x'.repeat(size)));
            else if (kind === 'end') call?.complete();
            else if (kind === 'fail') call?.error(new Error('no'));
            else if (kind === 'back') readers.push(read({ lastEventId: `s${which + 1}-${size % 5}` }));
            else runtime.advance(size);
            const { streams, bytes } = answers.snapshot();
            expect(streams).to.be.at.most(4);
            expect(bytes).to.be.within(0, 1500);
          }
          for (const { subscription } of readers) subscription.unsubscribe();
          runtime.advance(100);
          expect(answers.snapshot()).to.deep.equal({ streams: 0, running: 0, bytes: 0 });
          expect(calls.some((call) => call.observed)).to.equal(false);
          expect(runtime.pending).to.equal(0);
        }),
        { numRuns: 100 },
      );
    });
  });

  it('names streams so that they cannot be guessed, by default', () => {
    const { seen: list } = seen(replayable().open({}, () => of(part('a'))));
    expect((list[0] as AnswerEvent).id).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-1$/);
  });

  it('refuses a wrong name', () => {
    const { read } = bench({ newName: () => 'a\nb' });
    expect(told(read().seen)).to.equal('invalid_option');
  });

  for (const option of ['keepMs', 'maxBytes', 'maxStreams']) {
    it(`refuses a wrong ${option}`, () => {
      expect(() => replayable({ [option]: 0 })).to.throw(option);
    });
  }

  it('does nothing before it is subscribed to', () => {
    const { answers, calls } = bench();
    answers.open({}, () => NEVER);
    expect(answers.snapshot().streams + calls.length).to.equal(0);
  });
});

describe('ReplayLog', () => {
  it('reads back the ids that it gives, and nothing that is not one', () => {
    const log = new ReplayLog('a-b');
    log.add({ type: 'delta', data: { index: 0, text: 'x' } });
    expect(readEventId(log.at(1)?.id ?? '')).to.deep.equal({ name: 'a-b', seen: 1 });
    fc.assert(
      fc.property(fc.string(), (id) => {
        const found = readEventId(id);
        if (found) expect(`${found.name}-${id.slice(found.name.length + 1)}`).to.equal(id);
      }),
    );
  });
});
