import { expect } from 'chai';
import { defer, from, Subject, take, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import type { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import { restart } from '../../lib/core/restart.ts';
import { isAnswerEvent, merged } from '../../lib/http/AnswerEvent.ts';
import type { AnswerEvent } from '../../lib/http/AnswerEvent.ts';
import { toAnswerEvents } from '../../lib/http/toAnswerEvents.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { lastAnswer } from '../../lib/operators/lastAnswer.ts';
import { role, say, stop, usage, whole } from '../helpers/chunks.ts';
import { marbles } from '../helpers/marbles.ts';
import { seen } from '../helpers/seen.ts';

const parts = (...values: readonly unknown[]): Observable<AnswerPart> => from(values as AnswerPart[]);
const events = (...values: readonly unknown[]): AnswerEvent[] =>
  seen(parts(...values).pipe(toAnswerEvents())).seen.slice(0, -1) as AnswerEvent[];
const told = (...values: readonly unknown[]): unknown[] => events(...values).map(({ type, data }) => [type, data]);
const end = (more: object = {}): unknown[] => [
  'done',
  { finishReason: 'stop', model: 'm1-2026', empty: false, ...more },
];
const delta = (fields: object, index = 0): object => ({ model: 'm1-2026', choices: [{ index, delta: fields }] });
const counted = {
  inputTokens: 3,
  outputTokens: 2,
  totalTokens: 5,
  cachedInputTokens: undefined,
  reasoningTokens: undefined,
};

describe('toAnswerEvents', () => {
  it(
    'tells each piece as it comes, and the end with the end',
    marbles((m) => {
      const values = { r: role(), a: say('Hel'), b: say('lo'), s: stop() } as unknown as Record<string, AnswerPart>;
      const source = m.cold('r-a---b-s---|', values);
      m.expectObservable(source.pipe(toAnswerEvents())).toBe('--a---b-----(d|)', {
        a: { id: '1', type: 'delta', data: { index: 0, text: 'Hel' } },
        b: { id: '2', type: 'delta', data: { index: 0, text: 'lo' } },
        d: { id: '3', type: 'done', data: { finishReason: 'stop', model: 'm1-2026', empty: false } },
      });
      m.expectSubscriptions(source.subscriptions).toBe('^-----------!');
    }),
  );

  it('tells usage once, before the end', () => {
    expect(told(say('a'), stop(), usage())).to.deep.equal([
      ['delta', { index: 0, text: 'a' }],
      ['usage', counted],
      end(),
    ]);
  });

  it('tells usage that the scope heard of and no chunk shows', () => {
    const source = new Subject<AnswerPart>();
    let scope: CallScope | undefined;
    const scoped = defer(() => {
      scope = currentScope();
      return source;
    });
    const { seen: list } = seen(scoped.pipe(toAnswerEvents()));
    scope?.usage(counted);
    source.complete();
    expect((list[0] as AnswerEvent).data).to.deep.equal(counted);
  });

  it('tells reasoning, refusals and tool calls apart from text', () => {
    const call = (fields: object): object => delta({ tool_calls: [{ index: 0, ...fields }] });
    expect(
      told(
        delta({ reasoning_content: 'hm' }),
        delta({ refusal: 'no' }),
        call({ id: 't1', function: { name: 'find', arguments: '' } }),
        call({ function: { arguments: '{"a"' } }),
        call({ function: { arguments: ':1}' } }),
        stop('tool_calls'),
      ),
    ).to.deep.equal([
      ['reasoning', { index: 0, text: 'hm' }],
      ['refusal', { index: 0, text: 'no' }],
      ['tool_call', { index: 0, call: 0, id: 't1', name: 'find', arguments: '' }],
      ['tool_call', { index: 0, call: 0, arguments: '{"a"' }],
      ['tool_call', { index: 0, call: 0, arguments: ':1}' }],
      end({ finishReason: 'tool_calls' }),
    ]);
  });

  it('numbers choices, and names the end of each', () => {
    expect(told(say('a'), say('b', 1), stop(), stop('length', 1))).to.deep.equal([
      ['delta', { index: 0, text: 'a' }],
      ['delta', { index: 1, text: 'b' }],
      end({ finishReasons: ['stop', 'length'] }),
    ]);
  });

  it('reads whole answers', () => {
    expect(told(whole('all of it'))).to.deep.equal([
      ['delta', { index: 0, text: 'all of it' }],
      ['usage', counted],
      end(),
    ]);
  });

  it('reads the Responses API, and no text twice', () => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }];
    const call = { type: 'function_call', id: 'i1', call_id: 't1', name: 'find', arguments: '' };
    expect(
      told(
        { type: 'response.created', response: { status: 'in_progress' } },
        { type: 'response.output_text.delta', delta: 'Hel' },
        { type: 'response.output_text.delta', delta: 'lo' },
        { type: 'response.output_text.done', text: 'Hello' },
        { type: 'response.output_item.added', output_index: 1, item: call },
        { type: 'response.function_call_arguments.delta', item_id: 'i1', output_index: 1, delta: '{}' },
        { type: 'response.function_call_arguments.done', item_id: 'i1', output_index: 1, arguments: '{}' },
        { type: 'response.completed', response: { status: 'completed', model: 'm2', output } },
      ),
    ).to.deep.equal([
      ['delta', { index: 0, text: 'Hel' }],
      ['delta', { index: 0, text: 'lo' }],
      ['tool_call', { index: 0, call: 0, id: 't1', name: 'find', arguments: '' }],
      ['tool_call', { index: 0, call: 0, arguments: '{}' }],
      end({ finishReason: 'completed', model: 'm2' }),
    ]);
  });

  it('says that an answer was empty, also where nothing came at all', () => {
    expect(told(role(), stop())).to.deep.equal([end({ empty: true })]);
    expect(told()).to.deep.equal([end({ finishReason: null, model: null, empty: true })]);
  });

  it('takes parts that are nothing as parts without content', () => {
    expect(told(null, 7, {}, { choices: [null] }, say('x'))).to.have.length(2);
  });

  it('tells of a restart, unless nothing had been told', () => {
    const again = restart('stream_truncated', 'm2');
    expect(told(role(), again, say('a'), again, say('b'), stop())).to.deep.equal([
      ['delta', { index: 0, text: 'a' }],
      ['reset', { code: 'stream_truncated', model: 'm2' }],
      ['delta', { index: 0, text: 'b' }],
      end(),
    ]);
  });

  it('passes events as they are, and ends with theirs', () => {
    const given: AnswerEvent[] = [
      { id: 'x-7', type: 'delta', data: { index: 0, text: 'a' } },
      { id: 'x-8', type: 'done', data: { finishReason: 'stop', model: null, empty: false } },
    ];
    expect(events(...given)).to.deep.equal(given);
  });

  it('numbers events that have no id', () => {
    expect(events({ type: 'delta', data: { index: 0, text: 'a' } }).map(({ id }) => id)).to.deep.equal(['1', '2']);
  });

  it('counts from the start for each subscription', () => {
    const source = parts(say('a')).pipe(toAnswerEvents());
    expect(seen(source).seen).to.deep.equal(seen(source).seen);
  });

  it('passes an error on, after what came before it', () => {
    const failure = new Error('no');
    const { seen: list } = seen(throwError(() => failure).pipe(toAnswerEvents()));
    expect(list).to.deep.equal([failure]);
  });

  it('fails for a piece of a tool call that could belong to several', () => {
    const piece = (fields: object): object => delta({ tool_calls: [fields] });
    const list = seen(
      parts(
        piece({ id: 'a', function: { name: 'f', arguments: '{' } }),
        piece({ id: 'b', function: { name: 'f', arguments: '{' } }),
        piece({ function: { arguments: '}' } }),
      ).pipe(toAnswerEvents()),
    ).seen;
    expect(list.at(-1)).to.have.property('code', 'upstream_body_invalid');
  });

  it('stops a synchronous source when there is enough', () => {
    let made = 0;
    const source = from(
      (function* (): Generator<AnswerPart> {
        for (;;) {
          made++;
          yield say('x') as unknown as AnswerPart;
        }
      })(),
    );
    seen(source.pipe(toAnswerEvents(), take(3)));
    expect(made).to.equal(3);
  });

  it('unsubscribes from the source in the same tick', () => {
    const source = new Subject<AnswerPart>();
    const { subscription } = seen(source.pipe(toAnswerEvents()));
    subscription.unsubscribe();
    expect(source.observed).to.equal(false);
  });

  it('adds up to what lastAnswer puts together', async () => {
    const stream = [role(), say('He'), delta({ reasoning: 'r1' }), say('llo'), delta({ reasoning: 'r2' }), stop()];
    const answer = await lastAnswer(parts(...stream));
    const sum = (type: string): string =>
      events(...stream)
        .filter((event) => event.type === type)
        .map(({ data }) => (data as { readonly text: string }).text)
        .join('');
    expect([sum('delta'), sum('reasoning')]).to.deep.equal([answer.text, answer.reasoning]);
  });
});

