import { expect } from 'chai';
import type { SluiceEvent } from '../../../lib/core/events.ts';
import { CallTrail } from '../../../lib/http/live/CallTrail.ts';
import type { LiveCall } from '../../../lib/http/live/LiveFrame.ts';
import { eventOf } from './parts.ts';

/** What a call comes to that goes through these events. */
function callOf(...events: readonly SluiceEvent[]): LiveCall {
  const trail = new CallTrail(events[0] as SluiceEvent);
  for (const event of events) {
    if (event.type === 'queued') trail.queued(event);
    if (event.type === 'granted') trail.granted(event);
    if (event.type === 'refused') trail.turnedAway(event.atMs);
    if (event.type === 'attempt.started') trail.attemptStarted(event);
    if (event.type === 'committed') trail.committed(event);
    if (event.type === 'attempt.ended') trail.attemptEnded(event);
    if (event.type === 'call.ended') return trail.ended(event, 7, 1_000_000);
  }
  throw new Error('it did not end');
}

describe('CallTrail', () => {
  it('puts waits and attempts where they were in the time of the call', () => {
    const call = callOf(
      eventOf('queued', 100),
      eventOf('granted', 150, { waitedMs: 50 }),
      eventOf('attempt.started', 150),
      eventOf('attempt.ended', 180, { outcome: 'failure', code: 'rate_limited', status: 429, durationMs: 30 }),
      eventOf('granted', 240, { attempt: 2 }),
      eventOf('attempt.started', 240, { attempt: 2 }),
      eventOf('committed', 300, { attempt: 2, firstContentMs: 60 }),
      eventOf('attempt.ended', 400, { attempt: 2, durationMs: 160, status: 200 }),
      eventOf('call.ended', 400, { attempts: 2, durationMs: 300, cost: 0.25, wastedTokens: 5 }),
    );

    expect(call).to.deep.equal({
      number: 7,
      callId: 'c',
      beganWallMs: 1_000_100,
      model: 'm',
      answeredBy: undefined,
      tenant: 't',
      outcome: 'success',
      code: undefined,
      durationMs: 300,
      firstContentMs: 200,
      attemptCount: 2,
      attempts: [
        {
          ...{ model: 'm', atMs: 50, durationMs: 30, firstContentMs: undefined },
          ...{ outcome: 'failure', code: 'rate_limited', status: 429 },
        },
        {
          ...{ model: 'm', atMs: 140, durationMs: 160, firstContentMs: 60 },
          ...{ outcome: 'success', code: undefined, status: 200 },
        },
      ],
      waits: [{ where: 'quota', atMs: 0, durationMs: 50 }],
      tokens: undefined,
      cost: 0.25,
    });
  });

  it('names the model that stood in for the one that was asked', () => {
    const call = callOf(
      eventOf('refused', 0),
      eventOf('attempt.started', 0, { model: 'n' }),
      eventOf('attempt.ended', 10, { model: 'n' }),
      eventOf('call.ended', 10),
    );
    expect([call.model, call.answeredBy]).to.deep.equal(['m', 'n']);
  });

  it('shows a wait that ended without a grant', () => {
    const refused = callOf(eventOf('queued', 5), eventOf('refused', 25), eventOf('call.ended', 30, { durationMs: 25 }));
    expect(refused.waits).to.deep.equal([{ where: 'quota', atMs: 0, durationMs: 20 }]);
    const cancelled = callOf(eventOf('queued', 5, { where: 'lane' }), eventOf('call.ended', 30, { durationMs: 25 }));
    expect(cancelled.waits).to.deep.equal([{ where: 'lane', atMs: 0, durationMs: 25 }]);
  });

  it('counts the tokens of all attempts', () => {
    const usage = { inputTokens: 10, outputTokens: 20, totalTokens: 30 } as never;
    const call = callOf(eventOf('granted', 0), eventOf('call.ended', 9, { usage, wastedTokens: 7 }));
    expect(call.tokens).to.equal(37);
  });

  it('tells the time to first content once, and only of a call that it saw begin', () => {
    const trail = new CallTrail(eventOf('granted', 80, { waitedMs: 30 }));
    expect(trail.committed(eventOf('committed', 100) as never)).to.equal(50);
    expect(trail.committed(eventOf('committed', 120) as never)).to.equal(undefined);
    const later = new CallTrail(eventOf('granted', 80, { attempt: 2 }));
    expect(later.committed(eventOf('committed', 100, { attempt: 2 }) as never)).to.equal(undefined);
  });

  it('keeps twelve attempts and says how many there were', () => {
    const many = Array.from({ length: 40 }, (_, i) => [
      eventOf('granted', i, { attempt: i + 1, waitedMs: 1 }),
      eventOf('attempt.started', i, { attempt: i + 1 }),
      eventOf('attempt.ended', i, { attempt: i + 1, durationMs: 0 }),
    ]).flat();
    const call = callOf(...many, eventOf('call.ended', 40, { attempts: 40 }));
    expect([call.attempts.length, call.waits.length, call.attemptCount]).to.deep.equal([12, 12, 40]);
  });

  it('tells attempts of one number apart: each deployment is asked in the same attempt', () => {
    const call = callOf(
      eventOf('attempt.started', 0),
      eventOf('attempt.ended', 10, { outcome: 'failure', durationMs: 10 }),
      eventOf('attempt.started', 10),
      eventOf('committed', 15, { firstContentMs: 5 }),
      eventOf('attempt.ended', 30, { durationMs: 20 }),
      eventOf('call.ended', 30, { durationMs: 30 }),
    );
    expect(call.attempts.map(({ atMs, firstContentMs }) => [atMs, firstContentMs])).to.deep.equal([
      [0, undefined],
      [10, 5],
    ]);
  });

  it('holds no conversation, and cuts names of any length', () => {
    const long = 'x'.repeat(5_000);
    const call = callOf(
      eventOf('attempt.started', 0, { model: long }),
      eventOf('attempt.ended', 1, { model: long }),
      eventOf('call.ended', 1, { model: long, tenant: long }),
    );
    const text = JSON.stringify(call);
    expect(text).not.to.contain('secret');
    expect(text.length).to.be.below(1_000);
  });
});
