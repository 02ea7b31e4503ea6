export interface ReadEvent {
  /** To come back with, as the header `last-event-id`. */
  readonly id: string | undefined;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** The events of a stream, in a browser as in Node. Reads what Sluice writes: every event has one line of JSON. */
export async function* readEvents(response: Response): AsyncGenerator<ReadEvent> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  try {
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const fields = new Map(event.split('\n').map((line) => line.split(/: ?(.*)/, 2) as [string, string]));
        const data = fields.get('data');
        if (data === undefined) continue;
        yield {
          id: fields.get('id'),
          type: fields.get('event') ?? 'message',
          data: JSON.parse(data) as Record<string, unknown>,
        };
      }
    }
  } finally {
    await reader.cancel();
  }
}
