import type { AnswerEvent } from './AnswerEvent.ts';
import { encodeServerSentEvent } from './ServerSentEvent.ts';
import { UiMessageWriter } from './UiMessageWriter.ts';

/** How the events of one stream are written. */
export interface EventEncoding {
  readonly headers: Readonly<Record<string, string>>;
  /** What stands before the first event. */
  readonly start: string;
  encode(event: AnswerEvent): string;
  /** What keeps the connection alive and says nothing. */
  readonly heartbeat: string;
}

/**
 * `'events'`: `delta`, `reasoning`, `tool_call` and so on, for `EventSource` or your own reader. `'ui-messages'`: the
 * UI message stream of the AI SDK, for `useChat`.
 */
export type StreamFormat = 'events' | 'ui-messages';

export const HEARTBEAT: string = encodeServerSentEvent({ comment: '' });

/** `no-transform` keeps compression off, which would hold events back; the last one does so for nginx. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

export function encodingOf({
  format,
  retryMs,
}: {
  readonly format: StreamFormat;
  readonly retryMs: number;
}): EventEncoding {
  if (format === 'ui-messages') {
    const writer = new UiMessageWriter();
    const headers = { ...HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' };
    return { headers, start: '', encode: (event) => writer.encode(event), heartbeat: HEARTBEAT };
  }
  const start = encodeServerSentEvent({ retry: retryMs });
  return { headers: HEADERS, start, encode: encodeAnswerEvent, heartbeat: HEARTBEAT };
}

export function encodeAnswerEvent({ id, type, data }: AnswerEvent): string {
  return encodeServerSentEvent({ id, event: type, data: JSON.stringify(data) });
}
