/** How one request is answered. */
export interface FetchReply {
  /** Default: 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** A whole body, as JSON. */
  readonly json?: unknown;
  /** A stream of these chunks. */
  readonly chunks?: readonly unknown[];
  /** How the stream ends. Default: with `[DONE]`. */
  readonly end?: 'done' | 'reset' | 'hang';
  readonly afterMs?: number;
}

/** A `fetch` that answers by a script, the last reply for ever. `onSend` runs as a request is sent. */
export function scriptedFetch(
  replies: readonly FetchReply[],
  onSend: (index: number, init: RequestInit | undefined) => void = () => {},
): typeof globalThis.fetch {
  let index = 0;
  return async (_input, init) => {
    const at = index++;
    const reply = replies[Math.min(at, replies.length - 1)] ?? {};
    onSend(at, init);
    if (reply.afterMs !== undefined) await new Promise((resolve) => setTimeout(resolve, reply.afterMs));
    const { status = 200, headers, json } = reply;
    if (reply.chunks === undefined) return Response.json(json ?? {}, { status, headers: { ...headers } });
    return new Response(bodyOf(reply), { status, headers: { 'content-type': 'text/event-stream', ...headers } });
  };
}

function bodyOf({ chunks = [], end = 'done' }: FetchReply): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  if (end === 'done') events.push('data: [DONE]\n\n');
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      const event = events[at++];
      if (event !== undefined) controller.enqueue(encoder.encode(event));
      else if (end === 'done') controller.close();
      else if (end === 'reset')
        controller.error(Object.assign(new TypeError('terminated'), { cause: { code: 'ECONNRESET' } }));
      else return new Promise<void>(() => {});
      return undefined;
    },
  });
}

/** Chunks of a chat completion: each text, then the finish reason. */
export function chatChunks(texts: readonly string[], finish: string | null = 'stop'): readonly unknown[] {
  const chunk = (delta: object, reason: string | null): object => ({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm-2026',
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  const chunks: unknown[] = texts.map((content) => chunk({ content }, null));
  return finish === null ? chunks : [...chunks, chunk({}, finish)];
}
