import { expect } from 'chai';
import { concat, defer, EMPTY, from, NEVER, of, Subject, take, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Answer } from '../../lib/core/answer.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { Usage } from '../../lib/core/hints.ts';
import { restart } from '../../lib/core/restart.ts';
import { answer } from '../../lib/operators/answer.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { fallbackModel } from '../../lib/operators/fallbackModel.ts';
import { lastAnswer } from '../../lib/operators/lastAnswer.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { speakingSource } from '../helpers/speakingSource.ts';
import { seen } from '../helpers/seen.ts';

const parts = (...values: readonly unknown[]): Observable<AnswerPart> => from(values as AnswerPart[]);
const delta = (fields: object, more: object = {}): object => ({
  id: 'c1',
  choices: [{ index: 0, delta: fields, ...more }],
});
const tool = (piece: object): object => delta({ tool_calls: [piece] });
const snapshots = (...values: readonly unknown[]): Answer[] =>
  seen(parts(...values).pipe(answer())).seen.slice(0, -1) as Answer[];

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const hello = [
  { model: 'm-1', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] },
  delta({ reasoning_content: 'hm' }),
  delta({ content: 'Hel' }),
  delta({ content: 'lo' }),
  delta({}, { finish_reason: 'stop' }),
  { choices: [], usage },
];

