import { expect } from 'chai';
import { from, of, retry, Subject, take, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import type { WireEvent } from '../../lib/core/attempt.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import type { AttemptSink } from '../../lib/core/AttemptSink.ts';
import { isSluiceError, SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { Runtime } from '../../lib/core/runtime.ts';
import type { AttemptOptions } from '../../lib/sources/AttemptOptions.ts';
import { attemptStream } from '../../lib/sources/attemptStream.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { role, say, stop, usage, whole } from '../helpers/chunks.ts';
import type { RawChunk } from '../helpers/chunks.ts';
import { fakeTransport } from '../helpers/fakeTransport.ts';
import type { FakeTransport } from '../helpers/fakeTransport.ts';
import { record } from '../helpers/record.ts';

const request = { model: 'm1', messages: [{ role: 'user', content: 'hi' }] };

describe('attemptStream', () => {
  let runtime: VirtualRuntime;
  let transport: FakeTransport;
  const stream = (options: AttemptOptions = {}, more: Record<string, unknown> = {}): Observable<RawChunk> =>
    attemptStream(
      transport.source,
      { api: 'chat', request: { ...request, ...more }, stream: true },
      { runtime, ...options },
    );

  beforeEach(() => {
    runtime = virtualRuntime();
    transport = fakeTransport(runtime);
  });

  describe('a provider that refuses to be asked for usage', () => {
    const asked = (): unknown[] => transport.exchanges.map(({ attempt }) => attempt.request['stream_options']);
    const refusal = (): SluiceError =>
      new SluiceError('bad_request', '400: unknown field stream_options', { status: 400 });
    const at = (provider: object | undefined, more: Record<string, unknown> = {}, options: AttemptOptions = {}) =>
      record(
        attemptStream<RawChunk>(
          transport.source,
          { api: 'chat', request: { ...request, ...more }, stream: true, provider },
          { runtime, ...options },
        ),
      );
    const answer = (): void => {
      transport.last.head();
      transport.last.data(say('Hello'), stop());
      transport.last.done();
    };

    it('is asked again without, at once and in the same attempt, and never again', () => {
      const where = {};
      const events: SluiceEvent[] = [];
      const first = at(where, {}, { onEvent: (event) => events.push(event) });
      transport.last.head(400);
      transport.last.error(refusal());
      answer();
      expect(first.ended).to.equal('complete');
      expect(first.values).to.have.length(2);
      const second = at(where);
      answer();
      expect(second.ended).to.equal('complete');
      expect(asked()).to.deep.equal([{ include_usage: true }, undefined, undefined]);
      expect(events.map(({ type }) => type)).to.deep.equal(['attempt.started', 'committed', 'attempt.ended']);
      expect(transport.exchanges.every(({ left }) => left)).to.equal(true);

      const elsewhere = at({});
      expect(asked().at(-1)).to.deep.equal({ include_usage: true });
      elsewhere.unsubscribe();
    });

    it('is asked again without where the refusal comes inside the stream', () => {
      const seen = at(undefined);
      transport.last.head();
      transport.last.data(role());
      transport.last.data({ error: { code: 400, message: 'Unknown parameter: stream_options' } });
      expect(transport.exchanges[0]?.left).to.equal(true);
      answer();
      expect(seen.values).to.deep.equal([say('Hello'), stop()]);
    });

    it('keeps what the caller set beside it', () => {
      at(undefined, { stream_options: { include_obfuscation: false } });
      transport.last.error(refusal());
      expect(asked()).to.deep.equal([
        { include_obfuscation: false, include_usage: true },
        { include_obfuscation: false },
      ]);
    });

    it('tells the caller who set it', () => {
      const seen = at({}, { stream_options: { include_usage: true } });
      transport.last.error(refusal());
      expect(seen.error).to.include({ code: 'bad_request', status: 400 });
      expect(asked()).to.have.length(1);
    });

    it('is not asked again for another fault, nor more than once, and only a success is remembered', () => {
      const where = {};
      const other = at(where);
      transport.last.error(new SluiceError('bad_request', '400: unknown field top_k', { status: 400 }));
      expect(other.error.code).to.equal('bad_request');
      const twice = at(where);
      transport.last.error(refusal());
      transport.last.head(400);
      transport.last.error(refusal());
      expect(twice.error.code).to.equal('bad_request');
      expect(twice.error.attempts).to.have.length(1);
      at(where);
      expect(asked()).to.deep.equal([
        { include_usage: true },
        { include_usage: true },
        undefined,
        { include_usage: true },
      ]);
    });

    it('may be synchronous', () => {
      const bodies: unknown[] = [];
      const sync = (attempt: { readonly request: Readonly<Record<string, unknown>> }): Observable<WireEvent> => {
        bodies.push(attempt.request['stream_options']);
        const data = (value: unknown): WireEvent => ({ kind: 'data', value, event: undefined });
        return 'stream_options' in attempt.request
          ? of(data({ error: { code: 400, message: 'Unknown parameter: stream_options' } }), data(say('never')))
          : of(data(say('Hello')), data(stop()));
      };
      const seen = record(attemptStream<RawChunk>(sync, { api: 'chat', request, stream: true }, { runtime }));
      expect(seen.values).to.deep.equal([say('Hello'), stop()]);
      expect(seen.ended).to.equal('complete');
      expect(bodies).to.have.length(2);
    });
  });

  describe('commit', () => {
    it('holds chunks without content back until the first content, then emits them in order', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.data(role());
      transport.last.comment();
      transport.last.data(role());
      expect(seen.values).to.deep.equal([]);
      transport.last.data(say('Hel'));
      expect(seen.values).to.deep.equal([role(), role(), say('Hel')]);
      transport.last.data(role());
      expect(seen.values).to.have.length(4);
    });

    it('shows nothing of an attempt that fails before its first content', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.data(role());
      transport.last.error(new SluiceError('connection', 'cut'));
      expect(seen.values).to.deep.equal([]);
      expect(seen.error.code).to.equal('connection');
      expect(seen.error.partial).to.equal(undefined);
    });

    it('emits what is held of a finished answer without content, and completes', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.data(role(), stop());
      transport.last.complete();
      expect(seen.values).to.deep.equal([role(), stop()]);
      expect(seen.ended).to.equal('complete');
    });

    it('lets what is held through once there is more than may be held', () => {
      const seen = record(stream({ maxHeldChunks: 2 }));
      transport.last.data(role(), role());
      expect(seen.values).to.have.length(0);
      transport.last.data(role());
      expect(seen.values).to.have.length(3);
    });

    it('bounds the size of what is held', () => {
      const sized = (size: number): WireEvent => ({ kind: 'data', value: role(), event: undefined, size });
      const source = (): Observable<WireEvent> => of(sized(60), sized(60));
      const call = { api: 'chat', request, stream: true } as const;
      expect(record(attemptStream(source, call, { maxHeldBytes: 100 })).values).to.have.length(2);
      expect(record(attemptStream(source, call, { maxHeldBytes: 200 })).values).to.have.length(0);
    });

    it('emits the rest of nothing to a consumer that leaves among the held chunks', () => {
      const seen = record(stream().pipe(take(1)));
      transport.last.data(role(), role(), say('a'));
      expect(seen.values).to.have.length(1);
      expect(seen.ended).to.equal('complete');
      expect(transport.last.left).to.equal(true);
    });
  });

  describe('completeness', () => {
    it('completes at [DONE] and leaves the transport, whatever it would still do', () => {
      const seen = record(stream());
      transport.last.data(say('a'), stop());
      transport.last.done();
      expect(seen.ended).to.equal('complete');
      expect(transport.last.left).to.equal(true);
      expect(runtime.pending).to.equal(0);
    });

    it('completes at [DONE] without a finish reason', () => {
      const seen = record(stream());
      transport.last.data(say('a'));
      transport.last.done();
      expect(seen.ended).to.equal('complete');
    });

    it('takes an end without a finish reason and without [DONE] for a truncation, and keeps what came', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.data(say('Hel'));
      transport.last.complete();
      expect(seen.error.code).to.equal('stream_truncated');
      expect(seen.error.partial?.text).to.equal('Hel');
      expect(seen.error).to.include({ model: 'm1', attempt: 1, requestId: 'r1', retryable: true });
    });

    it('takes an empty stream for a truncation', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.complete();
      expect(seen.error.code).to.equal('stream_truncated');
    });

    it('needs a finish reason of every choice', () => {
      const seen = record(stream({}, { n: 2 }));
      transport.last.data(say('a', 0), say('b', 1), stop('stop', 0));
      transport.last.complete();
      expect(seen.error.code).to.equal('stream_truncated');
    });

    it('never takes finish_reason "error" for success', () => {
      const seen = record(stream());
      transport.last.data(say('a'), stop('error'));
      expect(seen.ended).to.equal('error');
      expect(seen.error.source).to.equal('upstream');
    });

    it('waits after the last finish reason for usage, no longer than tailMs', () => {
      const seen = record(stream());
      transport.last.data(say('a'), stop());
      runtime.advance(999);
      expect(seen.ended).to.equal(undefined);
      runtime.advance(1);
      expect(seen.ended).to.equal('complete');
    });

    it('completes when usage has come after the last finish reason, and not at usage before it', () => {
      const ended: SluiceEvent[] = [];
      const seen = record(
        stream({ onEvent: (event) => ended.push(event) }, { stream_options: { include_usage: true }, n: 2 }),
      );
      transport.last.data(say('a'), usage(), stop(), usage());
      expect(seen.ended).to.equal(undefined);
      transport.last.data(stop('stop', 1), usage());
      expect(seen.values.at(-1)).to.deep.equal(usage());
      expect(seen.ended).to.equal('complete');
      expect(transport.last.left).to.equal(true);
      expect(ended.at(-1)).to.deep.include({
        type: 'attempt.ended',
        outcome: 'success',
        finishReasons: ['stop', 'stop'],
      });
      expect(ended.at(-1)).to.have.nested.property('usage.totalTokens', 5);
    });

    it('takes tailMs from the options', () => {
      const seen = record(stream({ timeouts: { tailMs: 0 } }));
      transport.last.data(say('a'), stop());
      runtime.advance(0);
      expect(seen.ended).to.equal('complete');
    });

    it('succeeds although something fails in the tail', () => {
      for (const fault of [
        () => transport.last.error(new SluiceError('connection', 'cut')),
        () => transport.last.data({ error: { message: 'late' } }),
        () => transport.last.complete(),
      ]) {
        const seen = record(stream());
        transport.last.data(say('a'), stop());
        fault();
        expect(seen.ended).to.equal('complete');
      }
    });

    it('fails with an error inside the stream, by its class', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.data(say('Hel'), { error: { type: 'overloaded_error', message: 'Overloaded' } });
      expect(seen.error).to.include({ code: 'overloaded', status: undefined });
      expect(seen.error.message).to.include('Overloaded');
      expect(seen.error.partial?.text).to.equal('Hel');
      expect(transport.last.left).to.equal(true);
    });

    it('gives an answer that is not streamed as one value', () => {
      const call = { api: 'chat', request, stream: false } as const;
      const seen = record(attemptStream(transport.source, call, { runtime }));
      transport.last.head();
      transport.last.data(whole('Hello'));
      transport.last.complete();
      expect(seen.values).to.deep.equal([whole('Hello')]);
      expect(seen.ended).to.equal('complete');
    });

    it('takes an error inside a body with status 200 for what it is', () => {
      const call = { api: 'chat', request, stream: false } as const;
      const seen = record(attemptStream(transport.source, call, { runtime }));
      transport.last.head();
      transport.last.data({ error: { message: 'engine failed', type: 'server_error', code: 500 } });
      expect(seen.error.code).to.equal('server_error');
    });
  });

  describe('request', () => {
    it('asks for usage, and hides the chunk that only the accounting wants', () => {
      const seen = record(stream());
      expect(transport.last.attempt.request).to.deep.include({ stream: true, stream_options: { include_usage: true } });
      transport.last.data(say('a'), stop(), usage());
      expect(seen.values).to.deep.equal([say('a'), stop()]);
    });

    it('emits usage to a caller that asked for it', () => {
      const seen = record(stream({}, { stream_options: { include_usage: true } }));
      transport.last.data(say('a'), stop(), usage());
      expect(seen.values.at(-1)).to.deep.equal(usage());
    });

    it('does not ask for usage where told not to', () => {
      const off = [
        { options: { includeUsage: false }, more: {}, sent: undefined },
        { options: {}, more: { stream_options: { include_usage: false } }, sent: { include_usage: false } },
      ];
      for (const { options, more, sent } of off) {
        const seen = record(stream(options, more));
        expect(transport.last.attempt.request['stream_options']).to.deep.equal(sent);
        transport.last.data(say('a'), stop(), usage());
        expect(seen.values).to.have.length(3);
      }
    });

    it('keeps the other stream options', () => {
      record(stream({}, { stream_options: { include_obfuscation: false } }));
      const sent = { include_obfuscation: false, include_usage: true };
      expect(transport.last.attempt.request['stream_options']).to.deep.equal(sent);
    });

    it('refuses a wrong request before anything is sent', () => {
      for (const wrong of [{ model: undefined }, { stream: false }, { messages: 'hi' }]) {
        const seen = record(stream({}, wrong));
        expect(seen.error.code).to.equal('invalid_request');
        expect(seen.error.attempt).to.equal(undefined);
      }
      expect(transport.exchanges).to.have.length(0);
    });

    it('refuses a wrong option when it is created', () => {
      const wrong: AttemptOptions[] = [
        { timeouts: { headersMs: 0 } },
        { timeouts: { firstContentMs: NaN } },
        { timeouts: { idleMs: -1 } },
        { timeouts: { tailMs: -1 } },
        { timeouts: { responseMs: 0 } },
        { maxHeldChunks: 0 },
        { maxHeldBytes: 1.5 },
        { maxEventBytes: 0 },
        { classify: 'no' as never },
      ];
      for (const options of wrong) {
        const [name] = Object.keys(options.timeouts ?? options) as [string];
        expect(() => stream(options))
          .to.throw(SluiceError, name)
          .with.property('code', 'invalid_option');
      }
    });
  });

  describe('limits', () => {
    it('gives up on a head that does not come', () => {
      const seen = record(stream());
      runtime.advance(9_999);
      expect(seen.ended).to.equal(undefined);
      runtime.advance(1);
      expect(seen.error).to.include({ code: 'timeout', while: 'headers', limit: 10_000, source: 'upstream' });
      expect(transport.last.left).to.equal(true);
    });

    it('gives up on content that does not come, whatever else does', () => {
      const seen = record(stream());
      transport.last.head();
      for (let at = 0; at < 29; at++) {
        runtime.advance(1_000);
        transport.last.comment();
        transport.last.data(role());
      }
      expect(seen.ended).to.equal(undefined);
      runtime.advance(1_000);
      expect(seen.error).to.include({ code: 'timeout', while: 'first_content', limit: 30_000 });
    });

    it('gives up on a stream that stalls, and keeps what came', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.data(say('Hel'));
      for (let at = 0; at < 3; at++) {
        runtime.advance(9_000);
        transport.last.comment();
        transport.last.data({ choices: [{ index: 0, delta: {} }] });
      }
      runtime.advance(2_999);
      expect(seen.ended).to.equal(undefined);
      runtime.advance(1);
      expect(seen.error).to.include({ code: 'stream_idle', while: 'streaming', limit: 30_000, status: 200 });
      expect(seen.error.partial?.text).to.equal('Hel');
    });

    it('lets every piece of content start the idle limit again, on one timer', () => {
      const seen = record(stream({ timeouts: { idleMs: 100 } }));
      transport.last.head();
      for (let at = 0; at < 50; at++) {
        transport.last.data(say('a'));
        runtime.advance(99);
        expect(runtime.pending).to.be.at.most(1);
      }
      expect(seen.ended).to.equal(undefined);
      runtime.advance(1);
      expect(seen.error.code).to.equal('stream_idle');
    });

    it('arms no timer for a piece of content', () => {
      let armed = 0;
      const counting: Runtime = {
        ...runtime,
        clock: runtime.clock,
        scheduler: {
          schedule: (work, delayMs) => {
            armed++;
            return runtime.scheduler.schedule(work, delayMs);
          },
        },
      };
      record(stream({ runtime: counting }));
      transport.last.head();
      transport.last.data(say('a'));
      const before = armed;
      for (let at = 0; at < 100; at++) {
        runtime.advance(10);
        transport.last.data(say('a'));
      }
      expect(armed).to.equal(before);
    });

    it('lets no event of the Responses API but content end the wait for the first content', () => {
      const call = { api: 'responses', request: { model: 'm1', input: 'hi' }, stream: true } as const;
      const seen = record(attemptStream(transport.source, call, { runtime }));
      transport.last.head();
      transport.last.data({ type: 'response.created', response: { object: 'response', status: 'in_progress' } });
      runtime.advance(29_000);
      transport.last.data({ type: 'response.web_search_call.searching' });
      runtime.advance(1_000);
      expect(seen.error).to.include({ code: 'timeout', while: 'first_content' });
    });

    it('takes each limit from the options, and Infinity for none', () => {
      const first = record(stream({ timeouts: { headersMs: 5 } }));
      runtime.advance(5);
      expect(first.error.limit).to.equal(5);

      const second = record(stream({ timeouts: { firstContentMs: 7 } }));
      transport.last.head();
      runtime.advance(7);
      expect(second.error.limit).to.equal(7);

      const none = { headersMs: Infinity, firstContentMs: Infinity, idleMs: Infinity, tailMs: Infinity };
      const third = record(stream({ timeouts: none }));
      expect(runtime.pending).to.equal(0);
      transport.last.data(say('a'), stop());
      runtime.advance(1e9);
      expect(third.ended).to.equal(undefined);
      transport.last.complete();
      expect(third.ended).to.equal('complete');
    });

    it('has one limit for an answer that is not streamed', () => {
      const call = { api: 'chat', request, stream: false } as const;
      const plain = record(attemptStream(transport.source, call, { runtime }));
      runtime.advance(599_999);
      expect(plain.ended).to.equal(undefined);
      runtime.advance(1);
      expect(plain.error).to.include({ code: 'timeout', while: 'response', limit: 600_000 });

      const short = record(attemptStream(transport.source, call, { runtime, timeouts: { responseMs: 20 } }));
      runtime.advance(20);
      expect(short.error.limit).to.equal(20);
    });

    it('gives first content at most half of what is left to the deadline, unless told otherwise', () => {
      const scope = CallScope.start(runtime, { deadlineAtMs: 8_000 });
      const half = runInScope(scope, () => record(stream()));
      runtime.advance(4_000);
      expect(half.error).to.include({ code: 'timeout', limit: 4_000 });

      const told = runInScope(CallScope.start(runtime, { deadlineAtMs: 12_000 }), () =>
        record(stream({ timeouts: { firstContentMs: 6_000 } })),
      );
      runtime.advance(6_000);
      expect(told.error).to.include({ code: 'timeout', limit: 6_000 });
    });

    it('gives first content all that is left where a queue has taken most of the deadline', () => {
      const left = (leftMs: number): SluiceError => {
        const scope = CallScope.start(runtime, { deadlineAtMs: runtime.clock.now() + leftMs, deadlineMs: 8_000 });
        const seen = runInScope(scope, () => record(stream()));
        runtime.advance(leftMs);
        return seen.error;
      };
      expect(left(3_600)).to.include({ code: 'timeout', limit: 1_800 });
      expect(left(3_500)).to.include({ code: 'timeout_deadline', while: 'headers' });
    });

    it('cuts at the deadline, as the deadline and not as the provider', () => {
      const timeouts = { firstContentMs: Infinity, headersMs: Infinity };
      const scope = CallScope.start(runtime, { deadlineAtMs: 100 });
      const streamed = runInScope(scope, () => record(stream({ timeouts })));
      const call = { api: 'chat', request, stream: false } as const;
      const plain = runInScope(scope, () => record(attemptStream(transport.source, call, { runtime })));
      runtime.advance(100);
      expect(streamed.error).to.include({ code: 'timeout_deadline', while: 'headers', source: 'local' });
      expect(plain.error).to.include({ code: 'timeout_deadline', while: 'response' });
    });

    it('does not cut a committed stream at the deadline', () => {
      const seen = runInScope(CallScope.start(runtime, { deadlineAtMs: 100 }), () => record(stream()));
      transport.last.data(say('a'));
      runtime.advance(200);
      expect(seen.ended).to.equal(undefined);
    });

    it('sends nothing once the deadline has passed', () => {
      const scope = CallScope.start(runtime, { deadlineAtMs: 100 });
      runtime.advance(100);
      const seen = runInScope(scope, () => record(stream()));
      expect(seen.error).to.include({ code: 'timeout_deadline', while: 'entry' });
      expect(transport.exchanges).to.have.length(0);
    });

    it('does not count the time that the consumer takes', async () => {
      let go = (): void => {};
      const waits: (Promise<void> | undefined)[] = [undefined, new Promise<void>((resolve) => (go = resolve))];
      const seen = record(stream({ timeouts: { idleMs: 100 }, demand: { ready: () => waits.shift() } }));
      const { demand } = transport.last.attempt;
      transport.last.data(say('a'));
      expect(demand?.ready()).to.equal(undefined);
      runtime.advance(60);
      const ready = demand?.ready();
      runtime.advance(5_000);
      expect(seen.ended).to.equal(undefined);
      go();
      await ready;
      runtime.advance(39);
      expect(seen.ended).to.equal(undefined);
      runtime.advance(1);
      expect(seen.error.code).to.equal('stream_idle');
    });

    it('takes the pace of the scope where it has none of its own, and reads on where a pace fails', async () => {
      const asked: string[] = [];
      const pace = (name: string) => ({ ready: () => void asked.push(name) });
      const scope = CallScope.start(runtime, { demand: pace('scope') });
      runInScope(scope, () => record(stream()));
      void transport.last.attempt.demand?.ready();
      runInScope(scope, () => record(stream({ demand: pace('own') })));
      void transport.last.attempt.demand?.ready();
      expect(asked).to.deep.equal(['scope', 'own']);

      const failing = { ready: () => Promise.reject(new Error('no')) };
      record(stream({ demand: failing }));
      await transport.last.attempt.demand?.ready();
      const throwing = {
        ready: (): never => {
          throw new Error('no');
        },
      };
      record(stream({ demand: throwing }));
      expect(transport.last.attempt.demand?.ready()).to.equal(undefined);
    });

    it('leaves no timer behind, however it ends', () => {
      const ends: ((seen: { unsubscribe(): void }) => void)[] = [
        () => transport.last.done(),
        () => transport.last.error(new SluiceError('connection', 'cut')),
        (seen) => seen.unsubscribe(),
      ];
      for (const end of ends) {
        const seen = record(stream());
        transport.last.data(say('a'));
        expect(runtime.pending).to.equal(1);
        end(seen);
        expect(runtime.pending).to.equal(0);
      }
    });
  });

  describe('scope and events', () => {
    const types = (events: readonly SluiceEvent[]): string[] => events.map(({ type }) => type);

    it('tells the scope what happens, each thing once and in order', () => {
      const told: string[] = [];
      const sink: AttemptSink = {
        dispatched: (atMs) => told.push(`dispatched ${atMs}`),
        responded: (status) => told.push(`responded ${status}`),
        usage: ({ totalTokens }) => told.push(`usage ${totalTokens}`),
        closed: () => told.push('closed'),
      };
      runtime.advance(7);
      runInScope(CallScope.start(runtime, { sink }), () => record(stream()));
      transport.last.head();
      transport.last.data(say('a'), stop(), usage());
      transport.last.done();
      expect(told).to.deep.equal(['dispatched 7', 'responded 200', 'usage 5', 'closed']);
    });

    it('reports to the scope and to onEvent, each once', () => {
      const own: SluiceEvent[] = [];
      const scopes: SluiceEvent[] = [];
      const scope = CallScope.start(runtime, { id: 'c', onEvent: (event) => scopes.push(event), tenant: 't' });
      runInScope(scope, () => record(stream({ onEvent: (event) => own.push(event) })));
      transport.last.head();
      runtime.advance(12);
      transport.last.data(say('a'));
      runtime.advance(3);
      transport.last.data(say('b'), stop());
      runtime.advance(2);
      transport.last.complete();
      expect(types(own)).to.deep.equal(['attempt.started', 'committed', 'attempt.ended']);
      expect(scopes).to.deep.equal(own);
      const common = { callId: 'c', attempt: 1, model: 'm1', tenant: 't', conversation: undefined };
      expect(own[1]).to.deep.equal({ ...common, atMs: 12, type: 'committed', firstContentMs: 12 });
      expect(own[2]).to.deep.equal({
        ...common,
        atMs: 17,
        type: 'attempt.ended',
        outcome: 'success',
        code: undefined,
        message: undefined,
        status: 200,
        requestId: 'r1',
        durationMs: 17,
        usage: undefined,
        estimatedUsage: {
          inputTokens: 8,
          outputTokens: 1,
          totalTokens: 9,
          cachedInputTokens: undefined,
          reasoningTokens: undefined,
        },
        responseId: 'c1',
        responseModel: 'm1-2026',
        serviceTier: undefined,
        systemFingerprint: undefined,
        finishReasons: ['stop'],
        contentChunks: 2,
        contentMs: 3,
      });
    });

    it('ends the attempt as dropped when the consumer leaves, and teaches nothing', () => {
      const events: SluiceEvent[] = [];
      const scope = CallScope.start(runtime, { onEvent: (event) => events.push(event) });
      const seen = runInScope(scope, () => record(stream()));
      transport.last.data(say('a'));
      seen.unsubscribe();
      seen.unsubscribe();
      expect(transport.last.left).to.equal(true);
      expect(events.at(-1)).to.include({ type: 'attempt.ended', outcome: 'dropped', code: undefined });
      expect(types(events).filter((type) => type === 'attempt.ended')).to.have.length(1);
      expect(scope.call.failed).to.deep.equal([]);
    });

    it('keeps a record of each failed attempt, and puts all of them on the error', () => {
      const scope = CallScope.start(runtime);
      const events: SluiceEvent[] = [];
      const seen = runInScope(scope, () => record(stream({ onEvent: (event) => events.push(event) }).pipe(retry(1))));
      runtime.advance(3);
      transport.last.error(new SluiceError('overloaded', 'no', { status: 503, retryAfterMs: 9 }));
      runtime.advance(4);
      transport.last.head();
      transport.last.complete();
      const second = { attempt: 2, model: 'm1', code: 'stream_truncated', status: 200, requestId: 'r1' };
      expect(seen.error.attempts).to.deep.equal([
        {
          attempt: 1,
          model: 'm1',
          code: 'overloaded',
          status: 503,
          requestId: undefined,
          retryAfterMs: 9,
          durationMs: 3,
        },
        { ...second, retryAfterMs: undefined, durationMs: 4 },
      ]);
      expect(seen.error.attempt).to.equal(2);
      expect(events.map(({ attempt }) => attempt)).to.deep.equal([1, 1, 2, 2]);
    });

    it('sees a state of its own in each subscription', () => {
      const source = stream();
      const first = record(source);
      const second = record(source);
      expect(transport.exchanges).to.have.length(2);
      transport.exchanges[0]?.data(role());
      transport.exchanges[1]?.data(say('b'));
      expect(first.values).to.deep.equal([]);
      expect(second.values).to.deep.equal([say('b')]);
    });

    it('subscribes to the transport in its frame, and delivers in the frame of the consumer', () => {
      const scope = CallScope.start(runtime, { id: 'mine' });
      const frames: (string | undefined)[] = [];
      runInScope(scope, () => record(stream(), () => frames.push(currentScope()?.callId)));
      expect(transport.last.scope.callId).to.equal('mine');
      expect(transport.last.scope.model).to.equal('m1');
      transport.last.data(say('a'));
      record(stream(), () => frames.push(currentScope()?.callId));
      runInScope(transport.last.scope, () => transport.last.data(say('b')));
      expect(frames).to.deep.equal(['mine', undefined]);
    });

    it('is not touched by a listener that throws', () => {
      const boom = (): never => {
        throw new Error('mine');
      };
      const seen = record(stream({ onEvent: boom, onHints: boom }));
      transport.last.data(say('a'), stop());
      transport.last.complete();
      expect(seen.ended).to.equal('complete');
    });

    it('survives a consumer that leaves in a listener of the dispatch', () => {
      const stopped = new Subject<void>();
      const onEvent = ({ type }: SluiceEvent): void => {
        if (type === 'attempt.started') stopped.next();
      };
      const seen = record(stream({ onEvent }).pipe(takeUntil(stopped)));
      expect(seen.ended).to.equal('complete');
      expect(transport.last.left).to.equal(true);
      expect(runtime.pending).to.equal(0);
    });
  });

  describe('classify', () => {
    const fail = (options: AttemptOptions): SluiceError => {
      const seen = record(stream(options));
      transport.last.error(
        new SluiceError('server_error', 'odd', { status: 500, providerCode: 'E17', retryAfterMs: 5 }),
      );
      return seen.error;
    };

    it('asks the user first', () => {
      const asked: unknown[] = [];
      const error = fail({
        classify: ({ code, status, providerCode, message, body, header }) => {
          asked.push({ code, status, providerCode, message, body, header: header('x-a') });
          return 'quota_exhausted';
        },
      });
      const facts = { code: 'server_error', status: 500, providerCode: 'E17', message: 'odd' };
      expect(asked).to.deep.equal([{ ...facts, body: undefined, header: undefined }]);
      expect(error).to.include({ code: 'quota_exhausted', retryable: false, status: 500, retryAfterMs: 5 });
    });

    it('takes a wait and whether to retry', () => {
      const error = fail({ classify: () => ({ retryAfterMs: 77, retryable: false }) });
      expect(error).to.include({ code: 'server_error', retryAfterMs: 77, retryable: false });
    });

    it('keeps its own class where the user says nothing, throws, or says nonsense', () => {
      const nonsense: AttemptOptions['classify'][] = [
        () => undefined,
        () => 'nope' as never,
        () => ({ code: 'closed' as never, retryAfterMs: NaN }),
        () => {
          throw new Error('mine');
        },
      ];
      for (const classify of nonsense) {
        expect(fail({ classify })).to.include({ code: 'server_error', retryable: true, retryAfterMs: 5 });
      }
    });

    it('is asked about errors inside a stream and limits, and never about refusals of our own', () => {
      const asked: string[] = [];
      const classify = ({ code }: { code: string }): undefined => void asked.push(code);
      record(stream({ classify }));
      transport.last.data({ error: { type: 'overloaded_error', message: 'x' } });
      record(stream({ classify }));
      runtime.advance(10_000);
      record(stream({ classify }, { model: '' }));
      expect(asked).to.deep.equal(['overloaded', 'timeout']);
    });
  });

  describe('transports that misbehave', () => {
    const call = { api: 'chat', request, stream: true } as const;

    it('stops a synchronous transport when the consumer has enough', () => {
      let made = 0;
      const events = function* (): Iterable<WireEvent> {
        for (;;) {
          made++;
          yield { kind: 'data', value: say('a'), event: undefined };
        }
      };
      const source = (): Observable<WireEvent> => from(events());
      const seen = record(attemptStream(source, call, { runtime }).pipe(take(2)));
      expect(seen.values).to.have.length(2);
      expect(made).to.be.at.most(3);
      expect(runtime.pending).to.equal(0);
    });

    it('turns what a transport throws into its error', () => {
      const throwing = (): never => {
        throw new TypeError('fetch failed');
      };
      expect(record(attemptStream(throwing, call, { runtime })).error.code).to.equal('connection');
    });

    it('turns what a transport fails with into its error', () => {
      const seen = record(stream());
      transport.last.head();
      transport.last.error(Object.assign(new TypeError('terminated'), { cause: { code: 'UND_ERR_SOCKET' } }));
      expect(isSluiceError(seen.error)).to.equal(true);
      expect(seen.error.code).to.equal('connection');
    });

    it('classifies by the status where a transport only ends', () => {
      const seen = record(stream());
      transport.last.head(503);
      transport.last.complete();
      expect(seen.error).to.include({ code: 'server_error', status: 503 });
    });

    it('passes over anything after the end', () => {
      const source = (): Observable<WireEvent> =>
        of<WireEvent[]>(
          { kind: 'data', value: say('a'), event: undefined },
          { kind: 'done' },
          { kind: 'data', value: say('b'), event: undefined },
        );
      const seen = record(attemptStream(source, call, { runtime }));
      expect(seen.values).to.deep.equal([say('a')]);
      expect(seen.ended).to.equal('complete');
    });
  });
});
