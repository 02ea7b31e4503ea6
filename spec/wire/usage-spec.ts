import { expect } from 'chai';
import fc from 'fast-check';
import { isCounted, readUsage } from '../../lib/wire/usage.ts';

const NONE = { cachedInputTokens: undefined, reasoningTokens: undefined };

describe('readUsage', () => {
  it('reads chat completions', () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const read = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 4, reasoningTokens: 2 };
    expect(readUsage(usage)).to.deep.equal(read);
    expect(readUsage({ choices: [], usage })).to.deep.equal(read);
  });

  it('reads the Responses API, also inside its terminal event', () => {
    const usage = {
      input_tokens: 10,
      output_tokens: 5,
      total_tokens: 15,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens_details: { reasoning_tokens: 2 },
    };
    const read = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 4, reasoningTokens: 2 };
    expect(readUsage({ type: 'response.completed', response: { usage } })).to.deep.equal(read);
  });

  it("adds Anthropic's cached input, which it counts apart", () => {
    expect(
      readUsage({ input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 20 }),
    ).to.deep.equal({
      inputTokens: 130,
      outputTokens: 5,
      totalTokens: 135,
      cachedInputTokens: 100,
      reasoningTokens: undefined,
    });
    expect(readUsage({ usage: { output_tokens: 7 } })).to.deep.include({ inputTokens: 0, outputTokens: 7 });
  });

  it("adds Gemini's thoughts to its output", () => {
    expect(
      readUsage({
        usageMetadata: {
          promptTokenCount: 10,
          candidatesTokenCount: 5,
          thoughtsTokenCount: 3,
          totalTokenCount: 18,
          cachedContentTokenCount: 2,
        },
      }),
    ).to.deep.equal({
      inputTokens: 10,
      outputTokens: 8,
      totalTokens: 18,
      cachedInputTokens: 2,
      reasoningTokens: 3,
    });
  });

  it("takes Gemini's own counts where others are missing, and its total where that is more", () => {
    const rows: readonly (readonly [counts: object, input: number, output: number, total: number])[] = [
      [{ promptTokenCount: 10, candidatesTokenCount: 5 }, 10, 5, 15],
      [{ promptTokenCount: 10, thoughtsTokenCount: 3 }, 10, 3, 13],
      [{ promptTokenCount: 10, totalTokenCount: 12 }, 10, 2, 12],
      [{ promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 3, totalTokenCount: 30 }, 10, 8, 30],
    ];
    for (const [counts, inputTokens, outputTokens, totalTokens] of rows) {
      const read = { inputTokens, outputTokens, totalTokens };
      expect(readUsage(counts), JSON.stringify(counts)).to.deep.include(read);
    }
  });

  it('counts cached input once where it is part of the prompt', () => {
    const cached = { cache_read_input_tokens: 100, cache_creation_input_tokens: 20 };
    expect(readUsage({ prompt_tokens: 130, completion_tokens: 5, ...cached })).to.deep.include({
      inputTokens: 130,
      totalTokens: 135,
      cachedInputTokens: 100,
    });
  });

  it("reads DeepSeek's cache hits and the places of Groq and Moonshot", () => {
    expect(
      readUsage({ prompt_tokens: 10, completion_tokens: 1, prompt_cache_hit_tokens: 6 })?.cachedInputTokens,
    ).to.equal(6);
    expect(readUsage({ x_groq: { usage: { prompt_tokens: 1, completion_tokens: 1 } } })?.totalTokens).to.equal(2);
    expect(readUsage({ choices: [{ usage: { prompt_tokens: 1, completion_tokens: 1 } }] })?.totalTokens).to.equal(2);
    expect(readUsage({ choices: [] })).to.equal(undefined);
    expect(readUsage({ prompt_tokens: 10, completion_tokens: 1, cached_tokens: 7 })?.cachedInputTokens).to.equal(7);
  });

  it("reads what Anthropic's first event says", () => {
    const usage = { input_tokens: 10, output_tokens: 1 };
    expect(readUsage({ type: 'message_start', message: { usage } })).to.deep.include({ totalTokens: 11 });
  });

  it('makes up what is missing from the rest, and a total that is too small', () => {
    expect(readUsage({ prompt_tokens: 3, total_tokens: 5 })).to.deep.equal({
      inputTokens: 3,
      outputTokens: 2,
      totalTokens: 5,
      ...NONE,
    });
    expect(readUsage({ total_tokens: 5 })).to.deep.equal({ inputTokens: 5, outputTokens: 0, totalTokens: 5, ...NONE });
    expect(readUsage({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 0 })).to.deep.include({ totalTokens: 7 });
  });

  it('takes whole numbers up to the largest that is exact, zeros too, and details that are null', () => {
    const zero = { inputTokens: 0, outputTokens: 0, totalTokens: 0, ...NONE };
    expect(readUsage({ prompt_tokens: 0, completion_tokens: 0 })).to.deep.equal(zero);
    expect(readUsage({ prompt_tokens: 0, prompt_tokens_details: null, completion_tokens_details: null })).to.deep.equal(
      zero,
    );
    expect(readUsage({ prompt_tokens: 2.9, completion_tokens: 3.2 })?.totalTokens).to.equal(5);
    const most = Number.MAX_SAFE_INTEGER;
    expect(readUsage({ prompt_tokens: most })?.inputTokens).to.equal(most);
    for (const tooMuch of [most + 1, Infinity]) expect(readUsage({ prompt_tokens: tooMuch })).to.equal(undefined);
  });

  it('does not look for ever in an object that holds itself', () => {
    const response: Record<string, unknown> = {};
    response['response'] = response;
    const choice: Record<string, unknown> = {};
    choice['choices'] = [{ usage: choice }];
    for (const cyclic of [response, choice]) expect(readUsage(cyclic)).to.equal(undefined);
  });

  it('reports nothing where nothing is readable', () => {
    for (const value of [
      undefined,
      null,
      5,
      'x',
      {},
      { usage: null },
      { usage: {} },
      { prompt_tokens: 'many' },
      { prompt_tokens: '5' },
      { prompt_tokens: null },
      { prompt_tokens: NaN },
      { completion_tokens: -1 },
    ]) {
      expect(readUsage(value), JSON.stringify(value)).to.equal(undefined);
    }
  });

  it('takes zeros for no report of their own', () => {
    for (const usage of [undefined, null, 5, 'x', {}, { prompt_tokens: 0, total_tokens: 0 }, { prompt_tokens: '5' }]) {
      expect(isCounted(usage), JSON.stringify(usage)).to.equal(false);
    }
    for (const key of ['prompt_tokens', 'completion_tokens', 'total_tokens', 'input_tokens', 'output_tokens']) {
      expect(isCounted({ prompt_tokens: 0, [key]: 1 }), key).to.equal(true);
    }
  });

  it('never answers NaN or less than 0', () => {
    const keys = fc.constantFrom(
      'prompt_tokens',
      'completion_tokens',
      'total_tokens',
      'input_tokens',
      'output_tokens',
      'usage',
      'cache_read_input_tokens',
      'thoughtsTokenCount',
      'promptTokenCount',
    );
    const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom('5', null, {}, []));
    fc.assert(
      fc.property(fc.dictionary(keys, number), (fields) => {
        for (const value of Object.values(readUsage(fields) ?? {})) {
          if (value !== undefined) expect(value).to.be.at.least(0);
        }
      }),
    );
  });
});
