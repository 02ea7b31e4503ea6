import { expect } from 'chai';
import { isSluiceError } from '../../lib/core/errors.ts';
import { ChatReader } from '../../lib/wire/ChatReader.ts';
import { CONTEXT } from '../helpers/readSse.ts';

const chunk = (delta: unknown, finishReason: string | null = null, index = 0): unknown => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  model: 'm1-2026',
  choices: [{ index, delta, finish_reason: finishReason }],
});

const verdictOf = (value: unknown, event?: string): string => {
  const verdict = new ChatReader(CONTEXT).read(value, event);
  return typeof verdict === 'string' ? verdict : verdict.code;
};

describe('ChatReader', () => {
  it('does not let white space begin an answer, and counts it once the answer has begun', () => {
    const reader = new ChatReader(CONTEXT);
    const verdicts = [' ', '\n\n', '\u00a0', 'Hel', ' ', '\n'].map((content) => reader.read(chunk({ content })));
    expect(verdicts).to.deep.equal(['quiet', 'quiet', 'quiet', 'content', 'content', 'content']);
    expect(reader.partial().text).to.equal(' \n\n\u00a0Hel \n');

    const thinking = new ChatReader(CONTEXT);
    const pieces = [
      { reasoning_content: '\n' },
      { content: ' ' },
      { tool_calls: [{ index: 0, function: { name: 'f' } }] },
    ];
    expect(pieces.map((piece) => thinking.read(chunk(piece)))).to.deep.equal(['quiet', 'quiet', 'content']);
  });

  it('takes a text for the chunk that was read last with that text', () => {
    const reader = new ChatReader(CONTEXT);
    expect(reader.read(chunk({ content: ' ' }))).to.equal('quiet');
    expect(['\n', 'Hel', ' ', 'lo'].map((text) => reader.readText(text))).to.deep.equal([
      'quiet',
      'content',
      'content',
      'content',
    ]);
    expect(reader.partial().text).to.equal(' \nHel lo');
  });

  it('calls text, reasoning, refusals, tool calls, audio and images content', () => {
    for (const delta of [
      { content: 'x' },
      { content: null, reasoning_content: 'x' },
      { reasoning: 'x', content: '' },
      { reasoning_content: '', reasoning: 'x' },
      { thinking: 'x' },
      { reasoning_details: [{ type: 'reasoning.text', text: 'x' }] },
      { refusal: 'no' },
      { tool_calls: [{ index: 0, id: 't1', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{' } }] },
      { function_call: { name: 'f' } },
      { audio: { data: 'x' } },
      { images: [{ image_url: { url: 'x' } }] },
      { content: [{ type: 'text', text: 'x' }] },
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'x' }] }] },
    ]) {
      expect(verdictOf(chunk(delta)), JSON.stringify(delta)).to.equal('content');
    }
    expect(verdictOf({ choices: [{ index: 0, text: 'legacy' }] })).to.equal('content');
    expect(verdictOf({ choices: [{ index: 0, message: { content: 'whole' }, finish_reason: 'stop' }] })).to.equal(
      'content',
    );
  });

  it('calls everything else quiet', () => {
    for (const delta of [
      {},
      null,
      undefined,
      { role: 'assistant', content: '' },
      { role: 'assistant', content: null, refusal: null, reasoning_content: null },
      { tool_calls: [] },
      { tool_calls: [{ index: 0, function: { arguments: '' } }] },
      { audio: {} },
      { annotations: [{}] },
      { content: [] },
    ]) {
      expect(verdictOf(chunk(delta)), JSON.stringify(delta)).to.equal('quiet');
    }
    for (const value of [
      { id: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      { choices: [{ index: 0, finish_reason: null, content_filter_offsets: {} }] },
      { choices: [], usage: { prompt_tokens: 1 } },
      { object: 'chat.completion.chunk', usage: { prompt_tokens: 1 } },
      { type: 'ping' },
      {},
    ]) {
      expect(verdictOf(value), JSON.stringify(value)).to.equal('quiet');
    }
  });

  it('refuses what is no chat completion', () => {
    for (const value of [null, undefined, 5, 'text', true, [], [1], { foo: 1 }, { choices: 5 }]) {
      expect(verdictOf(value), JSON.stringify(value)).to.equal('upstream_body_invalid');
    }
  });

  it('turns an error inside the stream into a failure, with and without choices or an event name', () => {
    expect(verdictOf({ error: { message: 'x', type: 'overloaded_error' } })).to.equal('overloaded');
    expect(verdictOf({ choices: [], error: { code: 502, message: 'Worker limit reached (33/32)' } })).to.equal(
      'overloaded',
    );
    expect(
      verdictOf({ choices: [{ index: 0, delta: { content: 'x' } }], error: { code: 429, message: 'x' } }),
    ).to.equal('rate_limited');
    expect(verdictOf({ choices: [{ index: 0, error: { code: 503, message: 'x' } }] })).to.equal('server_error');
    expect(verdictOf({ message: 'x', type: 'overloaded_error' }, 'error')).to.equal('overloaded');
    expect(verdictOf([{ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'q' } }])).to.equal('rate_limited');
    expect(verdictOf({ choices: [{ index: 0, delta: { content: 'x' } }], error: null })).to.equal('content');
    expect(verdictOf({ choices: [], object: 'error', message: 'overloaded' })).to.equal('overloaded');
    const failed = { index: 1, error: { code: 429, message: 'x' } };
    expect(verdictOf({ choices: [{ index: 0, delta: { content: 'x' } }, failed] })).to.equal('rate_limited');
    expect(verdictOf({ choices: [null, { index: 0, error: null, delta: { content: 'x' } }] })).to.equal('content');
  });

  it('says where an error came from, and what it was', () => {
    const errorOf = (value: unknown): unknown => new ChatReader({ ...CONTEXT, requestId: 'req_1' }).read(value);
    expect(errorOf(5)).to.include({ code: 'upstream_body_invalid', status: 200, model: 'm1', requestId: 'req_1' });
    expect(errorOf(5)).to.have.property('message', 'the answer holds something that is no chat completion');
    const failed = errorOf(chunk({}, 'abort'));
    expect(failed).to.include({ code: 'server_error', status: undefined, model: 'm1', requestId: 'req_1' });
    expect(failed).to.have.property('message', 'the answer ended with finish_reason abort');
  });

  it('never takes a reason of failure for an end', () => {
    expect(verdictOf(chunk({ content: '' }, 'error'))).to.equal('server_error');
    expect(verdictOf(chunk({}, 'abort'))).to.equal('server_error');
    expect(verdictOf(chunk({}, 'insufficient_system_resource'))).to.equal('overloaded');
    const reader = new ChatReader({ ...CONTEXT, requestId: 'req_1' });
    const verdict = reader.read(chunk({}, 'error'));
    expect(isSluiceError(verdict) && verdict.requestId).to.equal('req_1');
    expect(isSluiceError(verdict) && verdict.status).to.equal(undefined);
  });

  it('takes reasons that it does not know for ends', () => {
    for (const reason of ['stop', 'constructor', 'toString', '__proto__', 'Error']) {
      const reader = new ChatReader(CONTEXT);
      expect(reader.read(chunk({ content: 'x' }, reason)), reason).to.equal('content');
      expect(reader.findings.finishReasons).to.deep.equal([reason]);
    }
  });

  it('keeps what chunks say of the answer, with choices or without', () => {
    const named = { id: 'c2', model: 'm2', service_tier: 'flex', system_fingerprint: 'fp_1' };
    const usage = { prompt_tokens: 3, completion_tokens: 1 };
    for (const value of [
      { ...named, usage, object: 'chat.completion.chunk' },
      { ...named, usage, choices: [] },
    ]) {
      const reader = new ChatReader(CONTEXT);
      expect(reader.read(value)).to.equal('quiet');
      const { responseId: id, responseModel: model, serviceTier, systemFingerprint } = reader.findings;
      expect({ id, model, service_tier: serviceTier, system_fingerprint: systemFingerprint }).to.deep.equal(named);
      expect(reader.findings.usage?.totalTokens).to.equal(4);
    }
  });

  it('is finished when each choice has its reason, and ended by [DONE]', () => {
    const reader = new ChatReader(CONTEXT);
    expect(reader).to.include({ state: 'open', complete: false, empty: true });
    reader.read(chunk({ content: 'x' }));
    expect(reader).to.include({ state: 'open', complete: false, empty: false });
    reader.read(chunk({}, 'stop'));
    expect(reader).to.include({ state: 'finished', complete: true });
    reader.read({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } });
    expect(reader.state).to.equal('finished');
    reader.readDone();
    expect(reader).to.include({ state: 'ended', complete: true });
    expect(reader.findings.responseModel).to.equal('m1-2026');
    expect(reader.findings.finishReasons).to.deep.equal(['stop']);
    expect(reader.findings.usage?.totalTokens).to.equal(4);
  });

  it('takes [DONE] after a choice for an end without inventing a reason, and alone for none', () => {
    const reader = new ChatReader(CONTEXT);
    reader.readDone();
    expect(reader).to.include({ state: 'open', complete: false });
    reader.read(chunk({ content: 'x' }));
    reader.readDone();
    expect(reader).to.include({ state: 'ended', complete: true });
    expect(reader.partial().finishReason).to.equal(null);
    expect(reader.findings.finishReasons).to.deep.equal([]);
  });

  it('waits for as many choices as were asked for, and for more if they come', () => {
    const reader = new ChatReader({ ...CONTEXT, choices: 2 });
    reader.read(chunk({ content: 'a' }, 'stop', 0));
    expect(reader.complete).to.equal(false);
    reader.read(chunk({ content: 'b' }, null, 1));
    reader.read(chunk({}, '', 1));
    expect(reader.complete).to.equal(false);
    reader.read(chunk({}, 'length', 1));
    expect(reader.complete).to.equal(true);
    expect(reader.findings.finishReasons).to.deep.equal(['stop', 'length']);
    reader.read(chunk({ content: 'c' }, null, 2));
    expect(reader.complete).to.equal(false);
  });

  it('takes the last usage, wherever a vendor puts it, and not the zeros after or before', () => {
    const usage = (total: number): unknown => ({
      prompt_tokens: total - 1,
      completion_tokens: total && 1,
      total_tokens: total,
    });
    const reader = new ChatReader(CONTEXT);
    reader.read({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } });
    reader.read({ choices: [], usage: usage(4) });
    expect(reader.findings.usage?.totalTokens).to.equal(4);
    reader.read({ choices: [], usage: usage(5) });
    reader.read({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } });
    reader.read({ choices: [], usage: null });
    expect(reader.findings.usage?.totalTokens).to.equal(5);
    reader.read({ choices: [{ index: 0, delta: {}, usage: usage(6) }] });
    expect(reader.findings.usage?.totalTokens).to.equal(6);
    reader.read({ choices: [], x_groq: { usage: usage(7) } });
    expect(reader.findings.usage?.totalTokens).to.equal(7);
  });

  it('reads a whole chat completion', () => {
    const reader = new ChatReader(CONTEXT);
    const message = {
      role: 'assistant',
      content: 'ok',
      tool_calls: [{ id: 't1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    };
    reader.read({
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
    });
    expect(reader).to.include({ state: 'finished', complete: true });
    expect(reader.partial()).to.deep.include({
      text: 'ok',
      finishReason: 'tool_calls',
      toolCalls: [{ index: 0, id: 't1', type: 'function', name: 'f', arguments: '{}' }],
    });
  });

  it('lets an ambiguous piece of a tool call pass as content', () => {
    const reader = new ChatReader(CONTEXT);
    reader.read(
      chunk({
        tool_calls: [
          { id: 't1', function: { arguments: '{' } },
          { id: 't2', function: { arguments: '{' } },
        ],
      }),
    );
    expect(reader.read(chunk({ tool_calls: [{ function: { arguments: '}' } }] }))).to.equal('content');
  });
});