describe('isAnswerEvent', () => {
  it('takes no part of either API for an event', () => {
    for (const part of [say('x'), usage(), whole('x'), { type: 'response.created', response: {} }, { type: 'error' }]) {
      expect(isAnswerEvent(part)).to.equal(false);
    }
  });
});

describe('merged', () => {
  const text = (type: 'delta' | 'reasoning', words: string, id: string, index = 0): AnswerEvent => ({
    id,
    type,
    data: { index, text: words },
  });

  it('joins text of the same kind and choice, under the later id', () => {
    expect(merged(text('delta', 'a', '1'), text('delta', 'b', '2'))).to.deep.equal(text('delta', 'ab', '2'));
    expect(merged(text('delta', 'a', '1'), text('reasoning', 'b', '2'))).to.equal(undefined);
    expect(merged(text('delta', 'a', '1'), text('delta', 'b', '2', 1))).to.equal(undefined);
  });

  it('joins the arguments of one tool call', () => {
    const piece = (id: string, data: object): AnswerEvent =>
      ({ id, type: 'tool_call', data: { index: 0, call: 0, ...data } }) as AnswerEvent;
    expect(merged(piece('1', { id: 't', name: 'f', arguments: '{' }), piece('2', { arguments: '}' }))).to.deep.equal(
      piece('2', { id: 't', name: 'f', arguments: '{}' }),
    );
    expect(merged(piece('1', { arguments: '' }), piece('2', { call: 1, arguments: '' }))).to.equal(undefined);
  });

  it('keeps everything else apart', () => {
    const done: AnswerEvent = { type: 'done', data: { finishReason: null, model: null, empty: true } };
    expect(merged(done, done)).to.equal(undefined);
    expect(merged(done, text('delta', 'a', '1'))).to.equal(undefined);
  });
});
