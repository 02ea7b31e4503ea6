import { expect } from 'chai';
import fc from 'fast-check';
import { Observable, take } from 'rxjs';
import type { AttemptSource, WireEvent } from '../../lib/core/attempt.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import { isSluiceError } from '../../lib/core/errors.ts';
import { attemptStream } from '../../lib/sources/attemptStream.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import { role, say, stop, usage } from '../helpers/chunks.ts';

const value = fc.oneof(
  fc.constantFrom<unknown>(
    role(),
    say('a'),
    say('b', 1),
    stop(),
    stop('error'),
    stop('stop', 1),
    usage(),
    { error: { message: 'x' } },
    { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { name: 'f', arguments: '{' } }] } }] },
    { type: 'response.created', response: {} },
    { type: 'response.output_text.delta', item_id: 'i', output_index: 0, content_index: 0, delta: 'a' },
    { type: 'response.completed', response: { output: [null, { content: 7 }] } },
    { type: 'error', message: 'x' },
  ),
  fc.anything({ withNullPrototype: true, withDate: true, withMap: true }),
);
const event: fc.Arbitrary<WireEvent> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('data' as const),
      value,
      event: fc.option(fc.constantFrom('error', 'ping', ''), { nil: undefined }),
    }),
  },
  fc.record({
    kind: fc.constant('head' as const),
    status: fc.integer({ min: 0, max: 999 }),
    requestId: fc.option(fc.string(), { nil: undefined }),
    hints: fc.constant(undefined),
  }),
  fc.constantFrom<WireEvent>({ kind: 'done' }, { kind: 'comment' }),
);
const end = fc.oneof(
  fc.constantFrom({ kind: 'complete' as const }, { kind: 'silence' as const }),
  fc.record({
    kind: fc.constant('error' as const),
    thrown: fc.oneof(
      fc.anything(),
      fc.string().map((text) => new Error(text)),
    ),
  }),
  fc.record({ kind: fc.constant('throw' as const), thrown: fc.anything() }),
);

describe('attemptStream, fuzzed', () => {
  it('ends any sequence of wire events once, within its limits, and leaves the transport', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<'chat' | 'responses'>('chat', 'responses'),
        fc.boolean(),
        fc.array(event, { maxLength: 12 }),
        end,
        fc.boolean(),
        fc.option(fc.integer({ min: 1, max: 3 }), { nil: Infinity }),
        (api, stream, events, last, synchronous, wanted) => {
          const runtime = virtualRuntime();
          let left = 0;
          const source: AttemptSource = () =>
            new Observable<WireEvent>((subscriber) => {
              currentScope()?.dispatched(runtime.clock.now());
              const deliver = (): void => {
                for (const next of events) subscriber.next(next);
                if (last.kind === 'complete') subscriber.complete();
                if (last.kind === 'error') subscriber.error(last.thrown);
                if (last.kind === 'throw') throw last.thrown;
              };
              if (synchronous || last.kind === 'throw') deliver();
              else runtime.scheduler.schedule(deliver, 1);
              return () => left++;
            });
          const request = { model: 'm', messages: [{ role: 'user', content: 'hi' }], input: 'hi', n: 2 };
          let ends = 0;
          let values = 0;
          attemptStream(source, { api, request, stream }, { runtime })
            .pipe(take(wanted))
            .subscribe({
              next: () => values++,
              complete: () => ends++,
              error: (error: unknown) => {
                ends++;
                expect(isSluiceError(error)).to.equal(true);
              },
            });
          runtime.advance(3_600_000);
          expect(ends).to.equal(1);
          expect(values).to.be.at.most(wanted);
          if (last.kind !== 'throw') expect(left).to.equal(1);
          expect(runtime.pending, 'timers').to.equal(0);
        },
      ),
      { numRuns: 300 },
    );
  });
});
