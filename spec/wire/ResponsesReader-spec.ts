import { expect } from 'chai';
import { ResponsesReader } from '../../lib/wire/ResponsesReader.ts';
import { CONTEXT } from '../helpers/readSse.ts';

const response = (fields: object = {}): object => ({ id: 'resp_1', object: 'response', model: 'm1-2026', ...fields });

function verdicts(...events: readonly object[]): { reader: ResponsesReader; verdicts: readonly string[] } {
  const reader = new ResponsesReader(CONTEXT);
  const seen = events.map((event) => {
    const verdict = reader.read(event);
    return typeof verdict === 'string' ? verdict : verdict.code;
  });
  return { reader, verdicts: seen };
}

const USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15, output_tokens_details: { reasoning_tokens: 2 } };

describe('ResponsesReader', () => {
  it('reads a stream to its terminal event', () => {
    const { reader, verdicts: seen } = verdicts(
      { type: 'response.created', response: response({ status: 'in_progress' }) },
      { type: 'response.in_progress', response: response({ status: 'in_progress' }) },
      { type: 'response.output_item.added', output_index: 0, item: { id: 'msg_1', type: 'message', content: [] } },
      { type: 'response.content_part.added', item_id: 'msg_1', part: { type: 'output_text', text: '' } },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Hel' },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'lo' },
      { type: 'response.output_text.done', item_id: 'msg_1', text: 'Hello' },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { id: 'msg_1', type: 'message', content: [{ type: 'output_text', text: 'Hello' }] },
      },
      {
        type: 'response.completed',
        response: response({
          status: 'completed',
          usage: USAGE,
          output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }],
        }),
      },
    );
    expect(seen).to.deep.equal(['quiet', 'quiet', 'quiet', 'quiet', 'content', 'content', 'quiet', 'quiet', 'quiet']);
    expect(reader).to.include({ state: 'ended', complete: true, empty: false });
    expect(reader.findings.responseModel).to.equal('m1-2026');
    expect(reader.partial()).to.deep.include({ text: 'Hello', finishReason: 'completed' });
    expect(reader.findings.usage).to.deep.include({ inputTokens: 10, outputTokens: 5, reasoningTokens: 2 });
  });

  it('is complete at its terminal event only, not at [DONE]', () => {
    const { reader } = verdicts({ type: 'response.output_text.delta', delta: 'x' });
    reader.readDone();
    expect(reader).to.include({ state: 'open', complete: false });
  });

  it('keeps the reason of an incomplete response', () => {
    for (const reason of ['max_output_tokens', 'content_filter']) {
      const { reader } = verdicts({
        type: 'response.incomplete',
        response: response({ status: 'incomplete', incomplete_details: { reason } }),
      });
      expect(reader).to.include({ state: 'ended', complete: true });
      expect(reader.findings.finishReasons).to.deep.equal([reason]);
    }
  });

  it('calls reasoning, refusals, arguments, audio and calls of tools content', () => {
    for (const event of [
      { type: 'response.reasoning_text.delta', delta: 'x' },
      { type: 'response.reasoning_summary_text.delta', delta: 'x' },
      { type: 'response.refusal.delta', delta: 'x' },
      { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '{' },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '' },
      },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { id: 'ws_1', type: 'web_search_call', status: 'in_progress' },
      },
      { type: 'response.audio.delta', delta: 'x' },
      { type: 'response.code_interpreter_call_code.delta', delta: 'x' },
      { type: 'response.image_generation_call.partial_image', partial_image_b64: 'x' },
    ]) {
      const { reader, verdicts: seen } = verdicts(event);
      expect(seen, event.type).to.deep.equal(['content']);
      expect(reader.empty, event.type).to.equal(false);
    }
    expect(verdicts({ type: 'response.output_text.delta', delta: '' }).verdicts).to.deep.equal(['quiet']);
    expect(verdicts({ type: 'response.some.new.event', delta: 5 }).verdicts).to.deep.equal(['quiet']);
  });

  it('does not let white space begin an answer, and counts it once the answer has begun', () => {
    const deltas = ['\n', ' ', 'Hel', ' '].map((delta) => ({
      type: 'response.output_text.delta',
      item_id: 'm',
      delta,
    }));
    const { reader, verdicts: seen } = verdicts(...deltas);
    expect(seen).to.deep.equal(['quiet', 'quiet', 'content', 'content']);
    expect(reader.partial().text).to.equal('\n Hel ');
  });

  it('fails on errors, flat, nested, failed, and as the first event', () => {
    const rows: readonly (readonly [object, string])[] = [
      [{ type: 'error', code: 'insufficient_quota', message: 'x', param: null }, 'quota_exhausted'],
      [{ type: 'error', error: { type: 'server_error', message: 'x' } }, 'server_error'],
      [
        {
          type: 'response.failed',
          response: response({ status: 'failed', error: { code: 'rate_limit_exceeded', message: 'x' } }),
        },
        'rate_limited',
      ],
      [{ type: 'response.cancelled', response: response() }, 'server_error'],
      [{ error: { message: 'x', code: 503 } }, 'server_error'],
      [response({ status: 'failed', error: { code: 'server_error', message: 'x' } }), 'server_error'],
      [response({ status: 'failed', error: null }), 'server_error'],
      [{ foo: 1 }, 'upstream_body_invalid'],
      [[], 'upstream_body_invalid'],
    ];
    for (const [event, code] of rows) expect(verdicts(event).verdicts, JSON.stringify(event)).to.deep.equal([code]);
  });

  it('takes the data of an error event for an error, whatever its shape', () => {
    for (const data of [{ message: 'x', code: 'overloaded_error' }, { message: 'overloaded' }, 'overloaded']) {
      const verdict = new ResponsesReader(CONTEXT).read(data, 'error');
      expect(verdict, JSON.stringify(data)).to.include({ code: 'overloaded' });
    }
    const other = new ResponsesReader(CONTEXT).read({ type: 'response.output_text.delta', delta: 'x' }, 'message');
    expect(other).to.equal('content');
  });

  it('fails for good where the response was cancelled, and says how it ended', () => {
    const rows: readonly (readonly [event: object, status: string, retryable: boolean])[] = [
      [{ type: 'response.cancelled', response: response() }, 'cancelled', false],
      [{ type: 'response.canceled', response: response() }, 'cancelled', false],
      [response({ status: 'cancelled' }), 'cancelled', false],
      [response({ status: 'failed', error: null }), 'failed', true],
    ];
    for (const [event, status, retryable] of rows) {
      const reader = new ResponsesReader({ ...CONTEXT, requestId: 'req_1' });
      const verdict = reader.read(event);
      const expected = { code: 'server_error', retryable, model: 'm1', requestId: 'req_1', status: undefined };
      expect(verdict, JSON.stringify(event)).to.include(expected);
      expect(verdict).to.have.property('message', `the response ended with status ${status}`);
      expect(reader.complete).to.equal(false);
    }
  });

  it('fails on what is no response, and says where it came from', () => {
    for (const value of [undefined, null, 5, 'x', [], {}, { object: 'list' }, { type: 5 }]) {
      const reader = new ResponsesReader({ ...CONTEXT, requestId: 'req_1' });
      const verdict = reader.read(value);
      const expected = { code: 'upstream_body_invalid', model: 'm1', status: 200, requestId: 'req_1' };
      expect(verdict, JSON.stringify(value)).to.include(expected);
      expect(verdict).to.have.property('message', 'the answer holds something that is no response');
    }
  });

  it('reads a whole response', () => {
    const output = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'think' }] },
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'ok' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{"a":1}' },
    ];
    const { reader, verdicts: seen } = verdicts(response({ status: 'completed', output, usage: USAGE, error: null }));
    expect(seen).to.deep.equal(['content']);
    expect(reader).to.include({ state: 'ended', complete: true });
    expect(reader.partial()).to.deep.include({
      text: 'ok',
      reasoning: 'think',
      refusal: 'no',
      toolCalls: [{ index: 0, id: 'call_1', type: 'function', name: 'f', arguments: '{"a":1}' }],
    });
  });

  it('takes a refusal that comes whole where its deltas did not, and once where they did', () => {
    const { reader, verdicts: seen } = verdicts(
      { type: 'response.refusal.done', item_id: 'a', refusal: 'I must not. ' },
      { type: 'response.refusal.delta', item_id: 'b', delta: 'No.' },
      { type: 'response.refusal.done', item_id: 'b', refusal: 'No.' },
    );
    expect(seen).to.deep.equal(['content', 'content', 'quiet']);
    expect(reader.partial().refusal).to.equal('I must not. No.');
  });

  it('lets a piece pass that fits several calls, for whoever only forwards it', () => {
    const started = (id: string): object => ({
      type: 'response.function_call_arguments.delta',
      item_id: id,
      delta: '{',
    });
    const { verdicts: seen } = verdicts(started('fc_1'), started('fc_2'), {
      type: 'response.function_call_arguments.delta',
      delta: '}',
    });
    expect(seen).to.deep.equal(['content', 'content', 'content']);
  });

  it('tells the id, the tier and the fingerprint of the response', () => {
    const { reader } = verdicts({
      type: 'response.completed',
      response: response({ status: 'completed', service_tier: 'flex', system_fingerprint: 'fp_1' }),
    });
    expect(reader.findings).to.include({ responseId: 'resp_1', serviceTier: 'flex', systemFingerprint: 'fp_1' });
  });

  it('takes texts that come whole where their deltas did not', () => {
    const { reader } = verdicts(
      { type: 'response.output_text.done', item_id: 'a', text: 'one ' },
      { type: 'response.output_text.delta', item_id: 'b', delta: 'two ' },
      { type: 'response.output_text.done', item_id: 'b', text: 'two ' },
      { type: 'response.output_text.done', item_id: 'c', text: 'three' },
      {
        type: 'response.output_item.done',
        item: { type: 'message', content: [{ type: 'output_text', text: 'three' }] },
      },
      {
        type: 'response.output_item.done',
        item: { type: 'message', content: [{ type: 'output_text', text: ' four' }] },
      },
      { type: 'response.completed', response: response({ status: 'completed', output: [] }) },
    );
    expect(reader.partial().text).to.equal('one two three four');
    const alone = verdicts({
      type: 'response.completed',
      response: response({
        status: 'completed',
        output: [{ type: 'message', content: [{ type: 'output_text', text: 'all' }] }],
      }),
    });
    expect(alone.verdicts).to.deep.equal(['content']);
    expect(alone.reader.partial().text).to.equal('all');
  });
});
