import { expect } from 'chai';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { classifyErrorObject, classifyInStream } from '../../lib/wire/classify.ts';

const CONTEXT = { status: 200, requestId: 'req_1', model: 'm1' };

type Row = readonly [name: string, value: unknown, code: ErrorCode, status: number | undefined];

const ROWS: readonly Row[] = [
  ['OpenAI', { error: { message: 'x', type: 'server_error', param: null, code: null } }, 'server_error', undefined],
  [
    'OpenAI, a rate limit',
    { error: { message: 'x', type: 'tokens', code: 'rate_limit_exceeded' } },
    'rate_limited',
    undefined,
  ],
  ['vLLM, numeric', { error: { message: 'bad', type: 'BadRequestError', code: 400 } }, 'bad_request', 400],
  ['SGLang, numeric only', { error: { message: 'x', code: 400 } }, 'bad_request', 400],
  ['a numeric code that is text', { error: { message: 'x', code: '503' } }, 'server_error', 503],
  [
    'older vLLM',
    { object: 'error', message: 'engine failed', type: 'InternalServerError', code: 500 },
    'server_error',
    500,
  ],
  ['LM Studio, no type', { error: { message: 'Model is unloaded' } }, 'server_error', undefined],
  [
    'LM Studio, context',
    { error: { message: 'Trying to keep the first 5000 tokens when context length is 4096' } },
    'context_too_long',
    undefined,
  ],
  ['text', { error: 'rate limit exceeded' }, 'rate_limited', undefined],
  ['Anthropic', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'overloaded', undefined],
  [
    'OpenRouter beside choices',
    {
      id: 'g1',
      choices: [{ delta: { content: '' }, finish_reason: 'error' }],
      error: { code: 502, message: 'Provider disconnected' },
    },
    'server_error',
    502,
  ],
  ['beside empty choices', { choices: [], error: { code: 429, message: 'x' } }, 'rate_limited', 429],
  ['inside a choice', { choices: [{ index: 0, error: { code: 503, message: 'overloaded' } }] }, 'overloaded', 503],
  ['Gemini', { error: { code: 429, message: 'q', status: 'RESOURCE_EXHAUSTED' } }, 'rate_limited', 429],
  [
    'Gemini in an array',
    [{ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }],
    'overloaded',
    503,
  ],
  [
    'Responses, flat',
    { type: 'error', code: 'insufficient_quota', message: 'x', param: null, sequence_number: 1 },
    'quota_exhausted',
    undefined,
  ],
  [
    'Responses, nested',
    { type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'x', param: null } },
    'quota_exhausted',
    undefined,
  ],
  [
    'Responses, failed',
    { type: 'response.failed', response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'x' } } },
    'rate_limited',
    undefined,
  ],
  [
    'Responses, invalid prompt',
    { type: 'response.failed', response: { error: { code: 'invalid_prompt', message: 'x' } } },
    'content_filtered',
    undefined,
  ],
  [
    'Responses, failed without a reason',
    { type: 'response.failed', response: { error: null } },
    'server_error',
    undefined,
  ],
  ['a flat message with a code', { code: 'rate_limit_exceeded', message: 'x' }, 'rate_limited', undefined],
  ['detail', { detail: 'Not authenticated' }, 'server_error', undefined],
];

describe('classifyInStream', () => {
  for (const [name, value, code, status] of ROWS) {
    it(`knows ${name}`, () => {
      expect(classifyInStream(value, CONTEXT)).to.include({
        code,
        status,
        source: 'upstream',
        model: 'm1',
        requestId: 'req_1',
      });
    });
  }

  it('lets everything pass that is an answer', () => {
    for (const value of [
      undefined,
      null,
      5,
      'text',
      [],
      {},
      { choices: [] },
      { choices: [], error: null },
      { choices: [], error: {} },
      { choices: [], error: '' },
      { choices: [{ delta: { content: 'error' } }] },
      { choices: [], usage: {} },
      { type: 'response.created', response: { error: null } },
      { type: 'response.output_text.delta', delta: 'error' },
      { type: 'ping' },
      { object: 'response', status: 'completed', error: null, output: [] },
    ]) {
      expect(classifyInStream(value, CONTEXT), JSON.stringify(value)).to.equal(undefined);
    }
  });

  it('fails on what is known to be an error though it says nothing', () => {
    for (const value of [undefined, null, '', {}, [], 5]) {
      const expected = { code: 'server_error', status: undefined, model: 'm1', requestId: 'req_1' };
      expect(classifyErrorObject(value, CONTEXT), JSON.stringify(value)).to.include(expected);
      expect(classifyErrorObject(value, CONTEXT).message).to.equal('error in the answer');
    }
    expect(classifyErrorObject('<html>overloaded</html>', CONTEXT)).to.include({ code: 'overloaded' });
  });

  it('carries the hint of the words', () => {
    const error = classifyInStream(
      { error: { code: 'rate_limit_exceeded', message: 'Please try again in 1.5s' } },
      CONTEXT,
    );
    expect(error).to.include({ retryAfterMs: 1_500 });
  });
});
