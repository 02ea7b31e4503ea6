import type { Attributes } from '@opentelemetry/api';
import type { SluiceEvent } from '../core/events.ts';
import { EVENT_ATTRIBUTES as NAMES, SPAN_ATTRIBUTES } from './spanNames.ts';

type NotedEvent = Extract<
  SluiceEvent,
  { readonly type: 'retry.scheduled' | 'breaker.changed' | 'fallback' | 'restart' | 'refused' }
>;

/** A fact as the attributes of a span's event. */
export function eventAttributes(event: NotedEvent): Attributes {
  switch (event.type) {
    case 'retry.scheduled':
      return {
        [SPAN_ATTRIBUTES.errorType]: event.code,
        [NAMES.waitMs]: event.waitMs,
        [NAMES.waitSource]: event.waitSource,
      };
    case 'breaker.changed':
      return {
        [NAMES.breaker]: event.breaker,
        [NAMES.from]: event.from,
        [NAMES.to]: event.to,
        [NAMES.reason]: event.reason,
      };
    case 'fallback':
      return { [SPAN_ATTRIBUTES.errorType]: event.code, [NAMES.from]: event.from, [NAMES.to]: event.to };
    case 'restart':
      return { [SPAN_ATTRIBUTES.errorType]: event.code };
    case 'refused':
      return { [SPAN_ATTRIBUTES.errorType]: event.code, [NAMES.retryAfterMs]: event.retryAfterMs };
  }
}
