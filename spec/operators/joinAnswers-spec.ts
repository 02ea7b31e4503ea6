import { expect } from 'chai';
import { isContinuable, joinAnswers } from '../../lib/operators/joinAnswers.ts';
import { partial } from '../helpers/scripted.ts';

describe('joinAnswers', () => {
  const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7, cachedInputTokens: 0, reasoningTokens: 0 };

  it('puts the text and the reasoning of both one behind the other', () => {
    const joined = joinAnswers(
      partial('Once', { reasoning: 'hm', model: 'm1', restarts: 2 }),
      partial(' upon', { reasoning: ' so', finishReason: 'stop', usage, refusal: 'no' }),
    );
    const choice = { text: 'Once upon', reasoning: 'hm so', refusal: 'no', toolCalls: [], finishReason: 'stop' };
    expect(joined).to.deep.equal({
      ...choice,
      choices: [{ index: 0, ...choice }],
      usage,
      model: 'm1',
      restarts: 2,
      empty: false,
    });
  });

  it('names the model that answered last', () => {
    expect(joinAnswers(partial('a', { model: 'm1' }), partial('b', { model: 'm2' })).model).to.equal('m2');
  });

  it('keeps the place of the choice, the first where it was not told', () => {
    const [choice] = partial('a').choices;
    const third = partial('a', { choices: [{ ...choice!, index: 2 }] });
    expect(joinAnswers(third, partial('b')).choices.map(({ index }) => index)).to.deep.equal([2]);
    expect(joinAnswers(partial('a', { choices: [] }), partial('b')).choices[0]?.index).to.equal(0);
  });

  it('is not tried behind blanks, from which no model goes on', () => {
    expect(isContinuable(partial(' \n'))).to.be.false;
    expect(isContinuable(partial(' a'))).to.be.true;
  });
});
