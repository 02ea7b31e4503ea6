import { expect } from 'chai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { logEvents } from '../../lib/telemetry/logEvents.ts';
import type { EventLogger, LogEventsOptions, LogLevel } from '../../lib/telemetry/logEvents.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import { recording } from '../helpers/scripted.ts';

type Line = readonly [level: LogLevel, first: unknown, second: unknown];

const CONTEXT = { callId: 'c', attempt: 2, model: 'm', tenant: 't', conversation: 'k', atMs: 7 };
const ENDED = {
  type: 'attempt.ended',
  outcome: 'failure',
  code: 'rate_limited',
  message: 'the provider said no',
  status: 429,
  requestId: 'req_1',
  durationMs: 812.4,
  usage: { inputTokens: 10, outputTokens: 2, totalTokens: 12 },
};

describe('logEvents', () => {
  let lines: Line[];
  let logger: EventLogger;
  beforeEach(() => {
    lines = [];
    const method =
      (level: LogLevel) =>
      (first: unknown, second: unknown): void =>
        void lines.push([level, first, second]);
    logger = { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
  });

  function log(event: object, options?: LogEventsOptions): Line | undefined {
    lines = [];
    logEvents(logger, options)({ ...CONTEXT, ...event } as SluiceEvent);
    return lines[0];
  }
  const levelOf = (event: object, options?: LogEventsOptions): LogLevel | undefined => log(event, options)?.[0];

  it('writes one flat line for an event, the fields first', () => {
    expect(log(ENDED)).to.deep.equal([
      'info',
      {
        event: 'attempt.ended',
        callId: 'c',
        attempt: 2,
        model: 'm',
        tenant: 't',
        conversation: 'k',
        outcome: 'failure',
        code: 'rate_limited',
        status: 429,
        requestId: 'req_1',
        latencyMs: 812,
        error: 'the provider said no',
        inputTokens: 10,
        outputTokens: 2,
      },
      'attempt 2 of m failed: rate_limited (429) after 812 ms',
    ]);
  });

  it('leaves out what is not known', () => {
    const [, fields] = log({
      ...CONTEXT,
      tenant: undefined,
      model: undefined,
      type: 'restart',
      code: 'stream_idle',
    }) as Line;
    expect(fields).to.deep.equal({ event: 'restart', callId: 'c', attempt: 2, conversation: 'k', code: 'stream_idle' });
  });

  const CASES: readonly (readonly [LogLevel, object, string])[] = [
    ['debug', { type: 'queued', where: 'quota', position: 3, waitMs: 100 }, 'waits in the quota queue at place 3'],
    ['debug', { type: 'granted', where: 'quota', waitedMs: 99.6 }, 'granted after 100 ms'],
    ['debug', { type: 'left', where: 'lane' }, 'left the lane queue'],
    ['debug', { type: 'attempt.started', server: undefined }, 'attempt 2 of m sent'],
    ['debug', { type: 'hints', hints: {}, status: 200 }, 'attempt 2 of m: the provider told of its limits'],
    ['debug', { type: 'committed', firstContentMs: 80 }, 'attempt 2 of m: first content after 80 ms'],
    ['debug', { ...ENDED, outcome: 'success', code: undefined, status: 200 }, 'attempt 2 of m succeeded after 812 ms'],
    ['debug', { ...ENDED, outcome: 'dropped', code: undefined }, 'attempt 2 of m was cancelled after 812 ms'],
    [
      'info',
      { type: 'retry.scheduled', waitMs: 250, code: 'overloaded', waitSource: 'hint' },
      'tries m again in 250 ms after overloaded',
    ],
    [
      'warn',
      { type: 'breaker.changed', breaker: 'b', from: 'closed', to: 'open', reason: 'x' },
      'breaker b: closed to open',
    ],
    [
      'info',
      { type: 'breaker.changed', breaker: 'b', from: 'open', to: 'half_open', reason: 'x' },
      'breaker b: open to half_open',
    ],
    ['debug', { type: 'limit.changed', limiter: 'l', from: 16, to: 11, reason: 'x' }, 'limit l: 16 to 11'],
    [
      'info',
      { type: 'cooldown', waitMs: 2_000, reason: 'rate_limited' },
      'pauses the quota of m for 2000 ms after rate_limited',
    ],
    ['warn', { type: 'fallback', from: 'm', to: 'n', code: 'circuit_open' }, 'asks n after circuit_open'],
    ['warn', { type: 'restart', code: 'stream_truncated' }, 'the answer starts over after stream_truncated'],
    ['info', { type: 'refused', code: 'queue_full', retryAfterMs: 900 }, 'refused: queue_full'],
    ['debug', { type: 'settled', reservedTokens: 9, usedTokens: 5, refundedTokens: 4 }, 'reservation settled'],
    [
      'debug',
      { type: 'call.ended', outcome: 'success', attempts: 2, durationMs: 700 },
      'call of m succeeded after 700 ms and 2 attempt(s)',
    ],
    [
      'error',
      { type: 'call.ended', outcome: 'failure', code: 'overloaded', attempts: 3, durationMs: 700 },
      'call of m failed: overloaded after 700 ms and 3 attempt(s)',
    ],
    [
      'error',
      { type: 'call.ended', outcome: 'failure', code: undefined, attempts: 3, durationMs: 700 },
      'call of m failed after 700 ms and 3 attempt(s)',
    ],
    [
      'warn',
      { type: 'call.ended', outcome: 'failure', code: 'queue_full', attempts: 0, durationMs: 7 },
      'call of m failed: queue_full after 7 ms and 0 attempt(s)',
    ],
    [
      'debug',
      { type: 'call.ended', outcome: 'failure', code: 'aborted', attempts: 1, durationMs: 7 },
      'call of m was cancelled: aborted after 7 ms and 1 attempt(s)',
    ],
  ];
  for (const [level, event, message] of CASES) {
    it(`${level}: ${message}`, () => {
      const [at, , text] = log(event) as Line;
      expect([at, text]).to.deep.equal([level, message]);
    });
  }

  describe('options', () => {
    it('messageFirst turns the two round, which is the default for console', () => {
      const [, first, second] = log({ type: 'restart', code: 'stream_idle' }, { messageFirst: true }) as Line;
      expect(first).to.equal('the answer starts over after stream_idle');
      expect(second).to.include({ event: 'restart' });

      const { warn } = console;
      const printed: unknown[] = [];
      console.warn = (...args: unknown[]) => printed.push(args[0]);
      try {
        logEvents(console)({ ...CONTEXT, type: 'restart', code: 'stream_idle' } as SluiceEvent);
        logEvents(console, { messageFirst: false })({
          ...CONTEXT,
          type: 'restart',
          code: 'stream_idle',
        } as SluiceEvent);
      } finally {
        console.warn = warn;
      }
      expect(printed[0]).to.equal('the answer starts over after stream_idle');
      expect(printed[1]).to.include({ event: 'restart' });
    });

    it('minLevel leaves out what is below', () => {
      expect(levelOf(ENDED, { minLevel: 'info' })).to.equal('info');
      expect(levelOf(ENDED, { minLevel: 'warn' })).to.equal(undefined);
      expect(levelOf({ type: 'left', where: 'lane' }, { minLevel: 'info' })).to.equal(undefined);
    });

    it('levels says another level for a type of event, or off', () => {
      expect(levelOf(ENDED, { levels: { 'attempt.ended': 'warn' } })).to.equal('warn');
      expect(levelOf(ENDED, { levels: { 'attempt.ended': 'off' } })).to.equal(undefined);
      expect(levelOf(ENDED, { levels: { fallback: 'off' } })).to.equal('info');
    });

    it('fields go into every line, below those of the event', () => {
      const [, fields] = log(ENDED, { fields: { service: 'chat', model: 'none' } }) as Line;
      expect(fields).to.include({ service: 'chat', model: 'm' });
    });

    it('are checked', () => {
      const wrong: readonly (() => unknown)[] = [
        () => logEvents({} as never),
        () => logEvents(undefined as never),
        () => logEvents(logger, { minLevel: 'trace' as never }),
        () => logEvents(logger, { levels: { fallback: 'loud' as never } }),
      ];
      for (const make of wrong) expect(make).to.throw().with.property('code', 'invalid_option');
    });
  });

  it('calls the methods of the logger on the logger', () => {
    const own: EventLogger & { prefix: string } = {
      ...logger,
      prefix: 'p',
      warn(this: { prefix: string }) {
        lines.push(['warn', this.prefix, undefined]);
      },
    };
    logEvents(own)({ ...CONTEXT, type: 'restart', code: 'stream_idle' } as SluiceEvent);
    expect(lines).to.deep.equal([['warn', 'p', undefined]]);
  });

  describe('with a client', () => {
    const SECRET = 'sk-planted-0123456789abcdef';
    const PROMPT = 'the planted prompt';
    const ANSWER = 'the planted answer';
    const messages = [{ role: 'user' as const, content: `${PROMPT} ${SECRET}` }];

    function lived(wire: 'events$' | 'onEvent', to: EventLogger): { readonly done: boolean } {
      const runtime = virtualRuntime();
      const provider = fakeProvider(runtime, (_model, index) =>
        index === 0 ? { error: 'rate_limited', fields: { status: 429 } } : { text: ANSWER },
      );
      const listener = logEvents(to);
      const policy = { models: { default: { retry: { attempts: 2, baseMs: 1 } } } };
      const telemetry = wire === 'onEvent' ? { onEvent: listener } : undefined;
      const sluice = createSluice(provider.source, policy, { runtime, telemetry });
      if (wire === 'events$') sluice.events$.subscribe(listener);
      const call = recording(sluice.chat({ model: 'm', messages }, { tenant: 't' }));
      runtime.advance(10_000);
      return call;
    }

    for (const wire of ['events$', 'onEvent'] as const) {
      it(`hears ${wire}, and repeats neither prompt nor answer nor key`, () => {
        expect(lived(wire, logger).done).to.equal(true);
        const told = lines.map(([level, fields]) => `${level} ${(fields as { event: string }).event}`);
        expect(told).to.include.members(['info attempt.ended', 'info retry.scheduled', 'debug call.ended']);
        const printed = JSON.stringify(lines);
        for (const planted of [SECRET, PROMPT, ANSWER]) expect(printed).not.to.include(planted);
      });

      it(`hears ${wire}, and a logger that throws never reaches the call`, () => {
        const fails = (): never => {
          throw new Error('disk full');
        };
        expect(lived(wire, { debug: fails, info: fails, warn: fails, error: fails }).done).to.equal(true);
      });
    }
  });
});
