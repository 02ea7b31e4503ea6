import { expect } from 'chai';
import { ChoiceBuilder } from '../../lib/wire/ChoiceBuilder.ts';
import { addResponseEvent } from '../../lib/wire/responseEvents.ts';

type Fields = Readonly<Record<string, unknown>>;

function read(...events: readonly Fields[]): { choice: ChoiceBuilder; held: readonly boolean[] } {
  const choice = new ChoiceBuilder(0);
  return { choice, held: events.map((event) => addResponseEvent(choice, event)) };
}

const textsOf = (...events: readonly Fields[]): object => {
  const { text, reasoning, refusal } = read(...events).choice.snapshot();
  return { text, reasoning, refusal };
};

const callsOf = (...events: readonly Fields[]): readonly object[] =>
  read(...events)
    .choice.snapshot()
    .toolCalls.map(({ id, type, name, arguments: args }) => ({ id, type, name, args }));

const NO_TEXTS = { text: '', reasoning: '', refusal: '' };
const message = (text: string): Fields => ({ type: 'message', content: [{ type: 'output_text', text }] });
const thought = (text: string): Fields => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] });
const completed = (response: unknown): Fields => ({ type: 'response.completed', response });

describe('addResponseEvent', () => {
  it('tells texts from reasoning and refusals', () => {
    const deltas = (type: string): readonly Fields[] => [
      { type, delta: 'a' },
      { type, delta: 'b' },
    ];
    expect(textsOf(...deltas('response.output_text.delta'))).to.deep.equal({ ...NO_TEXTS, text: 'ab' });
    expect(textsOf(...deltas('response.refusal.delta'))).to.deep.equal({ ...NO_TEXTS, refusal: 'ab' });
    for (const kind of ['reasoning_text', 'reasoning_summary_text', 'reasoning', 'reasoning_summary']) {
      expect(textsOf(...deltas(`response.${kind}.delta`)), kind).to.deep.equal({ ...NO_TEXTS, reasoning: 'ab' });
    }
  });

  it('says of an event whether it held anything', () => {
    const item = { type: 'response.output_item.done' };
    const nothing: readonly Fields[] = [
      {},
      { object: 'list', output_text: 'x' },
      { object: 'response' },
      { type: 'response.output_text.delta', delta: '' },
      { type: 'response.output_text.delta', delta: 5 },
      { type: 'response.content_part.done', delta: 'x' },
      { type: 'response.function_call_arguments.done', item_id: 'fc_1' },
      item,
      { ...item, item: null },
      { ...item, item: 'message' },
      { ...item, item: {} },
      { ...item, item: { type: 'message', content: [] } },
      { ...item, item: { type: 'message', content: [null, 'x', {}] } },
      completed(undefined),
      completed(null),
      completed('x'),
      completed({ output: [null, 'x', {}, { type: 'message', content: [] }] }),
    ];
    for (const event of nothing) {
      const { choice, held } = read(event);
      expect(held, JSON.stringify(event)).to.deep.equal([false]);
      expect(choice.empty, JSON.stringify(event)).to.equal(true);
    }
    const parts = [
      { type: 'refusal', refusal: 'no' },
      { type: 'output_text', text: '' },
    ];
    for (const content of [parts, parts.toReversed(), [{ text: 'x' }, { type: 'refusal', refusal: '' }]]) {
      expect(read(completed({ output: [{ content }] })).held, JSON.stringify(content)).to.deep.equal([true]);
    }
    const thoughts = [{ text: 'think' }, { text: '' }];
    expect(read(completed({ output: [{ type: 'reasoning', summary: thoughts }] })).held).to.deep.equal([true]);
  });

  describe('takes once', () => {
    it('a refusal that its part and its item repeat, and one that came whole', () => {
      const item = { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] };
      const ends = [
        { type: 'response.refusal.done', refusal: 'No.' },
        { type: 'response.output_item.done', item },
      ];
      const delta = { type: 'response.refusal.delta', delta: 'No.' };
      for (const events of [[delta, ...ends], ends, [delta, ends[1] as Fields], ends.slice(1)]) {
        expect(textsOf(...events), JSON.stringify(events)).to.deep.equal({ ...NO_TEXTS, refusal: 'No.' });
      }
    });

    it('a text that its part and its item repeat, item by item', () => {
      const events = (text: string): readonly Fields[] => [
        { type: 'response.output_text.delta', delta: text },
        { type: 'response.output_text.done', text },
        { type: 'response.output_item.done', item: message(text) },
      ];
      const all = [...events('one '), ...events('two '), { type: 'response.output_item.done', item: message('three') }];
      expect(textsOf(...all)).to.deep.equal({ ...NO_TEXTS, text: 'one two three' });
    });

    it('the text of a message that its beginning holds already', () => {
      const item = message('Hi');
      const events = [
        { type: 'response.output_item.added', item },
        { type: 'response.output_text.delta', delta: 'Hi' },
        { type: 'response.output_item.done', item },
      ];
      expect(textsOf(...events)).to.deep.equal({ ...NO_TEXTS, text: 'Hi' });
    });

    it('reasoning that its item repeats', () => {
      const events = [
        { type: 'response.reasoning_summary_text.delta', delta: 'think' },
        { type: 'response.output_item.done', item: thought('think') },
      ];
      expect(textsOf(...events)).to.deep.equal({ ...NO_TEXTS, reasoning: 'think' });
    });

    it('the output of a response whose events came', () => {
      const response = { output: [message('Hi')], output_text: 'Hi' };
      const delta = { type: 'response.output_text.delta', delta: 'Hi' };
      expect(textsOf(delta, completed(response))).to.deep.equal({ ...NO_TEXTS, text: 'Hi' });
      expect(textsOf(completed(response))).to.deep.equal({ ...NO_TEXTS, text: 'Hi' });
    });
  });

  it('takes the text of a response that has no list of its output', () => {
    const { choice, held } = read({ object: 'response', output_text: 'all' });
    expect([held, choice.snapshot().text]).to.deep.equal([[true], 'all']);
  });

  it('tells reasoning, text and refusal of an output apart, whether the parts name their types or not', () => {
    const content = [{ text: 'a' }, { type: 'output_text', text: 'b' }, { type: 'refusal', refusal: 'c' }];
    const reasoning = { type: 'reasoning', summary: [{ text: 'd' }], content: [{ type: 'reasoning_text', text: 'e' }] };
    const expected = { text: 'ab', reasoning: 'de', refusal: 'c' };
    expect(textsOf(completed({ output: [{ content }, reasoning] }))).to.deep.equal(expected);
  });

  describe('finishes', () => {
    const reasonOf = (response: Fields): string | null => read(completed(response)).choice.finishReason;

    it('with the status of the response, or with why it is incomplete', () => {
      expect(reasonOf({ status: 'completed' })).to.equal('completed');
      expect(reasonOf({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })).to.equal(
        'content_filter',
      );
      expect(reasonOf({ status: 'completed', incomplete_details: { reason: 'content_filter' } })).to.equal('completed');
      const details: readonly unknown[] = [undefined, null, {}, { reason: null }, { reason: 5 }];
      for (const incomplete_details of details) {
        expect(reasonOf({ status: 'incomplete', incomplete_details })).to.equal('incomplete');
      }
    });

    it('not while the response is under way or names no status', () => {
      for (const status of ['in_progress', 'queued', undefined, null, 5]) {
        expect(reasonOf({ status }), String(status)).to.equal(null);
      }
    });
  });

  describe('tool calls', () => {
    const KINDS = [
      { item: 'function_call', event: 'function_call_arguments', field: 'arguments', type: 'function' },
      { item: 'custom_tool_call', event: 'custom_tool_call_input', field: 'input', type: 'custom' },
      { item: 'mcp_call', event: 'mcp_call_arguments', field: 'arguments', type: 'mcp_call' },
    ];
    const itemOf = (type: string, fields: Fields = {}): Fields => ({
      type,
      id: 'i1',
      call_id: 'c1',
      name: 'f',
      ...fields,
    });

    for (const { item, event, field, type } of KINDS) {
      const added = { type: 'response.output_item.added', output_index: 2, item: itemOf(item) };
      const pieces = ['ab', 'c'].map((delta) => ({ type: `response.${event}.delta`, item_id: 'i1', delta }));
      const done = { type: `response.${event}.done`, item_id: 'i1', [field]: 'abc' };
      const itemDone = { ...added, type: 'response.output_item.done', item: itemOf(item, { [field]: 'abc' }) };
      const call = { id: 'c1', type, name: 'f', args: 'abc' };

      it(`of type ${item} come in pieces, whole at their end, or whole with their item`, () => {
        for (const events of [
          [added, ...pieces, done, itemDone],
          [added, ...pieces],
          [added, done],
          [added, itemDone],
          [itemDone],
          [{ ...added, item: itemDone.item }],
          [completed({ output: [itemDone.item] })],
        ]) {
          expect(callsOf(...events), JSON.stringify(events)).to.deep.equal([call]);
        }
      });

      it(`of type ${item} are found by their place where an event does not name their item`, () => {
        const unnamed = pieces.map(({ type: name, delta }) => ({ type: name, output_index: 2, delta }));
        const other = { ...added, output_index: 0, item: itemOf(item, { id: 'i0', call_id: 'c0' }) };
        expect(callsOf(added, other, ...unnamed)).to.deep.equal([call, { ...call, id: 'c0', args: '' }]);
      });
    }

    it('are not lost where their item never appears', () => {
      const done = { type: 'response.function_call_arguments.done', item_id: 'i1', arguments: '{}' };
      const { choice, held } = read(done, done);
      expect(held).to.deep.equal([true, false]);
      expect(choice.snapshot().toolCalls).to.deep.include.members([
        { index: 0, id: 'i1', type: 'function', name: '', arguments: '{}' },
      ]);
    });

    it('take arguments that come as the object that they stand for', () => {
      const added = { type: 'response.output_item.added', item: itemOf('function_call', { arguments: '' }) };
      const done = { type: 'response.function_call_arguments.done', item_id: 'i1', arguments: { a: 1 } };
      const itemDone = {
        type: 'response.output_item.done',
        item: itemOf('function_call', { arguments: { a: 1 } }),
      };
      for (const events of [[added, done], [added, itemDone], [itemDone], [added, done, itemDone]]) {
        expect(callsOf(...events)).to.deep.equal([{ id: 'c1', type: 'function', name: 'f', args: '{"a":1}' }]);
      }
    });

    it('keep their arguments where an end does not repeat them', () => {
      const added = { type: 'response.output_item.added', item: itemOf('function_call') };
      const piece = { type: 'response.function_call_arguments.delta', item_id: 'i1', delta: '{}' };
      for (const args of [undefined, null, '']) {
        const done = { type: 'response.function_call_arguments.done', item_id: 'i1', arguments: args };
        const itemDone = { type: 'response.output_item.done', item: itemOf('function_call', { arguments: args }) };
        const { choice, held } = read(added, piece, done, itemDone);
        expect(held, String(args)).to.deep.equal([true, true, false, false]);
        expect(choice.snapshot().toolCalls[0]?.arguments, String(args)).to.equal('{}');
      }
    });

    it('are taken once where a response repeats them', () => {
      const item = itemOf('function_call', { arguments: '{}' });
      expect(callsOf(completed({ output: [item, item] }))).to.deep.equal([
        { id: 'c1', type: 'function', name: 'f', args: '{}' },
      ]);
    });

    it('that run at the provider are content, and no calls of the answer', () => {
      for (const type of ['web_search_call', 'file_search_call', 'code_interpreter_call']) {
        const item = { type, id: 'ws_1' };
        const events = [{ type: 'response.output_item.added', item }, completed({ output: [item] })];
        for (const event of events) {
          const { choice, held } = read(event);
          expect(held, type).to.deep.equal([true]);
          expect(choice.empty, type).to.equal(false);
          expect(choice.snapshot().toolCalls, type).to.deep.equal([]);
        }
      }
    });
  });

  it('counts audio, code and images as content without keeping them', () => {
    for (const event of [
      { type: 'response.audio.delta', delta: 'x' },
      { type: 'response.code_interpreter_call_code.delta', delta: 'x' },
      { type: 'response.image_generation_call.partial_image', partial_image_b64: 'x' },
    ]) {
      const { choice, held } = read(event);
      expect(held, event.type).to.deep.equal([true]);
      expect(choice.empty, event.type).to.equal(false);
      expect(textsOf(event), event.type).to.deep.equal(NO_TEXTS);
    }
  });
});
