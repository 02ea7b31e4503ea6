import { expect } from 'chai';
import type { ErrorCode, SluiceError } from '../../lib/core/errors.ts';
import { classifyResponse } from '../../lib/wire/classify.ts';
import { headerReader } from '../../lib/wire/headers.ts';

export function classified(status: number, body?: unknown, headers: Record<string, string> = {}): SluiceError {
  return classifyResponse({
    status,
    headers: headerReader(headers),
    body,
    wallNowMs: 0,
    requestId: 'req_1',
    model: 'm1',
  });
}

/** A body as OpenAI words it. */
export const failure = (message: string, type?: string, code?: string | number): unknown => ({
  error: { message, type, code, param: null },
});

export type FailedAnswer = readonly [name: string, status: number, body: unknown, code: ErrorCode, retryable: boolean];

export function knowsEach(answers: readonly FailedAnswer[]): void {
  for (const [name, status, body, code, retryable] of answers) {
    it(`knows ${name}: ${code}`, () => {
      const error = classified(status, body);
      expect(error).to.include({ code, retryable, status, source: 'upstream', model: 'm1', requestId: 'req_1' });
      expect(error.message).to.not.include('[object');
    });
  }
}
