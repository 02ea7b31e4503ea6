import { expect } from 'chai';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { SluiceEvent, SluiceFact } from '../../lib/core/events.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

type FactOf<T extends SluiceFact['type']> = Extract<SluiceFact, { readonly type: T }>;

/** One fact of each type. A type added or renamed stops this file from compiling: users' dashboards know these names. */
const FACTS: { readonly [T in SluiceFact['type']]: FactOf<T> } = {
  queued: { type: 'queued', where: 'quota', position: 3, waitMs: 1200 },
  granted: { type: 'granted', where: 'lane', waitedMs: 5 },
  left: { type: 'left', where: 'quota' },
  'attempt.started': { type: 'attempt.started', server: { host: 'api.openai.com', port: 443 } },
  hints: {
    type: 'hints',
    hints: {
      retryAfterMs: 20,
      retryAfterSource: 'retry-after-ms',
      shouldRetry: true,
      requests: { limit: 60, remaining: 0, resetMs: 1000, windowMs: 60_000 },
      tokens: undefined,
      slowDown: false,
    },
    status: 429,
  },
  committed: { type: 'committed', firstContentMs: 80 },
  'attempt.ended': {
    type: 'attempt.ended',
    outcome: 'failure',
    code: 'overloaded',
    message: 'the provider answered 503',
    status: 503,
    requestId: 'req_1',
    durationMs: 90,
    usage: undefined,
    estimatedUsage: undefined,
    responseId: undefined,
    responseModel: undefined,
    serviceTier: undefined,
    systemFingerprint: undefined,
    finishReasons: [],
    contentChunks: 0,
    contentMs: 0,
  },
  'retry.scheduled': { type: 'retry.scheduled', waitMs: 250, code: 'overloaded', waitSource: 'backoff' },
  'breaker.changed': { type: 'breaker.changed', breaker: 'gpt-5.5', from: 'closed', to: 'open', reason: 'failures' },
  'limit.changed': { type: 'limit.changed', limiter: 'gpt-5.5', from: 16, to: 11, reason: 'rejected' },
  cooldown: { type: 'cooldown', waitMs: 2000, reason: 'rate_limited' },
  fallback: { type: 'fallback', from: 'gpt-5.5', to: 'deepseek-v3.2', code: 'circuit_open' },
  restart: { type: 'restart', code: 'stream_truncated' },
  'store.changed': { type: 'store.changed', to: 'lost', reason: 'TIMEOUT' },
  refused: { type: 'refused', code: 'queue_full', retryAfterMs: 900 },
  settled: { type: 'settled', reservedTokens: 900, usedTokens: 500, refundedTokens: 0 },
  'call.ended': {
    type: 'call.ended',
    outcome: 'success',
    code: undefined,
    message: undefined,
    attempts: 2,
    durationMs: 700,
    usage: undefined,
    wastedTokens: 0,
    cost: 0.25,
    usageEstimated: false,
  },
};

describe('events', () => {
  for (const fact of Object.values(FACTS)) {
    it(`${fact.type} reaches a listener with the call it belongs to, as plain data`, () => {
      const heard: SluiceEvent[] = [];
      const scope = CallScope.start(virtualRuntime(), {
        id: 'call-1',
        model: 'gpt-5.5',
        tenant: 'acme',
        conversation: 'c-17',
        onEvent: (event) => heard.push(event),
      });

      scope.report(12.5, fact);

      expect(heard).to.deep.equal([
        {
          callId: 'call-1',
          attempt: 1,
          model: 'gpt-5.5',
          tenant: 'acme',
          conversation: 'c-17',
          atMs: 12.5,
          ...fact,
        },
      ]);
      expect(structuredClone(heard)).to.deep.equal(heard);
    });
  }
});
