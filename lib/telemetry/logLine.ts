import type { SluiceEvent } from '../core/events.ts';
import { outcomeName } from './outcomeName.ts';

/** A value of a structured log. */
export type LogValue = string | number | boolean;
export type LogFields = Record<string, LogValue>;

export interface LogLine {
  readonly fields: LogFields;
  readonly message: string;
}

/** The event in flat fields, those that are not known left out, and in a sentence. Holds no content, key or header. */
export function logLine(event: SluiceEvent): LogLine {
  const { type, callId, attempt, model, tenant, conversation } = event;
  const of = model === undefined ? '' : ` of ${model}`;
  const line = (message: string, more: Readonly<Record<string, LogValue | undefined>> = {}): LogLine => ({
    fields: present({ event: type, callId, attempt, model, tenant, conversation, ...more }),
    message,
  });
  switch (event.type) {
    case 'queued': {
      const { where, position, waitMs } = event;
      return line(`waits in the ${where} queue at place ${position}`, { queue: where, position, waitMs });
    }
    case 'granted': {
      const { where, waitedMs } = event;
      return line(`granted after ${whole(waitedMs)} ms`, { queue: where, waitedMs: whole(waitedMs) });
    }
    case 'left':
      return line(`left the ${event.where} queue`, { queue: event.where });
    case 'attempt.started':
      return line(`attempt ${attempt}${of} sent`, { server: event.server?.host });
    case 'hints': {
      const { hints, status } = event;
      return line(`attempt ${attempt}${of}: the provider told of its limits`, {
        status,
        retryAfterMs: hints.retryAfterMs,
        remainingRequests: hints.requests?.remaining,
        remainingTokens: hints.tokens?.remaining,
      });
    }
    case 'committed': {
      const latencyMs = whole(event.firstContentMs);
      return line(`attempt ${attempt}${of}: first content after ${latencyMs} ms`, { latencyMs });
    }
    case 'attempt.ended': {
      const { code, status, requestId, usage } = event;
      const outcome = outcomeName(event.outcome, code);
      const latencyMs = whole(event.durationMs);
      return line(`attempt ${attempt}${of} ${ENDED[outcome]}${because(code, status)} after ${latencyMs} ms`, {
        ...{ outcome, code, status, requestId, latencyMs, error: event.message },
        ...{ inputTokens: usage?.inputTokens, outputTokens: usage?.outputTokens },
      });
    }
    case 'retry.scheduled': {
      const { code, waitSource } = event;
      const waitMs = whole(event.waitMs);
      return line(`tries${model === undefined ? '' : ` ${model}`} again in ${waitMs} ms after ${code}`, {
        code,
        waitMs,
        waitSource,
      });
    }
    case 'breaker.changed': {
      const { breaker, from, to, reason } = event;
      return line(`breaker ${breaker}: ${from} to ${to}`, { breaker, from, to, reason });
    }
    case 'limit.changed': {
      const { limiter, from, to, reason } = event;
      return line(`limit ${limiter}: ${from} to ${to}`, { limiter, from, to, reason });
    }
    case 'cooldown': {
      const waitMs = whole(event.waitMs);
      return line(`pauses the quota${of} for ${waitMs} ms after ${event.reason}`, { code: event.reason, waitMs });
    }
    case 'fallback': {
      const { from, to, code } = event;
      return line(`asks ${to} after ${code}`, { from, to, code });
    }
    case 'restart':
      return line(`the answer starts over after ${event.code}`, { code: event.code });
    case 'store.changed': {
      const { to, reason } = event;
      const message = to === 'lost' ? `the shared store is lost: ${reason ?? 'unknown'}` : 'the shared store is back';
      return { fields: present({ event: type, to, reason }), message };
    }
    case 'refused': {
      const { code, retryAfterMs } = event;
      return line(`refused${because(code)}`, { code, retryAfterMs });
    }
    case 'settled': {
      const { reservedTokens, usedTokens, refundedTokens } = event;
      return line('reservation settled', { reservedTokens, usedTokens, refundedTokens });
    }
    case 'call.ended': {
      const { code, attempts } = event;
      const outcome = outcomeName(event.outcome, code);
      const latencyMs = whole(event.durationMs);
      return line(`call${of} ${ENDED[outcome]}${because(code)} after ${latencyMs} ms and ${attempts} attempt(s)`, {
        ...{ outcome, code, attempts, latencyMs, error: event.message },
        ...{ wastedTokens: event.wastedTokens, cost: event.cost },
      });
    }
  }
}

const ENDED = { success: 'succeeded', failure: 'failed', cancelled: 'was cancelled' } as const;

function because(code: string | undefined, status?: number): string {
  if (code === undefined) return '';
  return status === undefined ? `: ${code}` : `: ${code} (${status})`;
}

/** A thousandth of a millisecond is noise in a log. */
function whole(ms: number): number {
  return Math.round(ms);
}

function present(fields: Readonly<Record<string, LogValue | undefined>>): LogFields {
  const kept: LogFields = {};
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) kept[name] = value;
  return kept;
}
