import { expect } from 'chai';
import fc from 'fast-check';
import { answerKey, answerText, matchPrefix, predictAnswer } from '../../../lib/emulator/model/answerText.ts';

const request = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };
const keys = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe('answerText', () => {
  it('gives the same text however it is cut', () => {
    fc.assert(
      fc.property(keys, fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 6 }), (key, lengths) => {
        let text = '';
        let at = 0;
        for (const length of lengths) text += answerText(key, at, (at += length));
        expect(text).to.equal(answerText(key, 0, at));
      }),
      { numRuns: 50 },
    );
  });

  it('has a word for each token, also past the end of the passage', () => {
    expect(answerText(7, 0, 10_000).split(' ')).to.have.length(10_000);
  });

  it('finds where an answer goes on after a part of it', () => {
    fc.assert(
      fc.property(keys, fc.integer({ min: 0, max: 300 }), (key, chars) => {
        const whole = answerText(key, 0, 40);
        const prefix = whole.slice(0, chars);
        const { tokens, extraChars } = matchPrefix(key, prefix) ?? { tokens: -1, extraChars: 0 };
        expect(prefix + answerText(key, tokens, 40).slice(extraChars)).to.equal(whole);
      }),
      { numRuns: 50 },
    );
    expect(matchPrefix(7, 'something else')).to.equal(undefined);
  });
});

describe('predictAnswer', () => {
  it('is the same for the same request and seed, and another for another model, prompt, seed or choice', () => {
    const texts = [
      predictAnswer(request),
      predictAnswer({ ...request, model: 'n' }),
      predictAnswer({ ...request, messages: [{ role: 'user', content: 'hullo' }] }),
      predictAnswer(request, { seed: 2 }),
      predictAnswer(request, { choice: 1 }),
    ];
    expect(new Set(texts).size).to.equal(texts.length);
    expect(predictAnswer({ ...request, stream: true })).to.equal(texts[0]);
  });

  it('is as long as the setting, and no longer than the request allows', () => {
    expect(predictAnswer(request).split(' ')).to.have.length(64);
    expect(predictAnswer(request, { tokens: 5 }).split(' ')).to.have.length(5);
    expect(predictAnswer({ ...request, max_tokens: 3 }, { tokens: 5 }).split(' ')).to.have.length(3);
  });

  it('leaves a last message of the assistant out of account', () => {
    const prefixed = { ...request, messages: [...request.messages, { role: 'assistant', content: 'so' }] };
    expect(answerKey(prefixed, 1)).to.equal(answerKey(request, 1));
  });
});
