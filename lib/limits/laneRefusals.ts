import { SluiceError } from '../core/errors.ts';
import type { LaneRefusal } from './ConversationLanes.ts';

const MESSAGES: Readonly<Record<LaneRefusal['code'], (limit: number) => string>> = {
  queue_full: (limit) => `${limit} turns of this conversation are waiting already, and no more may`,
  queue_timeout: (limit) => `the turn did not start within ${limit} ms: one before it in its conversation still runs`,
  timeout_deadline: (limit) => `the deadline, ${limit} ms after the turn was asked for, passed before it could start`,
};

export function turnRefused({ code, limit, retryAfterMs }: LaneRefusal): SluiceError {
  return new SluiceError(code, MESSAGES[code](limit), { while: 'lane', limit, retryAfterMs });
}

/** `started`: whether it ran, or waited. */
export function turnSuperseded(started: boolean): SluiceError {
  const message = 'a newer turn of the same conversation took over';
  return new SluiceError('superseded', message, started ? {} : { while: 'lane' });
}

export function turnLost(): SluiceError {
  const message = 'the lease of the conversation ran out while the turn went on: another may have started';
  return new SluiceError('lane_lost', message);
}