describe('answer', () => {
  it('emits a growing snapshot for each chunk', () => {
    const all = snapshots(...hello);
    expect(all.map(({ text }) => text)).to.deep.equal(['', '', 'Hel', 'Hello', 'Hello', 'Hello']);
    expect(all.map(({ empty }) => empty)).to.deep.equal([true, false, false, false, false, false]);
    expect(all.map(({ finishReason }) => finishReason)).to.deep.equal([null, null, null, null, 'stop', 'stop']);
    expect(all.at(-1)).to.deep.include({ reasoning: 'hm', model: 'm-1', restarts: 0, refusal: '', toolCalls: [] });
    expect(all.at(-1)?.usage?.totalTokens).to.equal(5);
  });

  it('emits once, at the end, where told', () => {
    const { seen: last } = seen(parts(...hello).pipe(answer({ emit: 'last' })));
    expect(last).to.deep.equal([snapshots(...hello).at(-1), '|']);
  });

  it('emits nothing for an empty source, or an empty answer where told to emit the last', () => {
    expect(seen(parts().pipe(answer())).seen).to.deep.equal(['|']);
    const { seen: last } = seen(parts().pipe(answer({ emit: 'last' })));
    expect(last[0]).to.deep.include({ text: '', empty: true, restarts: 0, choices: [] });
  });

  it('starts over at a restart, and counts it', () => {
    const again = restart('stream_idle', undefined);
    const all = snapshots(delta({ content: 'Hel' }), again, delta({ content: 'Good' }), again, delta({ content: 'x' }));
    expect(all.map(({ text, restarts }) => [text, restarts])).to.deep.equal([
      ['Hel', 0],
      ['', 1],
      ['Good', 1],
      ['', 2],
      ['x', 2],
    ]);
  });

  it('leaves earlier snapshots as they were', () => {
    const all = snapshots(
      tool({ index: 0, id: 't', function: { name: 'f', arguments: '{' } }),
      tool({ index: 0, function: { arguments: '}' } }),
    );
    expect(all.map(({ toolCalls }) => toolCalls[0]?.arguments)).to.deep.equal(['{', '{}']);
  });

  it('tells the two APIs apart, also where a vendor leaves fields out or adds some', () => {
    expect(snapshots({ type: 'chunk', choices: [{ delta: { content: 'a' } }] })[0]?.text).to.equal('a');
    expect(snapshots({ type: 'response.output_text.delta', delta: 'b' })[0]?.text).to.equal('b');
    expect(snapshots({ object: 'response', output_text: 'c', status: 'completed' })[0]?.text).to.equal('c');
    expect(snapshots({ object: 'chat.completion.chunk', usage })[0]?.usage).to.include({ totalTokens: 5 });
    expect(snapshots({ object: 'chat.completion', choices: [{ message: { content: 'd' } }] })[0]?.text).to.equal('d');
  });

  it('reports a piece of a tool call that could belong to several, with what had come', () => {
    const source = parts(
      tool({ id: 't1', function: { name: 'f', arguments: '{' } }),
      tool({ id: 't2', function: { name: 'g', arguments: '{' } }),
      tool({ function: { arguments: '}' } }),
    );
    const error = seen(source.pipe(answer())).seen.at(-1) as SluiceError;
    expect(error).to.include({ code: 'upstream_body_invalid' });
    expect(error.partial?.toolCalls.map(({ id }) => id)).to.deep.equal(['t1', 't2']);
  });

  it('passes errors on after the snapshots before them', () => {
    const error = new SluiceError('connection', 'cut');
    const source = concat(
      parts(delta({ content: 'a' })),
      throwError(() => error),
    );
    expect(seen(source.pipe(answer())).seen.map((value) => (value as Answer).text ?? value)).to.deep.equal([
      'a',
      error,
    ]);
    expect(seen(source.pipe(answer({ emit: 'last' }))).seen).to.deep.equal([error]);
  });

  it('starts afresh for each subscription, is silent where the source is, and unsubscribes from it', () => {
    const twice$ = parts(delta({ content: 'a' })).pipe(answer());
    for (const {
      seen: [first],
    } of [seen(twice$), seen(twice$)])
      expect((first as Answer).text).to.equal('a');
    expect(seen(NEVER.pipe(answer({ emit: 'last' }))).seen).to.deep.equal([]);
    const source = new Subject<AnswerPart>();
    seen(source.pipe(answer())).subscription.unsubscribe();
    expect(source.observed).to.be.false;
    expect(seen(parts(...hello).pipe(answer(), take(2))).seen).to.have.length(3);
  });

  describe('usage that the source reports to its scope alone', () => {
    const spoken = { inputTokens: 3, outputTokens: 2, totalTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };
    const told = (usage: Usage | undefined, ...values: readonly unknown[]): Observable<AnswerPart> => {
      const runtime = virtualRuntime();
      return defer(() => {
        const scope = currentScope();
        const body = concat(parts(...values), usage ? defer(() => (scope?.usage(usage), EMPTY)) : EMPTY);
        return speakingSource(runtime, body);
      });
    };

    it('comes with one more snapshot at the end', () => {
      const all = seen(told(spoken, delta({ content: 'Hi' })).pipe(answer())).seen as Answer[];
      expect(all.slice(0, -1).map(({ text, usage: its }) => [text, its])).to.deep.equal([
        ['Hi', undefined],
        ['Hi', spoken],
      ]);
    });

    it('comes with the only snapshot where told to emit the last', async () => {
      expect(await lastAnswer(told(spoken, delta({ content: 'Hi' })))).to.deep.include({ text: 'Hi', usage: spoken });
    });

    it('gives way to usage that the stream shows', () => {
      const shown = { choices: [], usage };
      const all = seen(told({ ...spoken, totalTokens: 9 }, delta({ content: 'Hi' }), shown).pipe(answer())).seen;
      expect(all.length).to.equal(3);
      expect((all[1] as Answer).usage?.totalTokens).to.equal(5);
    });

    it('is that of the attempt that answered', async () => {
      const failing = concat(
        told(spoken),
        throwError(() => new SluiceError('connection', 'reset')),
      );
      const second = told(undefined, delta({ content: 'Hi' }));
      const result = await lastAnswer(failing.pipe(fallbackModel(['m2'], () => second)));
      expect(result).to.deep.include({ text: 'Hi', usage: undefined });
    });

    it('belongs to the call of whoever is downstream', () => {
      let heard: Usage | undefined;
      const scope = CallScope.start(virtualRuntime(), { sink: { usage: (its) => (heard = its) } });
      runInScope(scope, () => seen(told(spoken, delta({ content: 'Hi' })).pipe(answer())));
      expect(heard).to.equal(spoken);
    });
  });

  it('refuses a wrong option when it is made', () => {
    expect(() => answer({ emit: 'none' as 'last' })).to.throw(SluiceError, 'emit must be one of each, last');
  });
});

describe('lastAnswer', () => {
  it('resolves with the whole answer of a stream', async () => {
    expect(await lastAnswer(parts(...hello))).to.include({ text: 'Hello', finishReason: 'stop', reasoning: 'hm' });
  });

  it('resolves with an answer that came whole', async () => {
    const whole = {
      object: 'chat.completion',
      model: 'm',
      usage,
      choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }],
    };
    const result = await lastAnswer(parts(whole));
    expect(result).to.include({ text: 'Hi', finishReason: 'stop', model: 'm', empty: false });
    expect(result.usage?.inputTokens).to.equal(3);
  });

  it('resolves with the answer after the last restart', async () => {
    const result = await lastAnswer(
      parts(delta({ content: 'Hel' }), restart('connection', 'm2'), delta({ content: 'Good' })),
    );
    expect(result).to.include({ text: 'Good', restarts: 1 });
  });

  it('resolves with an empty answer where nothing came', async () => {
    expect(await lastAnswer(of())).to.include({ text: '', empty: true, finishReason: null });
  });

  it('rejects with the error of the source', async () => {
    const error = new SluiceError('rate_limited', 'slow down');
    const failed = await lastAnswer(throwError(() => error)).catch((thrown: unknown) => thrown);
    expect(failed).to.equal(error);
  });
});
