import { parseDurationObject, parseWaitText } from './durations.ts';
import type { ErrorFacts, Fields } from './errorBody.ts';

/** Fields that hold a wait, and the milliseconds that one of their units is. */
const WAIT_FIELDS: readonly (readonly [string, number])[] = [
  ['retry_after_ms', 1],
  ['retryAfterMs', 1],
  ['retry_after_seconds', 1_000],
  ['retryAfterSeconds', 1_000],
  ['resets_in_seconds', 1_000],
  ['reset_in_seconds', 1_000],
  ['reset_after_seconds', 1_000],
  ['retry_after', 1_000],
  ['retryAfter', 1_000],
  ['reset_after', 1_000],
  ['resets_in', 1_000],
];

/** Fields that hold a duration or an instant as text or number. */
const OTHER_FIELDS = [
  'retryDelay',
  'retry_delay',
  'quotaResetDelay',
  'quotaResetTimeStamp',
  'resets_at',
  'reset_at',
  'resetsAt',
];

/** The wait in an error body, in milliseconds: fields first, then the words of the message. */
export function readBodyWait(facts: ErrorFacts, parseWait: (value: string) => number | undefined): number | undefined {
  for (const place of facts.places) {
    const ms = fieldWait(place, parseWait);
    if (ms !== undefined) return ms;
  }
  const said = parseWaitText(facts.message);
  if (said !== undefined) return said;
  for (const { message, raw } of facts.places) {
    for (const text of [message, raw]) {
      const ms = typeof text === 'string' ? parseWaitText(text) : undefined;
      if (ms !== undefined) return ms;
    }
  }
  return undefined;
}

function fieldWait(place: Fields, parseWait: (value: string) => number | undefined): number | undefined {
  for (const [name, unitMs] of WAIT_FIELDS) {
    const value = place[name];
    if (typeof value === 'number' && value >= 0 && Number.isFinite(value * unitMs)) return value * unitMs;
    const parsed = typeof value === 'string' ? parseWait(value) : undefined;
    // What a bare number means is in the field's name.
    if (parsed !== undefined) return unitMs === 1 && /^[\d.\s]+$/.test(value as string) ? parsed / 1_000 : parsed;
  }
  for (const name of OTHER_FIELDS) {
    const value = place[name];
    const text = typeof value === 'number' ? String(value) : value;
    const parsed = typeof text === 'string' ? parseWait(text) : parseDurationObject(value);
    if (parsed !== undefined) return parsed;
  }
  return isNested(place['metadata']) ? fieldWait(place['metadata'], parseWait) : undefined;
}

function isNested(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

/** Whether the provider asks for a lower rate rather than for a pause. */
export function saysSlowDown({ tokens, message }: ErrorFacts): boolean {
  return (
    tokens.some((token) => /^slow[ _-]?down$/i.test(token)) ||
    /\bslow[ _]down\b|\bacceleration limit|\bramp(?:ing)? up\b/i.test(message.slice(0, 2_000))
  );
}
