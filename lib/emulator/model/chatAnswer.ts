import type { AnswerPlan, Segment } from './AnswerPlan.ts';
import { lastTokenMs, outputTokens } from './AnswerPlan.ts';
import { pieces } from './pieces.ts';
import type { Piece } from './pieces.ts';
import type { ProviderStep } from './steps.ts';

/** A streamed answer of `/v1/chat/completions`. */
export function* chatStream(
  plan: AnswerPlan,
  headers: Readonly<Record<string, string>>,
): Generator<ProviderStep, void> {
  yield { kind: 'head', atMs: plan.headersMs, status: 200, headers };
  const chunk = (
    atMs: number,
    part: 'opening' | 'content' | 'finish' | 'usage',
    choices: unknown[],
    tokens = 0,
  ): ProviderStep => ({
    kind: 'event',
    atMs,
    part,
    tokens,
    event: undefined,
    value: {
      id: plan.id,
      object: 'chat.completion.chunk',
      created: plan.createdSeconds,
      model: plan.model,
      system_fingerprint: plan.fingerprint,
      choices,
      ...(plan.includeUsage ? { usage: part === 'usage' ? chatUsage(plan) : null } : {}),
    },
  });
  for (let index = 0; index < plan.choices.length; index++) {
    const delta = { role: 'assistant', content: '', refusal: null };
    yield chunk(plan.firstTokenMs, 'opening', [{ index, delta, logprobs: null, finish_reason: null }]);
  }
  for (const piece of pieces(plan)) {
    const choice = { index: piece.choice, delta: deltaOf(piece), logprobs: null, finish_reason: null };
    yield chunk(piece.atMs, 'content', [choice], piece.tokens);
  }
  const endMs = lastTokenMs(plan);
  for (let index = 0; index < plan.choices.length; index++) {
    yield chunk(endMs, 'finish', [{ index, delta: {}, logprobs: null, finish_reason: plan.finishReason }]);
  }
  if (plan.includeUsage) yield chunk(endMs, 'usage', []);
  yield { kind: 'done', atMs: endMs };
  yield { kind: 'end', atMs: endMs };
}

function deltaOf({ segment, text, opens }: Piece): unknown {
  switch (segment.type) {
    case 'reasoning':
      return { reasoning_content: text };
    case 'refusal':
      return { refusal: text };
    case 'text':
      return { content: text };
    case 'tool': {
      const { index, id, name } = segment;
      const call = opens
        ? { index, id, type: 'function', function: { name, arguments: text } }
        : { index, function: { arguments: text } };
      return { tool_calls: [call] };
    }
  }
}

/** The whole answer of `/v1/chat/completions`. */
export function chatBody(plan: AnswerPlan): unknown {
  return {
    id: plan.id,
    object: 'chat.completion',
    created: plan.createdSeconds,
    model: plan.model,
    system_fingerprint: plan.fingerprint,
    choices: plan.choices.map((segments, index) => ({
      index,
      message: messageOf(segments),
      logprobs: null,
      finish_reason: plan.finishReason,
    })),
    usage: chatUsage(plan),
  };
}

function messageOf(segments: readonly Segment[]): unknown {
  const textOf = (type: Segment['type']): string | null => {
    const segment = segments.find((one) => one.type === type);
    return segment ? segment.slice(0, segment.tokens) : null;
  };
  const tools = segments.filter(({ type }) => type === 'tool');
  const reasoning = textOf('reasoning');
  return {
    role: 'assistant',
    content: textOf('text') ?? (tools.length > 0 || textOf('refusal') !== null ? null : ''),
    refusal: textOf('refusal'),
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(tools.length === 0 ? {} : { tool_calls: tools.map(toolCall) }),
  };
}

function toolCall(segment: Segment): unknown {
  const { id, name, tokens } = segment;
  return { id, type: 'function', function: { name, arguments: segment.slice(0, tokens) } };
}

function chatUsage(plan: AnswerPlan): unknown {
  const { all, reasoning } = outputTokens(plan);
  return {
    prompt_tokens: plan.promptTokens,
    completion_tokens: all,
    total_tokens: plan.promptTokens + all,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
