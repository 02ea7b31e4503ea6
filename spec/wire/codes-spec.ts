import { expect } from 'chai';
import { codeOfName } from '../../lib/wire/codes.ts';

describe('codeOfName', () => {
  it('knows a name however its words are joined and written', () => {
    for (const name of [
      'rate_limit_error',
      'RATE_LIMIT_ERROR',
      'rate-limit-error',
      'Rate Limit Error',
      'rate.limit.error',
      'RateLimitError',
      ' rate_limit_error\n',
    ]) {
      expect(codeOfName(name), name).to.equal('rate_limited');
    }
    // Known in one word only.
    for (const name of ['APIConnectionError', 'api_connection_error', 'API Connection Error', 'api-connection.error']) {
      expect(codeOfName(name), name).to.equal('connection');
    }
    for (const name of ['context_length_exceeded', 'context-length-exceeded', 'Context Length.Exceeded']) {
      expect(codeOfName(name), name).to.equal('context_too_long');
    }
  });

  it('knows nothing of other names, and none of their parts', () => {
    for (const name of ['', ' ', '_', 'rate', 'rate_limit_errors', 'a rate_limit_error', 'constructor', '429']) {
      expect(codeOfName(name), name).to.equal(undefined);
    }
  });
});
