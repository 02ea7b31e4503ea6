import { expect } from 'chai';
import { slotRefused } from '../../lib/limits/slotRefused.ts';

describe('slotRefused', () => {
  for (const [code, message] of [
    ['queue_full', 'as many wait for a slot of the concurrency limit as may'],
    ['queue_timeout', 'no slot of the concurrency limit came free in time'],
    ['timeout_deadline', 'the deadline came before a slot of the concurrency limit'],
  ] as const) {
    it(`says in words what ${code} means, and for how long`, () => {
      const error = slotRefused({ kind: 'refused', code, retryAfterMs: 250 }, { model: 'm' });

      expect(error).to.include({ code, message, retryAfterMs: 250, model: 'm', while: 'queue', source: 'local' });
    });
  }
});
