// The pieces of a chat stream, as providers send them.

export interface RawChunk {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly choices: readonly Record<string, unknown>[];
  readonly [key: string]: unknown;
}

const chunk = (choices: readonly Record<string, unknown>[], more: Record<string, unknown> = {}): RawChunk => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  model: 'm1-2026',
  choices,
  ...more,
});

export const role = (): RawChunk => chunk([{ index: 0, delta: { role: 'assistant', content: '' } }]);
export const say = (content: string, index = 0): RawChunk => chunk([{ index, delta: { content } }]);
export const stop = (reason = 'stop', index = 0): RawChunk => chunk([{ index, delta: {}, finish_reason: reason }]);
export const usage = (): RawChunk => chunk([], { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
export const DONE = '[DONE]';

/** An answer that is not streamed. */
export const whole = (content: string | null, message: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm1-2026',
  choices: [{ index: 0, message: { role: 'assistant', content, ...message }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});
