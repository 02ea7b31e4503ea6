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

  it('counts the text of every part of a request that is sent to the model', () => {
    const rest = inputOf({});
    for (const key of ['instructions', 'prompt', 'functions', 'response_format', 'text']) {
      expect(inputOf({ [key]: 'x'.repeat(400) }) - rest, key).to.equal(100);
    }
    expect(inputOf({ model: 'x'.repeat(400), user: 'x'.repeat(400) })).to.equal(rest);
  });

  it('counts names of fields, numbers, truths, and nothing for what is absent', () => {
    const rest = inputOf({ tools: [] });
    const of = (fields: object): number => inputOf({ tools: [fields] }) - rest;
    expect(of({ abcd: 'x'.repeat(36) })).to.equal(10);
    expect(of({ abcd: 5 })).to.equal(2);
    expect(of({ abcd: true, efgh: false })).to.equal(4);
    expect(of({ abcd: null, efgh: undefined, ijkl: () => 'x' })).to.equal(0);
    expect(inputOf({ input: 5 })).to.equal(inputOf({}));
  });

  it('takes roles and types of messages for framing, and types deep within a schema for text', () => {
    const deep = (depth: number): number => {
      let value: object = { type: 'x'.repeat(40) };
      for (let n = 0; n < depth; n++) value = [value];
      return inputOf({ tools: [value] }) - inputOf({ tools: [] });
    };
    expect([deep(0), deep(2), deep(3), deep(4)]).to.deep.equal([0, 0, 10, 10]);
    expect(inputOf({ messages: [{ role: 'x'.repeat(400), content: 'abcd' }] })).to.equal(8);
  });

  it('reads no deeper than a request can mean', () => {
    let nested: unknown = 'x'.repeat(400);
    for (let n = 0; n < 23; n++) nested = [nested];
    expect(inputOf({ tools: nested }) - inputOf({})).to.equal(100);
    expect(inputOf({ tools: [[nested]] }) - inputOf({})).to.equal(0);
  });

  it('counts an image by its type where its data is elsewhere, and one without details', () => {
    const text = inputOf({ messages: [message('')] });
    expect(inputOf({ messages: [message([{ type: 'input_image', file_id: 'f' }])] }) - text).to.equal(765);
    expect(inputOf({ messages: [message([{ image_url: null }])] }) - text).to.equal(765);
  });

  it('takes a list of texts, of numbers, or whatever names dimensions for embeddings', () => {
    for (const request of [
      { input: ['one'] },
      { input: [1, 2] },
      { input: [[1, 2]] },
      { input: 'one', dimensions: 8 },
      { input: 'one', encoding_format: 'float' },
    ]) {
      expect(estimateCost(request).outputTokens, JSON.stringify(request)).to.equal(0);
    }
    for (const request of [
      { input: 'one' },
      { input: [{ role: 'user' }] },
      { input: ['one'], messages: [] },
      { dimensions: 8 },
      { input: {}, dimensions: 8 },
    ]) {
      expect(estimateCost(request).outputTokens, JSON.stringify(request)).to.equal(1_024);
    }
  });

  it('takes no count that is none', () => {
    const outputOf = (fields: object): number => estimateCost({ ...fields }).outputTokens;
    for (const value of ['5', NaN, Infinity, -1, [5], null]) {
      expect(outputOf({ max_tokens: value }), String(value)).to.equal(1_024);
      expect(outputOf({ n: value }), String(value)).to.equal(1_024);
    }
  });

  it('names the option that is wrong', () => {
    expect(() => estimateCost({}, { bytesPerToken: 0 })).to.throw('bytesPerToken must be finite and above 0');
    expect(() => estimateCost({}, { defaultOutputTokens: -1 })).to.throw('defaultOutputTokens must be finite and 0');
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
