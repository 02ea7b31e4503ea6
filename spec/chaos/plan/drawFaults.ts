import type { FaultPosition, FaultRule, InBandShape, Outage, RandomFault } from '../../../lib/emulator/index.ts';
import type { ProviderErrorKind } from '../../../lib/emulator/model/dialects/Dialect.ts';
import type { Fault } from '../../../lib/emulator/model/faults.ts';
import type { Dice } from './Dice.ts';

const POSITIONS: readonly FaultPosition[] = ['connect', 'headers', 'content', 'finish', 'done', 0, 1, 2, 5];
/** Where there is a body that something can be in. */
const IN_BODY: readonly FaultPosition[] = POSITIONS.filter((place) => place !== 'connect');
const ERRORS: readonly ProviderErrorKind[] = [
  'requests',
  'tokens',
  'concurrency',
  'slow_down',
  'quota_exhausted',
  'overloaded',
  'server_error',
  'bad_request',
  'context_too_long',
  'content_filtered',
  'auth',
];
const SHAPES: readonly InBandShape[] = ['openai', 'top_level', 'anthropic', 'flat', 'nested', 'untyped', 'openrouter'];

/** What a provider does wrong. Whatever is answered in spite of it is the whole answer: the texts stay predictable. */
export interface DrawnFaults {
  readonly script?: readonly FaultRule[];
  readonly randomFaults?: readonly RandomFault[];
  readonly outages?: readonly Outage[];
}

/** `forMs`: how long the plan lasts; `scaleMs`: how long an answer takes, about. */
export function drawFaults(dice: Dice, forMs: number, scaleMs: number): DrawnFaults {
  const heavy = dice.chance(0.2);
  return {
    ...(dice.chance(0.6) && {
      randomFaults: dice.some(dice.whole(1, 4), () => ({
        ...drawFault(dice, scaleMs),
        probability: heavy ? dice.oneOf([0.2, 0.4, 0.6]) : dice.oneOf([0.01, 0.03, 0.1]),
      })),
    }),
    ...(dice.chance(0.4) && {
      script: dice.some(dice.whole(1, 5), () => ({ ...drawFault(dice, scaleMs), times: dice.whole(1, 8) })),
    }),
    ...(dice.chance(0.3) && {
      outages: dice.some(dice.whole(1, 2), () => {
        const fromMs = dice.whole(0, forMs);
        return { ...drawFault(dice, scaleMs), fromMs, toMs: fromMs + dice.whole(1, Math.ceil(forMs / 3)) };
      }),
    }),
  };
}

function drawFault(dice: Dice, scaleMs: number): Fault {
  const after = dice.oneOf(POSITIONS);
  switch (dice.whole(0, 13)) {
    case 0:
    case 1:
    case 2: {
      const retryAfterMs = dice.maybe(0.5, () => dice.oneOf([1, 50, 400, 2_000, 10_000, 90_000]));
      return { kind: 'error', error: dice.oneOf(ERRORS), ...(retryAfterMs !== undefined && { retryAfterMs }) };
    }
    case 3:
      return { kind: 'cut', after };
    case 4:
    case 5:
      return { kind: 'reset', after };
    case 6: {
      const forMs = dice.maybe(0.6, () => dice.spread(1, scaleMs * 10));
      const commentsEveryMs = dice.maybe(0.3, () => dice.spread(5, Math.max(6, scaleMs)));
      return {
        kind: 'stall',
        after,
        ...(forMs !== undefined && { forMs }),
        ...(forMs !== undefined && commentsEveryMs !== undefined && { commentsEveryMs }),
      };
    }
    case 7:
      return { kind: 'slow', firstTokenMs: dice.spread(scaleMs, scaleMs * 10) };
    case 8: {
      const error = dice.oneOf(ERRORS.filter((kind) => kind !== 'context_too_long'));
      return {
        kind: 'in_band_error',
        after: dice.oneOf(IN_BODY),
        shape: dice.oneOf(SHAPES),
        error,
        thenDone: dice.chance(0.3),
      };
    }
    case 9:
      return { kind: 'malformed', after: dice.oneOf(IN_BODY) };
    case 10:
      return dice.chance(0.5) ? { kind: 'no_done', keepOpen: dice.chance(0.5) } : { kind: 'no_usage' };
    case 11:
      return { kind: 'html', status: dice.oneOf([200, 403, 502, 504]) };
    case 12:
      return { kind: 'empty', done: dice.chance(0.5) };
    default:
      return {
        kind: 'reply',
        status: dice.oneOf([400, 408, 409, 413, 425, 429, 500, 503, 529]),
        body: dice.oneOf(['', 'no', { error: { message: 'no', code: 'no' } }, { error: 'no' }, []]),
        ...(dice.chance(0.5) && { headers: dice.oneOf(REPLY_HEADERS) }),
      };
  }
}

const REPLY_HEADERS: readonly Readonly<Record<string, string>>[] = [
  { 'retry-after': '1' },
  { 'retry-after': '0' },
  { 'retry-after': '-3' },
  { 'retry-after': 'soon' },
  { 'retry-after': 'Thu, 01 Jan 2026 00:00:20 GMT' },
  { 'retry-after-ms': '250' },
  { 'x-should-retry': 'true' },
  { 'x-should-retry': 'false' },
  { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '2s' },
];
