/** `short`: the chunk of OpenAI's reference. `long`: what its API adds to it today, of which parsing costs the most. */
export type Shape = 'short' | 'long';

const HEAD = { id: 'chatcmpl-123', object: 'chat.completion.chunk', created: 1_694_268_190, model: 'gpt-5.5' };
const EXTRA = {
  short: { head: { system_fingerprint: 'fp_44709d6fcb' }, tail: {} },
  long: {
    head: {
      id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
      service_tier: 'default',
      system_fingerprint: 'fp_fc9f1d7035',
    },
    tail: { usage: null, obfuscation: 'Zq3wR8' },
  },
};

export interface ChatReadsOptions {
  readonly shape: Shape;
  /** Chunks with content; the last of them has the finish reason too. */
  readonly chunks: number;
  /** Whether a report of usage follows, which is no chunk of these. */
  readonly usage: boolean;
}

/** The body of a streamed chat answer, each event by itself. */
export function chatReads({ shape, chunks, usage }: ChatReadsOptions): Uint8Array[] {
  const { head, tail } = EXTRA[shape];
  const frames = Array.from({ length: chunks }, (_, at) => {
    const finished = at === chunks - 1 ? 'stop' : null;
    const choices = [{ index: 0, delta: { content: ` word ${at}` }, logprobs: null, finish_reason: finished }];
    return JSON.stringify({ ...HEAD, ...head, choices, ...tail });
  });
  const counts = { prompt_tokens: 9, completion_tokens: chunks, total_tokens: chunks + 9 };
  if (usage) frames.push(JSON.stringify({ ...HEAD, ...head, choices: [], ...tail, usage: counts }));
  return [...frames, '[DONE]'].map((frame) => new TextEncoder().encode(`data: ${frame}\n\n`));
}

/** Each read comes by itself, as from a socket. */
export function streamOf(reads: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const read = reads[at++];
      if (read === undefined) controller.close();
      else controller.enqueue(read);
    },
  });
}
