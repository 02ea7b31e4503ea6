import { idOf, lastTokenMs, outputTokens } from './AnswerPlan.ts';
import type { AnswerPlan, Segment } from './AnswerPlan.ts';
import { pieceAt, pieces } from './pieces.ts';
import type { Piece } from './pieces.ts';
import type { EventPart, ProviderStep, Steps } from './steps.ts';

type Headers = Readonly<Record<string, string>>;

/** A streamed answer of `/v1/chat/completions`. */
export function chatStream(plan: AnswerPlan, headers: Headers): Steps {
  const [only] = plan.choices;
  const ends = plan.chunks === 'ends' && plan.choices.length === 1 && only !== undefined;
  return ends ? streamEnds(plan, only, headers) : streamAll(plan, headers);
}

function* streamAll(plan: AnswerPlan, headers: Headers): Generator<ProviderStep, void> {
  yield { kind: 'head', atMs: plan.headersMs, status: 200, headers };
  for (let index = 0; index < plan.choices.length; index++) {
    const delta = { role: 'assistant', content: '', refusal: null };
    yield chunk(plan, plan.firstTokenMs, 'opening', [choiceOf(index, delta, null)]);
  }
  for (const piece of pieces(plan)) {
    yield chunk(plan, piece.atMs, 'content', [choiceOf(piece.choice, deltaOf(piece), null)], piece.tokens);
  }
  const endMs = lastTokenMs(plan);
  for (let index = 0; index < plan.choices.length; index++) {
    yield chunk(plan, endMs, 'finish', [choiceOf(index, {}, plan.finishReason)]);
  }
  if (plan.includeUsage) yield chunk(plan, endMs, 'usage', []);
  yield { kind: 'done', atMs: endMs };
  yield { kind: 'end', atMs: endMs };
}

/** As few chunks as there can be: the role comes with the first content, and the finish reason with the last. */
function* streamEnds(plan: AnswerPlan, segments: readonly Segment[], headers: Headers): Generator<ProviderStep, void> {
  yield { kind: 'head', atMs: plan.headersMs, status: 200, headers };
  const endMs = lastTokenMs(plan);
  let finished = false;
  // Not by `pieces`: a simulation has this for every request, and a generator within one costs as much again.
  for (let i = 0, before = 0, from = 0; i < segments.length;) {
    const segment = segments[i] as Segment;
    const piece = pieceAt(plan, segment, 0, before, from);
    const delta = before + from === 0 ? { role: 'assistant', ...deltaOf(piece) } : deltaOf(piece);
    finished = piece.closes && i === segments.length - 1 && piece.atMs === endMs;
    const choice = choiceOf(0, delta, finished ? plan.finishReason : null);
    yield chunk(plan, piece.atMs, 'content', [choice], piece.tokens);
    from += piece.tokens;
    if (from < segment.tokens) continue;
    i++;
    before += segment.tokens;
    from = 0;
  }
  if (!finished) yield chunk(plan, endMs, 'finish', [choiceOf(0, {}, plan.finishReason)]);
  if (plan.includeUsage) yield chunk(plan, endMs, 'usage', []);
  yield { kind: 'done', atMs: endMs };
  yield { kind: 'end', atMs: endMs };
}

function chunk(plan: AnswerPlan, atMs: number, part: EventPart, choices: unknown[], tokens = 0): ProviderStep {
  const { id, createdSeconds: created, model, fingerprint: system_fingerprint } = plan;
  const object = 'chat.completion.chunk';
  const value = plan.includeUsage
    ? { id, object, created, model, system_fingerprint, choices, usage: part === 'usage' ? chatUsage(plan) : null }
    : { id, object, created, model, system_fingerprint, choices };
  return { kind: 'event', atMs, part, tokens, event: undefined, value };
}

function choiceOf(index: number, delta: object, finish_reason: string | null): object {
  return { index, delta, logprobs: null, finish_reason };
}

function deltaOf({ segment, text, opens }: Piece): object {
  switch (segment.type) {
    case 'reasoning':
      return { reasoning_content: text };
    case 'refusal':
      return { refusal: text };
    case 'text':
      return { content: text };
    case 'tool': {
      const { index, name } = segment;
      const id = idOf(segment);
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
  const { name, tokens } = segment;
  return { id: idOf(segment), type: 'function', function: { name, arguments: segment.slice(0, tokens) } };
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
