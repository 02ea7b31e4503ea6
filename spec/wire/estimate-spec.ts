import { expect } from 'chai';
import fc from 'fast-check';
import { estimateCost, ESTIMATE_DEFAULTS } from '../../lib/wire/estimate.ts';

const message = (content: unknown): unknown => ({ role: 'user', content });
const inputOf = (request: object): number => estimateCost(request).inputTokens;

describe('estimateCost', () => {
  it('counts a token for four bytes of text, four for a message and three for the answer', () => {
    expect(inputOf({ messages: [message('x'.repeat(400))] })).to.equal(107);
    expect(inputOf({ messages: [message('x'.repeat(400)), message('x'.repeat(400))] })).to.equal(211);
    expect(inputOf({ input: 'x'.repeat(400), instructions: 'y'.repeat(40) })).to.equal(117);
    expect(inputOf({ messages: [message([{ type: 'text', text: 'x'.repeat(400) }])] })).to.be.closeTo(107, 2);
  });

  it('counts bytes, so that other scripts weigh what they cost', () => {
    expect(inputOf({ messages: [message('北'.repeat(400))] })).to.equal(307);
  });

  it('counts tools and schemas', () => {
    const tool = {
      type: 'function',
      function: { name: 'f', description: 'x'.repeat(400), parameters: { type: 'object', properties: {} } },
    };
    expect(inputOf({ messages: [message('x')], tools: [tool] }) - inputOf({ messages: [message('x')] })).to.be.within(
      100,
      125,
    );
  });

  it('counts images, audio and files by what they are, not by the length of their data', () => {
    const image = (detail?: string): unknown => ({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${'A'.repeat(400_000)}`, detail },
    });
    const text = inputOf({ messages: [message('')] });
    expect(inputOf({ messages: [message([image()])] }) - text).to.equal(765);
    expect(inputOf({ messages: [message([image('low')])] }) - text).to.equal(85);
    expect(
      inputOf({ input: [message([{ type: 'input_image', image_url: 'data:x', detail: 'low' }])] }) - text,
    ).to.equal(85);
    expect(
      inputOf({ messages: [message([{ type: 'input_audio', input_audio: { data: 'A'.repeat(21_330) } }])] }) - text,
    ).to.equal(10);
    expect(inputOf({ messages: [message([{ type: 'file', file: { file_data: 'A'.repeat(430) } }])] }) - text).to.equal(
      10,
    );
  });

  it('reserves the output limit that the request names, the newest name first, for each choice', () => {
    const outputOf = (fields: object): number => estimateCost({ messages: [message('x')], ...fields }).outputTokens;
    expect(outputOf({ max_tokens: 100 })).to.equal(100);
    expect(outputOf({ max_output_tokens: 100 })).to.equal(100);
    expect(outputOf({ max_tokens: 100, max_completion_tokens: 50 })).to.equal(50);
    expect(outputOf({ max_tokens: null })).to.equal(ESTIMATE_DEFAULTS.defaultOutputTokens);
    expect(outputOf({ max_tokens: 100, n: 3 })).to.equal(300);
    expect(outputOf({ max_tokens: 100, best_of: 2 })).to.equal(200);
    expect(outputOf({ max_tokens: 0 })).to.equal(0);
  });

  it('adds both, and calls it a guess', () => {
    expect(estimateCost({ messages: [message('x'.repeat(400))], max_tokens: 100 })).to.deep.equal({
      tokens: 207,
      inputTokens: 107,
      outputTokens: 100,
      explicit: false,
    });
  });

  it('expects no output of embeddings', () => {
    expect(estimateCost({ model: 'e', input: ['x'.repeat(40), 'y'.repeat(40)] })).to.include({
      tokens: 20,
      outputTokens: 0,
    });
    expect(estimateCost({ model: 'e', input: 'x'.repeat(40), encoding_format: 'float' })).to.include({ tokens: 10 });
    expect(estimateCost({ model: 'e', input: [1, 2, 3] })).to.include({ tokens: 3 });
    expect(estimateCost({ model: 'e', input: [[1, 2], [3]] })).to.include({ tokens: 3 });
  });

  it('changes with its options, and refuses wrong ones', () => {
    const request = { messages: [message('x'.repeat(400))] };
    expect(estimateCost(request, { bytesPerToken: 2 }).inputTokens).to.equal(207);
    expect(estimateCost(request, { defaultOutputTokens: 9 }).outputTokens).to.equal(9);
    for (const bytesPerToken of [0, -1, NaN, Infinity])
      expect(() => estimateCost(request, { bytesPerToken }))
        .to.throw()
        .with.property('code', 'invalid_option');
    for (const defaultOutputTokens of [-1, NaN])
      expect(() => estimateCost(request, { defaultOutputTokens }))
        .to.throw()
        .with.property('code', 'invalid_option');
  });

  it('answers whole numbers of 0 or more for anything, rings included', () => {
    const ring: { messages: unknown[] } = { messages: [] };
    ring.messages.push(ring);
    expect(estimateCost(ring).tokens).to.be.above(0);
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (any, other) => {
        for (const request of [any, { messages: any, max_tokens: other, n: other }, { input: [any], tools: other }]) {
          const { tokens, inputTokens, outputTokens } = estimateCost(request);
          for (const count of [tokens, inputTokens, outputTokens])
            expect(count).to.satisfy((n: number) => n >= 0 && !Number.isNaN(n));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('is finite, whatever a request asks for', () => {
    for (const most of [{ n: 1e308 }, { max_tokens: 1e308, n: 1e308 }, { best_of: Number.MAX_VALUE }]) {
      expect(estimateCost({ model: 'm', messages: [], ...most }).tokens).to.be.finite;
    }
  });
});
