import { expect } from 'chai';
import { inspect } from 'node:util';
import type { Answer } from '../../lib/core/answer.ts';
import type { ErrorCode, LocalErrorCode, SluiceErrorFields, UpstreamErrorCode } from '../../lib/core/errors.ts';
import { SluiceError, invalidOption, invalidRequest, isSluiceError } from '../../lib/core/errors.ts';

// Records, so that a code added to or taken from the types stops this file from compiling.

const UPSTREAM: Record<UpstreamErrorCode, { retryable: boolean }> = {
  rate_limited: { retryable: true },
  quota_exhausted: { retryable: false },
  request_too_large: { retryable: false },
  context_too_long: { retryable: false },
  content_filtered: { retryable: false },
  overloaded: { retryable: true },
  server_error: { retryable: true },
  bad_request: { retryable: false },
  auth: { retryable: false },
  not_found: { retryable: false },
  conflict: { retryable: true },
  connection: { retryable: true },
  stream_truncated: { retryable: true },
  stream_idle: { retryable: true },
  timeout: { retryable: true },
  upstream_body_invalid: { retryable: true },
};

const LOCAL: Record<LocalErrorCode, true> = {
  timeout_deadline: true,
  aborted: true,
  superseded: true,
  circuit_open: true,
  queue_full: true,
  queue_timeout: true,
  cost_too_large: true,
  retry_budget_exhausted: true,
  spend_capped: true,
  lane_lost: true,
  limiter_unavailable: true,
  invalid_request: true,
  invalid_option: true,
  invalid_policy: true,
  closed: true,
};

const SECRET = 'the prompt of a user';

const partial: Answer = {
  text: SECRET,
  reasoning: '',
  refusal: '',
  toolCalls: [],
  finishReason: null,
  choices: [],
  usage: undefined,
  model: 'gpt-5.5',
  restarts: 0,
  empty: false,
};

const FULL: Required<SluiceErrorFields> = {
  retryable: false,
  retryAfterMs: 1200,
  status: 429,
  requestId: 'req_1',
  model: 'gpt-5.5',
  attempt: 2,
  attempts: [
    {
      attempt: 1,
      model: 'gpt-5.5',
      code: 'overloaded',
      status: 503,
      requestId: 'req_0',
      retryAfterMs: undefined,
      durationMs: 40,
    },
  ],
  while: 'headers',
  limit: 60,
  requested: 61,
  partial,
  cause: { name: 'TypeError', code: 'UND_ERR_SOCKET', message: 'terminated' },
  providerCode: 'rate_limit_exceeded',
  providerType: 'requests',
  contentType: 'application/json',
};

