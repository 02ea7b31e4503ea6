import { expect } from 'chai';
import fc from 'fast-check';
import { AnswerAssembler, assemblerOf } from '../../lib/wire/AnswerAssembler.ts';
import { ChoiceBuilder } from '../../lib/wire/ChoiceBuilder.ts';

const delta = (fields: object, index = 0): object => ({ choices: [{ index, delta: fields }] });
const tools = (...pieces: readonly object[]): object => delta({ tool_calls: pieces });

function assemble(...chunks: readonly object[]): AnswerAssembler {
  const assembler = new AnswerAssembler();
  for (const chunk of chunks) assembler.addChat(chunk);
  return assembler;
}

const callsOf = (...chunks: readonly object[]): unknown =>
  assemble(...chunks)
    .snapshot()
    .toolCalls.map(({ id, name, arguments: args }) => [id, name, args]);

describe('AnswerAssembler', () => {
  it('starts empty', () => {
    expect(new AnswerAssembler().snapshot()).to.deep.equal({
      text: '',
      reasoning: '',
      refusal: '',
      toolCalls: [],
      finishReason: null,
      choices: [],
      usage: undefined,
      model: undefined,
      restarts: 0,
      empty: true,
    });
  });

  it('puts text, reasoning, refusal, reason, usage and model together', () => {
    const answer = assemble(
      { model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] },
      delta({ content: null, reasoning_content: 'th' }),
      delta({ reasoning: 'ink' }),
      delta({ content: 'Hel', reasoning_content: null }),
      delta({ content: 'lo', refusal: 'no' }),
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
    ).snapshot();
    expect(answer).to.deep.include({
      text: 'Hello',
      reasoning: 'think',
      refusal: 'no',
      finishReason: 'stop',
      model: 'm',
      empty: false,
    });
    expect(answer.usage?.totalTokens).to.equal(5);
  });

  it('takes a text of reasoning that has two names once', () => {
    const answer = assemble(
      delta({ reasoning: 'x', reasoning_content: 'x', reasoning_details: [{ text: 'x' }] }),
    ).snapshot();
    expect(answer.reasoning).to.equal('x');
  });

  it('takes content that comes as a list of parts', () => {
    const answer = assemble(
      delta({
        content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'th' }, { summary: 'ink' }, null, {}] }],
      }),
      delta({ content: [{ type: 'reasoning', text: '!' }, { type: 'thinking', thinking: '' }, null] }),
      delta({
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'text', text: '' },
        ],
      }),
    ).snapshot();
    expect(answer).to.deep.include({ text: 'Hi', reasoning: 'think!', empty: false });
  });

  it('is not empty with a part that is no text', () => {
    expect(assemble(delta({ content: [{ type: 'image', id: 'i' }] })).snapshot().empty).to.equal(false);
    expect(assemble(delta({ content: [{ type: 'text', text: '' }, null] })).snapshot().empty).to.equal(true);
  });

  it('keeps choices apart, in the order of their indexes', () => {
    const answer = assemble(
      delta({ content: 'b' }, 1),
      delta({ content: 'a' }, 0),
      delta({ content: 'B' }, 1),
    ).snapshot();
    expect(answer.choices.map(({ index, text }) => [index, text])).to.deep.equal([
      [0, 'a'],
      [1, 'bB'],
    ]);
    expect(answer.text).to.equal('a');
  });

  it('takes a choice whose index is no whole number of 0 or more for the first', () => {
    for (const index of [-1, 1.5, NaN, '1', null, undefined]) {
      const answer = assemble(delta({ content: 'a' }), { choices: [{ index, delta: { content: 'b' } }] }).snapshot();
      expect(answer.choices.map((choice) => [choice.index, choice.text])).to.deep.equal([[0, 'ab']]);
    }
  });

  it('says of a chunk whether it held content', () => {
    const assembler = new AnswerAssembler();
    for (const chunk of [undefined, null, 'x', [], {}, { choices: 'x' }, { choices: [null] }, delta({})]) {
      expect(assembler.addChat(chunk), JSON.stringify(chunk)).to.equal(false);
      expect(assembler.addResponses(chunk), JSON.stringify(chunk)).to.equal(false);
    }
    const second = { index: 1, delta: {} };
    expect(assembler.addChat({ choices: [{ index: 0, delta: { content: 'a' } }, second] })).to.equal(true);
    expect(assembler.addResponses({ type: 'response.output_text.delta', delta: 'a' })).to.equal(true);
  });

  it('is empty or blank when all choices are', () => {
    const stateOf = (...texts: readonly string[]): readonly boolean[] => {
      const assembler = assemble(...texts.map((content, index) => delta({ content }, index)));
      return [assembler.empty, assembler.blank];
    };
    expect(stateOf('', '')).to.deep.equal([true, true]);
    expect(stateOf('', ' ')).to.deep.equal([false, true]);
    expect(stateOf('', 'a')).to.deep.equal([false, false]);
  });

  it('tells how many choices came, and why those that ended did', () => {
    const end = (index: number, reason: string): object => ({ choices: [{ index, delta: {}, finish_reason: reason }] });
    const assembler = assemble(delta({ content: 'a' }), end(2, 'length'), end(1, 'stop'));
    expect(assembler).to.deep.include({ choiceCount: 3, finishedCount: 2, finishReasons: ['stop', 'length'] });
  });

  describe('keeps of what names the answer', () => {
    const named = { id: 'a1', model: 'm', service_tier: 'flex', system_fingerprint: 'fp' };
    const namesOf = ({ id, model, serviceTier, systemFingerprint }: AnswerAssembler): object => ({
      id,
      model,
      service_tier: serviceTier,
      system_fingerprint: systemFingerprint,
    });

    it('what was said last', () => {
      const later = { id: 'a2', model: 'm2', service_tier: 'default', system_fingerprint: 'fp2' };
      expect(namesOf(assemble(named))).to.deep.equal(named);
      expect(namesOf(assemble(named, later))).to.deep.equal(later);
    });

    it('what was said before, where later chunks do not say it', () => {
      const none = { id: null, model: null, service_tier: null, system_fingerprint: null };
      expect(namesOf(assemble(named, none, {}, { id: '', model: '' }))).to.deep.equal(named);
    });

    it('nothing when it starts over', () => {
      const assembler = assemble(named);
      assembler.restart();
      expect(Object.values(namesOf(assembler))).to.deep.equal([undefined, undefined, undefined, undefined]);
    });

    it("what a Responses event says within its response, or a response's body itself", () => {
      for (const event of [
        { type: 'response.created', response: named },
        { object: 'response', ...named },
      ]) {
        const assembler = new AnswerAssembler();
        assembler.addResponses(event);
        assembler.addResponses({ type: 'response.output_text.delta', id: 'other', model: 'other', delta: 'a' });
        assembler.addResponses({ type: 'response.in_progress', response: { id: 5, model: 5 } });
        expect(namesOf(assembler)).to.deep.equal(named);
      }
    });
  });

  describe('counts', () => {
    const counted = (total: number): object => ({ prompt_tokens: total, completion_tokens: 0, total_tokens: total });
    const told = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 };
    const totalOf = (...usages: readonly unknown[]): number | undefined =>
      assemble(...usages.map((usage) => ({ usage }))).usage?.totalTokens;

    it('what the last report says, but for one of zeros only', () => {
      expect(totalOf(counted(5), counted(7))).to.equal(7);
      expect(totalOf(counted(5), counted(0))).to.equal(5);
      expect(totalOf(counted(0))).to.equal(0);
    });

    it('what a vendor reports in a place of its own, while the usual one is null', () => {
      expect(assemble({ usage: null, x_groq: { usage: counted(5) } }).usage?.totalTokens).to.equal(5);
      const choices = [{ index: 0, usage: counted(6) }];
      expect(assemble({ choices }).usage?.totalTokens).to.equal(6);
      expect(assemble({ x_groq: { id: 'req_1' }, choices }).usage?.totalTokens).to.equal(6);
    });

    it("what a Responses event reports, or a response's body", () => {
      const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
      for (const event of [
        { type: 'response.completed', response: { usage } },
        { object: 'response', usage },
      ]) {
        const assembler = new AnswerAssembler();
        assembler.addResponses(event);
        assembler.addResponses({ type: 'response.output_text.delta', delta: 'a', usage: counted(9) });
        expect(assembler.usage?.totalTokens).to.equal(5);
      }
    });

    it('what it is told, until a chunk reports it', () => {
      const assembler = new AnswerAssembler();
      assembler.addUsage(told);
      assembler.addUsage({ ...told, totalTokens: 9 });
      assembler.addChat({ choices: [] });
      assembler.addResponses({ type: 'response.created', response: { usage: null } });
      expect(assembler.usage).to.equal(told);
      assembler.addChat({ usage: counted(5) });
      expect(assembler.usage?.totalTokens).to.equal(5);
    });

    it('once, however often it is asked', () => {
      const assembler = assemble({ usage: counted(5) });
      expect(assembler.usage).to.equal(assembler.snapshot().usage);
    });
  });

  it('tells each piece to the builders that it is given', () => {
    const heard: string[] = [];
    class Listener extends ChoiceBuilder {
      override addText(text: string): void {
        heard.push(`${this.index}: ${text}`);
      }
    }
    const assembler = assemblerOf((index) => new Listener(index));
    for (const [index, content] of ['a', 'b'].entries()) assembler.addChat(delta({ content }, index));
    expect(heard).to.deep.equal(['0: a', '1: b']);
  });

  it('starts over and counts how often', () => {
    const assembler = assemble(delta({ content: 'Hel' }), {
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    });
    assembler.restart();
    expect(assembler.snapshot()).to.include({ text: '', restarts: 1, usage: undefined, empty: true });
    assembler.addChat(delta({ content: 'Hello' }));
    expect(assembler.snapshot()).to.include({ text: 'Hello', restarts: 1 });
  });

  it('shares what did not change with the snapshot before, and never changes one that was given out', () => {
    const assembler = assemble(
      tools({ index: 0, id: 't1', function: { name: 'f', arguments: '{}' } }),
      tools({ index: 1, id: 't2', function: { name: 'g', arguments: '{' } }),
    );
    const before = assembler.snapshot();
    const copy = structuredClone(before);
    assembler.addChat(tools({ index: 1, function: { arguments: '}' } }));
    const after = assembler.snapshot();
    expect(after.toolCalls[0]).to.equal(before.toolCalls[0]);
    expect(after.toolCalls[1]?.arguments).to.equal('{}');
    expect(before).to.deep.equal(copy);
    for (const chunk of [{ choices: [] }, delta({ function_call: null }), delta({ annotations: [{}] })]) {
      assembler.addChat(chunk);
      expect(assembler.snapshot().choices[0], JSON.stringify(chunk)).to.equal(after.choices[0]);
    }
  });

  describe('tool calls', () => {
    it('are grouped by index, ids or not', () => {
      expect(
        callsOf(
          tools(
            { index: 0, id: 't1', function: { name: 'f', arguments: '' } },
            { index: 1, id: 't2', function: { name: 'g', arguments: '{"b"' } },
          ),
          tools({ index: 0, function: { arguments: '{"a":1}' } }, { index: 1, function: { arguments: ':2}' } }),
        ),
      ).to.deep.equal([
        ['t1', 'f', '{"a":1}'],
        ['t2', 'g', '{"b":2}'],
      ]);
    });

    it('are grouped by id where there is no index, interleaved too', () => {
      expect(
        callsOf(
          tools({ id: 't1', function: { name: 'f', arguments: '{"a"' } }),
          tools({ id: 't2', function: { name: 'g', arguments: '{"b"' } }),
          tools({ id: 't1', function: { arguments: ':1}' } }),
          tools({ id: 't2', function: { arguments: ':2}' } }),
        ),
      ).to.deep.equal([
        ['t1', 'f', '{"a":1}'],
        ['t2', 'g', '{"b":2}'],
      ]);
    });

    it('continue the only open call where a piece names nothing', () => {
      expect(
        callsOf(
          tools({ id: 't1', function: { name: 'f', arguments: '' } }),
          tools({ function: { arguments: '{"a":' } }),
          tools({ function: { arguments: '1}' } }),
          tools({ id: 't2', function: { name: 'g', arguments: '' } }),
          tools({ function: { arguments: '{"b":2}' } }),
        ),
      ).to.deep.equal([
        ['t1', 'f', '{"a":1}'],
        ['t2', 'g', '{"b":2}'],
      ]);
    });

    it('are not guessed where several are open', () => {
      const assembler = assemble(
        tools(
          { id: 't1', function: { name: 'f', arguments: '{' } },
          { id: 't2', function: { name: 'g', arguments: '{' } },
        ),
      );
      expect(() => assembler.addChat(tools({ function: { arguments: '}' } })))
        .to.throw()
        .with.property('code', 'upstream_body_invalid');
      assembler.addChat(tools({ id: 't1', function: { arguments: '}' } }));
      expect(assembler.snapshot().toolCalls.map((call) => call.arguments)).to.deep.equal(['{}', '{']);
    });

    it('continue a call whose arguments end like an object and are none yet', () => {
      expect(
        callsOf(
          tools({ id: 't1', function: { name: 'f', arguments: '{"a":{"b":1}' } }),
          tools({ function: { arguments: '}' } }),
        ),
      ).to.deep.equal([['t1', 'f', '{"a":{"b":1}}']]);
    });

    it('are new at a used index when the id is new', () => {
      expect(
        callsOf(
          tools({ index: 0, id: 't1', function: { name: 'f', arguments: '{"d":1}' } }),
          tools({ index: 0, id: 't2', function: { name: 'f', arguments: '{"d":' } }),
          tools({ index: 0, function: { arguments: '2}' } }),
        ),
      ).to.deep.equal([
        ['t1', 'f', '{"d":1}'],
        ['t2', 'f', '{"d":2}'],
      ]);
    });

    it('take names late, repeated, in pieces or growing, and ids late or repeated', () => {
      const name = (...names: readonly string[]): unknown =>
        assemble(...names.map((piece) => tools({ index: 0, function: { name: piece } }))).snapshot().toolCalls[0]?.name;
      expect(name('get_weather', 'get_weather')).to.equal('get_weather');
      expect(name('get_', 'weather')).to.equal('get_weather');
      expect(name('get_', 'get_weather')).to.equal('get_weather');
      expect(name('', 'f', '')).to.equal('f');
      expect(
        callsOf(
          tools({ index: 0, function: { arguments: '{}' } }),
          tools({ index: 0, id: 't1', function: { name: 'f' } }),
          tools({ index: 0, id: 't1' }),
        ),
      ).to.deep.equal([['t1', 'f', '{}']]);
    });

    it('without ids and indexes are new with each name', () => {
      expect(
        callsOf(
          tools({ function: { name: 'f', arguments: '{}' } }),
          tools({ function: { name: 'g', arguments: '{}' } }),
        ),
      ).to.deep.equal([
        [undefined, 'f', '{}'],
        [undefined, 'g', '{}'],
      ]);
    });

    it('take arguments that come as an object, custom tools and the legacy function call', () => {
      expect(callsOf(tools({ id: 't1', function: { name: 'f', arguments: { a: 1 } } }))).to.deep.equal([
        ['t1', 'f', '{"a":1}'],
      ]);
      expect(
        callsOf(
          tools({ index: 0, id: 't1', type: 'custom', custom: { name: 'c', input: 'x' } }),
          tools({ index: 0, custom: { input: 'y' } }),
        ),
      ).to.deep.equal([['t1', 'c', 'xy']]);
      expect(
        callsOf(delta({ function_call: { name: 'f', arguments: '{' } }), delta({ function_call: { arguments: '}' } })),
      ).to.deep.equal([[undefined, 'f', '{}']]);
    });
  });

  describe('Responses events', () => {
    const events = (...all: readonly object[]): AnswerAssembler => {
      const assembler = new AnswerAssembler();
      for (const event of all) assembler.addResponses(event);
      return assembler;
    };

    it('give calls by their call ids, though their pieces name items or places', () => {
      const answer = events(
        {
          type: 'response.output_item.added',
          output_index: 0,
          item: { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '' },
        },
        {
          type: 'response.output_item.added',
          output_index: 1,
          item: { id: 'fc_2', type: 'function_call', call_id: 'call_2', name: 'g', arguments: '' },
        },
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta: '{"a"' },
        { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"b":2}' },
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta: ':1}' },
        { type: 'response.function_call_arguments.done', item_id: 'fc_1', arguments: '{"a":1}' },
        {
          type: 'response.output_item.done',
          output_index: 1,
          item: { id: 'fc_2', type: 'function_call', call_id: 'call_2', name: 'g', arguments: '{"b":2}' },
        },
      ).snapshot();
      expect(answer.toolCalls).to.deep.equal([
        { index: 0, id: 'call_1', type: 'function', name: 'f', arguments: '{"a":1}' },
        { index: 1, id: 'call_2', type: 'function', name: 'g', arguments: '{"b":2}' },
      ]);
    });

    it('correct the arguments of a call at its end, where they are others', () => {
      const item = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '' };
      const assembler = events(
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '{"a":1' },
      );
      const before = assembler.snapshot();
      const done = { type: 'response.function_call_arguments.done', item_id: 'fc_1', arguments: '{"a":1}' };
      expect(assembler.addResponses(done)).to.equal(true);
      expect(assembler.addResponses(done)).to.equal(false);
      expect(assembler.snapshot().toolCalls[0]?.arguments).to.equal('{"a":1}');
      expect(before.toolCalls[0]?.arguments).to.equal('{"a":1');
    });

    it('give the arguments of a call that came only at its end', () => {
      const answer = events({
        type: 'response.output_item.done',
        output_index: 0,
        item: { id: 'ct_1', type: 'custom_tool_call', call_id: 'call_1', name: 'c', input: 'x' },
      }).snapshot();
      expect(answer.toolCalls).to.deep.equal([{ index: 0, id: 'call_1', type: 'custom', name: 'c', arguments: 'x' }]);
    });
  });

  it('survives anything', () => {
    const keys = fc.constantFrom(
      'choices',
      'delta',
      'index',
      'content',
      'tool_calls',
      'function',
      'arguments',
      'id',
      'usage',
      'type',
      'item',
      'response',
      'output',
      'finish_reason',
      'text',
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(
          null,
          0,
          'x',
          '',
          true,
          NaN,
          'response.completed',
          'response.output_item.done',
          'function_call',
        ),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(keys, tie('any'), { maxKeys: 4 }),
      ),
    })).any;
    fc.assert(
      fc.property(fc.array(value, { maxLength: 6 }), (chunks) => {
        const assembler = new AnswerAssembler();
        for (const chunk of chunks) {
          for (const add of [() => assembler.addChat(chunk), () => assembler.addResponses(chunk)]) {
            try {
              add();
            } catch (error) {
              expect(error).to.have.property('code', 'upstream_body_invalid');
            }
          }
        }
        expect(assembler.snapshot().text).to.be.a('string');
      }),
      { numRuns: 300 },
    );
  });
});
