import type { AnswerPlan, Segment } from './AnswerPlan.ts';
import { idOf, lastTokenMs, outputTokens } from './AnswerPlan.ts';
import { pieces } from './pieces.ts';
import type { EventPart, ProviderStep } from './steps.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A streamed answer of `/v1/responses`. A finish reason of `null` leaves the terminal event out. */
export function* responsesStream(
  plan: AnswerPlan,
  headers: Readonly<Record<string, string>>,
): Generator<ProviderStep, void> {
  let sequence = 0;
  const event = (atMs: number, part: EventPart, type: string, fields: Fields, tokens = 0): ProviderStep => ({
    kind: 'event',
    atMs,
    part,
    tokens,
    event: type,
    value: { type, sequence_number: sequence++, ...fields },
  });
  yield { kind: 'head', atMs: plan.headersMs, status: 200, headers };
  const response = responseBody(plan, 'in_progress');
  yield event(plan.firstTokenMs, 'opening', 'response.created', { response });
  yield event(plan.firstTokenMs, 'opening', 'response.in_progress', { response });
  const items = itemsOf(plan);
  for (const piece of pieces(plan)) {
    const { segment, atMs, text } = piece;
    const output_index = items.indexOf(segment);
    const names = NAMES[segment.type];
    const place = { item_id: itemIdOf(segment), output_index, ...names.place };
    if (piece.opens) {
      const item = itemOf(segment, 'in_progress');
      yield event(atMs, 'opening', 'response.output_item.added', { output_index, item });
      if (names.partEvent) yield event(atMs, 'opening', `${names.partEvent}.added`, { ...place, part: names.part('') });
    }
    yield event(atMs, 'content', `response.${names.delta}.delta`, { ...place, delta: text }, piece.tokens);
    if (piece.closes) {
      const whole = segment.slice(0, segment.tokens);
      yield event(atMs, 'opening', `response.${names.delta}.done`, { ...place, [names.whole]: whole });
      if (names.partEvent)
        yield event(atMs, 'opening', `${names.partEvent}.done`, { ...place, part: names.part(whole) });
      yield event(atMs, 'opening', 'response.output_item.done', { output_index, item: itemOf(segment, 'completed') });
    }
  }
  const endMs = lastTokenMs(plan);
  if (plan.finishReason !== null) {
    const status = statusOf(plan.finishReason);
    yield event(endMs, 'finish', `response.${status}`, { response: responseBody(plan, status) });
  }
  yield { kind: 'end', atMs: endMs };
}

/** The whole answer of `/v1/responses`. */
export function responsesBody(plan: AnswerPlan): unknown {
  return responseBody(plan, statusOf(plan.finishReason ?? 'stop'));
}

type ResponseStatus = 'in_progress' | 'completed' | 'incomplete' | 'failed';

function statusOf(finishReason: string): ResponseStatus {
  if (finishReason === 'length' || finishReason === 'content_filter') return 'incomplete';
  return finishReason === 'error' ? 'failed' : 'completed';
}

function responseBody(plan: AnswerPlan, status: ResponseStatus): Fields {
  const { all, reasoning } = outputTokens(plan);
  const ended = status !== 'in_progress';
  const reason = plan.finishReason === 'length' ? 'max_output_tokens' : plan.finishReason;
  return {
    id: plan.id,
    object: 'response',
    created_at: plan.createdSeconds,
    status,
    model: plan.model,
    error: status === 'failed' ? { code: 'server_error', message: 'The model failed to generate a response.' } : null,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    output: ended ? itemsOf(plan).map((segment) => itemOf(segment, 'completed')) : [],
    usage: ended
      ? {
          input_tokens: plan.promptTokens,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: all,
          output_tokens_details: { reasoning_tokens: reasoning },
          total_tokens: plan.promptTokens + all,
        }
      : null,
  };
}

function itemsOf(plan: AnswerPlan): readonly Segment[] {
  return plan.choices[0] ?? [];
}

function itemIdOf(segment: Segment): string {
  return segment.type === 'tool' ? `fc_${idOf(segment)}` : idOf(segment);
}

function itemOf(segment: Segment, status: 'in_progress' | 'completed'): Fields {
  const { type, name, tokens } = segment;
  const id = itemIdOf(segment);
  const whole = status === 'completed' ? segment.slice(0, tokens) : '';
  const parts = status === 'completed' ? [NAMES[type].part(whole)] : [];
  if (type === 'tool') return { type: 'function_call', id, call_id: idOf(segment), name, arguments: whole, status };
  if (type === 'reasoning') return { type, id, summary: parts, status };
  return { type: 'message', id, role: 'assistant', content: parts, status };
}

interface Names {
  readonly delta: string;
  /** Field that holds the whole in the `done` event. */
  readonly whole: string;
  readonly partEvent: string | undefined;
  readonly place: Fields;
  readonly part: (text: string) => Fields;
}

const CONTENT = { partEvent: 'response.content_part', place: { content_index: 0 } };

const NAMES: Readonly<Record<Segment['type'], Names>> = {
  text: {
    ...CONTENT,
    delta: 'output_text',
    whole: 'text',
    part: (text) => ({ type: 'output_text', text, annotations: [], logprobs: [] }),
  },
  refusal: { ...CONTENT, delta: 'refusal', whole: 'refusal', part: (refusal) => ({ type: 'refusal', refusal }) },
  reasoning: {
    delta: 'reasoning_summary_text',
    whole: 'text',
    partEvent: 'response.reasoning_summary_part',
    place: { summary_index: 0 },
    part: (text) => ({ type: 'summary_text', text }),
  },
  tool: { delta: 'function_call_arguments', whole: 'arguments', partEvent: undefined, place: {}, part: () => ({}) },
};
