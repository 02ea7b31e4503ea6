import { expect } from 'chai';
import { concat, from, NEVER, of, Subject, take, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import { restart } from '../../lib/core/restart.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { lastAnswer } from '../../lib/operators/lastAnswer.ts';
import { text } from '../../lib/operators/text.ts';
import { marbles } from '../helpers/marbles.ts';
import { seen } from '../helpers/seen.ts';

const parts = (...values: readonly unknown[]): Observable<AnswerPart> => from(values as AnswerPart[]);
const delta = (fields: object, more: object = {}): object => ({
  id: 'c1',
  choices: [{ index: 0, delta: fields, ...more }],
});
const say = (content: unknown): object => delta({ content });
const said = (...values: readonly unknown[]): unknown[] => seen(parts(...values).pipe(text())).seen;

describe('text', () => {
  it(
    'emits the text of each chunk as it comes, and nothing for chunks without',
    marbles((m) => {
      const values = { r: delta({ role: 'assistant', content: '' }), a: say('Hel'), b: say('lo'), s: delta({}) };
      const source = m.cold<AnswerPart>('r-a---b-s|', values as unknown as Record<string, AnswerPart>);
      m.expectObservable(source.pipe(text())).toBe('--a---b--|', { a: 'Hel', b: 'lo' });
      m.expectSubscriptions(source.subscriptions).toBe('^--------!');
    }),
  );

  it('passes nothing but text: no reasoning, refusal or tool call', () => {
    expect(
      said(
        delta({ content: null, reasoning_content: 'think' }),
        delta({ refusal: 'no' }),
        delta({ tool_calls: [{ function: { arguments: '{}' } }, { function: { arguments: '{}' } }] }),
        delta({ content: '2', reasoning_content: null }),
        say([{ type: 'image', id: 'i' }]),
        delta({ audio: { data: 'AAAA' } }),
      ),
    ).to.deep.equal(['2', '|']);
  });

  it('takes the first choice only, also where it has no index', () => {
    const both = {
      choices: [
        { index: 1, delta: { content: 'B' } },
        { index: 0, delta: { content: 'A' } },
      ],
    };
    const other = { choices: [{ index: 1, delta: { content: 'b' } }] };
    expect(said(both, other, { choices: [{ delta: { content: 'a' } }] })).to.deep.equal(['A', 'a', '|']);
  });

  it('takes chunks without choices, delta or anything as chunks without text', () => {
    expect(
      said({ choices: [] }, { choices: [{ index: 0 }] }, { choices: [null] }, {}, null, undefined, 7, say('x')),
    ).to.deep.equal(['x', '|']);
  });

  it('reads content that comes as a list of parts', () => {
    const content = [
      { type: 'thinking', thinking: [{ text: 'hm' }] },
      { type: 'text', text: 'yes' },
    ];
    expect(said(say(content))).to.deep.equal(['yes', '|']);
  });

  it('reads whole answers', () => {
    expect(said({ choices: [{ index: 0, message: { content: 'whole' } }] })).to.deep.equal(['whole', '|']);
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'response' }] }];
    expect(said({ object: 'response', status: 'completed', output })).to.deep.equal(['response', '|']);
  });

  it('reads the events of the Responses API, and no text twice', () => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }];
    expect(
      said(
        { type: 'response.created', response: { status: 'in_progress' } },
        { type: 'response.reasoning_text.delta', delta: 'hm' },
        { type: 'response.output_text.delta', delta: 'Hel' },
        { type: 'response.output_text.delta', delta: 'lo' },
        { type: 'response.output_text.done', text: 'Hello' },
        { type: 'response.output_item.done', item: output[0] },
        { type: 'response.completed', response: { status: 'completed', output } },
      ),
    ).to.deep.equal(['Hel', 'lo', '|']);
  });

  it('adds up to the text of the answer', async () => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'only at the end' }] }];
    const streams = [
      [
        say('Hel'),
        delta({ content: 'lo', reasoning: 'hm' }),
        { choices: [{ text: '!' }] },
        delta({}, { finish_reason: 'stop' }),
      ],
      [{ type: 'response.completed', response: { status: 'completed', output } }],
      [{ type: 'response.output_text.done', text: 'whole part' }],
      [
        { type: 'response.refusal.delta', delta: 'no' },
        { type: 'response.completed', response: { output } },
      ],
      [
        { type: 'response.reasoning_text.delta', delta: 'hm' },
        { type: 'response.completed', response: { output } },
      ],
      [
        { type: 'response.image_generation_call.partial_image', partial_image_b64: 'AAAA' },
        { type: 'response.completed', response: { output } },
      ],
      [
        { type: 'response.output_item.added', item: { type: 'function_call', call_id: 't1', name: 'f' } },
        { type: 'response.function_call_arguments.delta', item_id: 'x', delta: '{}' },
        { type: 'response.completed', response: { output } },
      ],
    ];
    for (const stream of streams) {
      const { text: whole } = await lastAnswer(parts(...stream));
      expect(
        said(...stream)
          .slice(0, -1)
          .join(''),
      ).to.equal(whole);
    }
  });

  describe('where the answer starts over', () => {
    const again = restart('stream_truncated', 'm2');

    it('fails with the code of the failure once text has been emitted', () => {
      const [first, error, ...rest] = said(say('Hel'), again, say('Hello'));
      expect(first).to.equal('Hel');
      expect(error).to.be.instanceOf(SluiceError);
      expect(error).to.include({ code: 'stream_truncated', model: 'm2', while: 'streaming' });
      expect((error as SluiceError).message).to.include('text cannot be taken back');
      expect(rest).to.deep.equal([]);
    });

    it('goes on where no text has been emitted', () => {
      expect(said(delta({ reasoning_content: 'hm' }), again, say('Hello'))).to.deep.equal(['Hello', '|']);
    });

    it('passes the restart on where told, so that the consumer can drop what came before', () => {
      const source = parts(again, say('Hel'), again, again, say('Hello'));
      expect(seen(source.pipe(text({ restarts: 'pass' }))).seen).to.deep.equal(['Hel', again, 'Hello', '|']);
    });

    it('reads the new answer afresh', () => {
      const done = { type: 'response.output_text.done', text: 'Hello' };
      const source = parts({ type: 'response.output_text.delta', delta: 'Hel' }, again, done);
      expect(seen(source.pipe(text({ restarts: 'pass' }))).seen).to.deep.equal(['Hel', again, 'Hello', '|']);
    });
  });

  it('passes errors on after the text before them', () => {
    const error = new SluiceError('stream_idle', 'idle');
    const source = concat(
      parts(say('a')),
      throwError(() => error),
    );
    expect(seen(source.pipe(text())).seen).to.deep.equal(['a', error]);
  });

  it('is empty where the source is, silent where it is, and unsubscribes from it', () => {
    expect(said()).to.deep.equal(['|']);
    expect(seen(NEVER.pipe(text())).seen).to.deep.equal([]);
    const source = new Subject<AnswerPart>();
    seen(source.pipe(text())).subscription.unsubscribe();
    expect(source.observed).to.be.false;
    expect(seen(parts(say('a'), say('b'), say('c')).pipe(text(), take(2))).seen).to.deep.equal(['a', 'b', '|']);
  });

  it('starts afresh for each subscription', () => {
    const pieces$ = parts(say('Hel')).pipe(text());
    seen(pieces$);
    const restarted$ = concat(of(restart('connection', undefined)), parts(say('Hello'))).pipe(text());
    expect(seen(restarted$).seen).to.deep.equal(['Hello', '|']);
    expect(seen(restarted$).seen).to.deep.equal(['Hello', '|']);
  });

  it('refuses a wrong option when it is made', () => {
    expect(() => text({ restarts: 'drop' as 'pass' })).to.throw(SluiceError, 'restarts must be one of fail, pass');
  });
});
