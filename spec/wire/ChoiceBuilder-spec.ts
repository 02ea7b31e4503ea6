import { expect } from 'chai';
import { ChoiceBuilder } from '../../lib/wire/ChoiceBuilder.ts';

const deltaOf = (...deltas: readonly unknown[]): ChoiceBuilder => {
  const choice = new ChoiceBuilder(0);
  for (const delta of deltas) choice.addChoice({ delta });
  return choice;
};

describe('ChoiceBuilder', () => {
  it('is empty and blank until anything comes, whatever it is', () => {
    expect([deltaOf().empty, deltaOf().blank]).to.deep.equal([true, true]);
    const contents: readonly object[] = [
      { content: 'a' },
      { reasoning: 'a' },
      { refusal: 'a' },
      { tool_calls: [{ id: 't1' }] },
      { function_call: { name: 'f' } },
      { audio: { id: 'a' } },
      { images: [{}] },
      { content: [{ type: 'image' }] },
    ];
    for (const delta of contents) {
      const choice = deltaOf(delta);
      expect([choice.empty, choice.blank], JSON.stringify(delta)).to.deep.equal([false, false]);
    }
    const other = new ChoiceBuilder(0);
    other.addOther();
    expect([other.empty, other.blank]).to.deep.equal([false, false]);
  });

  it('is blank, and not empty, while it has only white space', () => {
    for (const delta of [{ content: ' \n' }, { reasoning: ' ' }, { refusal: '\t' }]) {
      const choice = deltaOf(delta);
      expect([choice.empty, choice.blank], JSON.stringify(delta)).to.deep.equal([false, true]);
    }
  });

  it('says of what holds something that it does', () => {
    const held: readonly Record<string, unknown>[] = [
      { text: 'a' },
      { text: '', delta: { content: 'a' } },
      { message: { content: 'a' } },
      ...[
        { content: 'a' },
        { content: 'a', refusal: '' },
        { content: [{ type: 'text', text: 'a' }] },
        { content: [{ type: 'image' }] },
        { content: [{ type: 'image', text: 5 }] },
        { content: [{ type: 'thinking', thinking: 'a' }] },
        { content: [{ type: 'reasoning', text: 'a' }, null] },
        { content: [{ type: 'text', text: 'a' }], role: 'assistant' },
        { reasoning_details: [{ text: 'a' }] },
        { refusal: 'a' },
        { audio: { id: 'a' } },
        { images: [{}] },
        { tool_calls: [{ id: 't1' }, {}] },
        { function_call: { name: 'f' } },
      ].map((delta) => ({ delta })),
    ];
    for (const choice of held) {
      expect(new ChoiceBuilder(0).addChoice(choice), JSON.stringify(choice)).to.equal(true);
    }
  });

  it('says of what holds nothing that it does not, and stays empty', () => {
    const idle: readonly Record<string, unknown>[] = [
      {},
      { text: '' },
      { text: 5 },
      { delta: null, message: null },
      { delta: 'a' },
      { finish_reason: 'stop' },
      ...[
        { content: '' },
        { content: null, role: 'assistant' },
        { content: [] },
        { content: ['a', 5, null] },
        { content: [{ type: 'text', text: '' }] },
        { content: [{ type: 'thinking', thinking: '' }] },
        { content: [{ type: 'thinking', thinking: [] }] },
        { content: [{ type: 'reasoning' }] },
        { reasoning: '', reasoning_details: [] },
        { refusal: '' },
        { audio: {} },
        { audio: null, images: [] },
        { tool_calls: [{}, null] },
        { function_call: null },
      ].map((delta) => ({ delta })),
    ];
    for (const given of idle) {
      const choice = new ChoiceBuilder(0);
      expect(choice.addChoice(given), JSON.stringify(given)).to.equal(false);
      expect(choice.empty, JSON.stringify(given)).to.equal(true);
    }
  });

  it('takes thoughts from parts of content: as text, as a list, or in the field for text', () => {
    const choice = deltaOf({
      content: [
        { type: 'thinking', thinking: 'a', text: 'not this' },
        { type: 'thinking', thinking: [{ text: 'b' }] },
        { type: 'reasoning', text: 'c' },
      ],
    });
    expect(choice.snapshot()).to.include({ reasoning: 'abc', text: '' });
  });

  it('takes no text from a part that is none', () => {
    expect(deltaOf({ content: [{ type: 'image', text: 5 }] }).snapshot().text).to.equal('');
  });

  it('takes the text of a choice of the older API', () => {
    const choice = new ChoiceBuilder(3);
    choice.addChoice({ text: 'a' });
    choice.addChoice({ text: 'b', finish_reason: 'stop' });
    expect(choice.snapshot()).to.include({ index: 3, text: 'ab', finishReason: 'stop' });
  });

  it('keeps its reason to finish, where later chunks have none', () => {
    const choice = new ChoiceBuilder(0);
    for (const reason of [null, 5, '']) choice.addChoice({ finish_reason: reason });
    expect(choice.finishReason).to.equal(null);
    choice.addChoice({ finish_reason: 'stop' });
    for (const reason of [null, 5, '']) choice.addChoice({ finish_reason: reason });
    expect(choice.snapshot().finishReason).to.equal('stop');
  });
});
