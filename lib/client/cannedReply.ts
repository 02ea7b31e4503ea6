import type { Runtime } from '../core/runtime.ts';

/** `text` as the values that an answer of this API would have. */
export function cannedReply(
  api: 'chat' | 'responses',
  stream: boolean,
  model: string,
  text: string,
  { clock }: Runtime,
): readonly unknown[] {
  const created = Math.floor(clock.wallNow() / 1000);
  return api === 'chat' ? chatReply(stream, model, text, created) : responseReply(stream, model, text, created);
}

function chatReply(stream: boolean, model: string, text: string, created: number): readonly unknown[] {
  const head = { id: 'sluice-degraded', created, model };
  const message = { role: 'assistant', content: text };
  if (!stream) {
    const choice = { index: 0, message: { ...message, refusal: null }, logprobs: null, finish_reason: 'stop' };
    return [{ ...head, object: 'chat.completion', choices: [choice] }];
  }
  const chunk = (delta: object, reason: 'stop' | null): object => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
  });
  return [chunk(message, null), chunk({}, 'stop')];
}

function responseReply(stream: boolean, model: string, text: string, createdAt: number): readonly unknown[] {
  const place = { item_id: 'sluice-degraded-0', output_index: 0, content_index: 0 };
  const content = [{ type: 'output_text', text, annotations: [] }];
  const message = { id: place.item_id, type: 'message', role: 'assistant', status: 'completed', content };
  const response = {
    id: 'sluice-degraded',
    object: 'response',
    created_at: createdAt,
    status: 'completed',
    model,
    output: [message],
    output_text: text,
    error: null,
    incomplete_details: null,
  };
  if (!stream) return [response];
  const running = { ...response, status: 'in_progress', output: [], output_text: '' };
  const open = { ...message, status: 'in_progress', content: [] };
  const part = { type: 'output_text', text: '', annotations: [] };
  return [
    { type: 'response.created', response: running },
    { type: 'response.output_item.added', output_index: 0, item: open },
    { type: 'response.content_part.added', ...place, part },
    { type: 'response.output_text.delta', ...place, delta: text, logprobs: [] },
    { type: 'response.output_text.done', ...place, text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part: content[0] },
    { type: 'response.output_item.done', output_index: 0, item: message },
    { type: 'response.completed', response },
  ].map((event, number) => ({ ...event, sequence_number: number }));
}