describe('SluiceError', () => {
  for (const [code, { retryable }] of Object.entries(UPSTREAM)) {
    it(`counts ${code} as upstream, ${retryable ? '' : 'not '}retryable`, () => {
      const error = new SluiceError(code as ErrorCode, 'm');
      expect(error.source).to.equal('upstream');
      expect(error.retryable).to.equal(retryable);
    });
  }

  for (const code of Object.keys(LOCAL)) {
    it(`counts ${code} as local, not retryable`, () => {
      const error = new SluiceError(code as ErrorCode, 'm');
      expect(error.source).to.equal('local');
      expect(error.retryable).to.equal(false);
    });
  }

  it('lets the provider overrule whether a retry may mend it', () => {
    expect(new SluiceError('rate_limited', 'm', { retryable: false }).retryable).to.equal(false);
    expect(new SluiceError('bad_request', 'm', { retryable: true }).retryable).to.equal(true);
  });

  it('is an Error with a name, a message and a stack', () => {
    const error = new SluiceError('connection', 'the connection was reset');
    expect(error).to.be.instanceOf(Error);
    expect(String(error)).to.equal('SluiceError: the connection was reset');
    expect(error.stack).to.include('errors-spec');
    expect(error.attempts).to.deep.equal([]);
  });

  it('keeps every field', () => {
    const error = new SluiceError('rate_limited', 'm', FULL);
    for (const [field, value] of Object.entries(FULL)) {
      expect(error[field as keyof SluiceErrorFields], field).to.deep.equal(value);
    }
  });

  it('shows the partial answer neither in JSON nor among its own keys nor when spread', () => {
    const error = new SluiceError('stream_truncated', 'm', FULL);
    expect(error.partial).to.equal(partial);
    expect(JSON.stringify(error)).not.to.include(SECRET);
    expect(Object.keys(error)).not.to.include('partial');
    expect(Object.assign({}, error)).not.to.have.property('partial');
    expect(inspect(error)).not.to.include(SECRET);
  });

  it('puts name, message, fields and cause into JSON', () => {
    const json = JSON.parse(JSON.stringify(new SluiceError('rate_limited', 'm', FULL))) as Record<string, unknown>;
    const { partial: _, ...shown } = FULL;
    expect(json).to.deep.equal({
      name: 'SluiceError',
      message: 'm',
      code: 'rate_limited',
      source: 'upstream',
      ...(JSON.parse(JSON.stringify(shown)) as object),
    });
  });

  describe('with', () => {
    it('changes the fields given and keeps all others, the hidden ones and the stack too', () => {
      const error = new SluiceError('rate_limited', 'm', FULL);
      const changed = error.with({ attempt: 3, model: undefined });
      expect(changed).not.to.equal(error);
      expect(changed.attempt).to.equal(3);
      expect(changed.model).to.equal(undefined);
      for (const [field, value] of Object.entries(FULL)) {
        if (field === 'attempt' || field === 'model') continue;
        expect(changed[field as keyof SluiceErrorFields], field).to.deep.equal(value);
      }
      expect(changed.code).to.equal('rate_limited');
      expect(changed.message).to.equal('m');
      expect(changed.stack).to.equal(error.stack);
      expect(isSluiceError(changed)).to.equal(true);
    });

    it('leaves the first as it was', () => {
      const error = new SluiceError('rate_limited', 'm', FULL);
      error.with({ attempt: 3, partial: undefined });
      expect(error.attempt).to.equal(2);
      expect(error.partial).to.equal(partial);
    });
  });
});

describe('isSluiceError', () => {
  it('knows one by its brand, which another copy of the library shares', () => {
    expect(isSluiceError(new SluiceError('closed', 'm'))).to.equal(true);
    expect(isSluiceError({ [Symbol.for('sluice.error')]: true })).to.equal(true);
  });

  it('takes nothing else for one', () => {
    const others = [undefined, null, 0, 'SluiceError', {}, new Error('m'), { name: 'SluiceError', code: 'closed' }];
    for (const other of others) expect(isSluiceError(other), inspect(other)).to.equal(false);
  });
});

describe('invalidOption', () => {
  const cases: readonly (readonly [value: unknown, shown: string])[] = [
    [NaN, 'NaN'],
    [-1, '-1'],
    [true, 'true'],
    [undefined, 'undefined'],
    [null, 'null'],
    ['', 'an empty string'],
    ['sk-secret', 'a string of 9 characters'],
    [[1, 2], 'an array of 2'],
    [{ key: 'sk-secret' }, 'an object'],
    [() => 1, 'a function'],
    [1n, 'a bigint'],
  ];
  for (const [value, shown] of cases) {
    it(`names the option, the rule and ${shown}`, () => {
      const error = invalidOption('capacity', 'finite and above 0', value);
      expect(error.code).to.equal('invalid_option');
      expect(error.message).to.equal(`capacity must be finite and above 0, got ${shown}`);
    });
  }
});

describe('invalidRequest', () => {
  it('names the field, the rule and the value', () => {
    const error = invalidRequest('request.model', 'a string that is not empty', '');
    expect(error.code).to.equal('invalid_request');
    expect(error.message).to.equal('request.model must be a string that is not empty, got an empty string');
  });
});
