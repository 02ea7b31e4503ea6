import { expect } from 'chai';
import type { Answer, AnswerChoice } from '../../lib/core/answer.ts';
import { estimateCost } from '../../lib/wire/estimate.ts';
import { estimateUsage } from '../../lib/wire/estimateUsage.ts';

const request = { model: 'm', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 500 };
const choice = (parts: Partial<AnswerChoice>): AnswerChoice => ({
  index: 0,
  text: '',
  reasoning: '',
  refusal: '',
  toolCalls: [],
  finishReason: null,
  ...parts,
});
const answerOf = (...choices: AnswerChoice[]): Answer => ({
  ...choice({}),
  choices,
  usage: undefined,
  model: undefined,
  restarts: 0,
  empty: choices.length === 0,
});

describe('estimateUsage', () => {
  it('takes the input from the request, and no output where nothing came', () => {
    const { inputTokens } = estimateCost(request);
    const nothing = { cachedInputTokens: undefined, reasoningTokens: undefined };
    expect(estimateUsage(request, undefined)).to.deep.equal({
      inputTokens,
      outputTokens: 0,
      totalTokens: inputTokens,
      ...nothing,
    });
    expect(estimateUsage({}, answerOf()).outputTokens).to.equal(0);
  });

  it('counts a token for every four bytes of text, reasoning, refusal and tool calls of all choices', () => {
    const call = { index: 0, id: 'x', type: 'function', name: 'find', arguments: '{"q":"ab"}..' };
    const outputOf = (...choices: AnswerChoice[]): number => estimateUsage(request, answerOf(...choices)).outputTokens;
    expect(outputOf(choice({ text: 'abcdefgh' }))).to.equal(2);
    expect(outputOf(choice({ text: '私は' }))).to.equal(2);
    expect(outputOf(choice({ reasoning: 'abcd', refusal: 'abcd' }), choice({ index: 1, text: 'a' }))).to.equal(3);
    expect(outputOf(choice({ toolCalls: [call] }))).to.equal(4);
  });

  it('counts input and output together', () => {
    const { inputTokens, outputTokens, totalTokens } = estimateUsage(
      request,
      answerOf(choice({ text: 'a'.repeat(40) })),
    );
    expect([outputTokens, totalTokens]).to.deep.equal([10, inputTokens + 10]);
  });
});
