import type { AnswerSettings, ToolCallSettings } from './answerSettings.ts';
import { answerKey, answerText, matchPrefix } from './answerText.ts';
import { base36 } from './base36.ts';
import { sample } from './distribution.ts';
import type { RequestFacts } from './request.ts';
import { PROVIDER_DEFAULTS } from './settings.ts';

/** One stretch of an answer: its tokens, and the text of any range of them. */
export interface Segment {
  readonly type: 'reasoning' | 'text' | 'refusal' | 'tool';
  readonly tokens: number;
  slice(from: number, to: number): string;
  /** Of the answer that it is a part of. */
  readonly key: number;
  /** For a tool: which, from 0. */
  readonly index: number;
  readonly name: string;
}

/** Everything about an answer, before it is put into the events of one API. */
export interface AnswerPlan {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  readonly fingerprint: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly promptTokens: number;
  /** One list of segments for each choice. */
  readonly choices: readonly (readonly Segment[])[];
  readonly finishReason: string | null;
  readonly headersMs: number;
  readonly firstTokenMs: number;
  readonly tokenMs: number;
  readonly chunkTokens: number;
  readonly chunks: 'all' | 'ends';
}

export interface AnswerContext {
  readonly settings: AnswerSettings;
  readonly seed: number;
  readonly random: () => number;
  readonly chunks: 'all' | 'ends';
  /** What makes the answer's id one of its own. */
  readonly unique: string;
  readonly fingerprint: string;
  readonly wallMs: number;
  /** A fault's finish reason, and the chunks of content before it. */
  readonly finish?: { readonly reason: string | null; readonly after?: number | undefined } | undefined;
}

const CHARS_PER_TOKEN = 4;
const NO_CALLS: readonly ToolCallSettings[] = [];

/** Draws an answer. Where a setting is a plain number, nothing is drawn for it. */
export function planAnswer(facts: RequestFacts, context: AnswerContext): AnswerPlan {
  const { settings, random, seed, finish } = context;
  const firstTokenMs = sample(settings.firstTokenMs ?? PROVIDER_DEFAULTS.firstTokenMs, random);
  const headersMs = sample(settings.headersMs ?? PROVIDER_DEFAULTS.headersMs, random);
  const tokenMs = sample(settings.tokenMs ?? PROVIDER_DEFAULTS.tokenMs, random);
  const chunkTokens = settings.chunkTokens ?? PROVIDER_DEFAULTS.chunkTokens;
  const length = lengthOf(settings, facts, random);
  const calls = settings.toolCalls ?? (facts.tool === undefined ? NO_CALLS : [{ name: facts.tool }]);
  const most = finish?.after === undefined ? Infinity : finish.after * chunkTokens;
  const choices: Segment[][] = [];
  for (let choice = 0; choice < facts.choices; choice++) {
    const key = answerKey(facts.request.body, seed, choice);
    choices.push(cutAt(most, segmentsOf(key, facts, settings, calls, length)));
  }
  const limited = facts.outputLimit !== undefined && length.wanted > facts.outputLimit;
  return {
    id: `${facts.request.api === 'responses' ? 'resp' : 'chatcmpl'}-${context.unique}`,
    createdSeconds: Math.floor(context.wallMs / 1000),
    model: facts.model,
    fingerprint: context.fingerprint,
    stream: facts.stream,
    includeUsage: facts.includeUsage,
    promptTokens: facts.promptTokens,
    choices,
    finishReason: finish ? finish.reason : calls.length > 0 ? 'tool_calls' : limited ? 'length' : 'stop',
    headersMs: Math.min(headersMs, firstTokenMs),
    firstTokenMs,
    tokenMs,
    chunkTokens,
    chunks: context.chunks,
  };
}

/** What an API calls a part of an answer. */
export function idOf({ type, key, index }: Segment): string {
  return type === 'tool' ? `call_${base36(key)}_${index}` : `${type}_${base36(key)}`;
}

/** Output tokens of all choices, and those of them that were reasoning. */
export function outputTokens(plan: AnswerPlan): { all: number; reasoning: number } {
  let all = 0;
  let reasoning = 0;
  for (const segments of plan.choices) {
    for (const { tokens, type } of segments) {
      all += tokens;
      if (type === 'reasoning') reasoning += tokens;
    }
  }
  return { all, reasoning };
}

/** When the last token of the longest choice is there. */
export function lastTokenMs(plan: AnswerPlan): number {
  let longest = 0;
  for (const segments of plan.choices) {
    let all = 0;
    for (const { tokens } of segments) all += tokens;
    longest = Math.max(longest, all);
  }
  return plan.firstTokenMs + Math.max(0, longest - 1) * plan.tokenMs;
}

interface Length {
  readonly wanted: number;
  readonly limit: number;
}

function lengthOf(settings: AnswerSettings, facts: RequestFacts, random: () => number): Length {
  const { tokens = PROVIDER_DEFAULTS.tokens, text } = settings;
  const limit = facts.outputLimit ?? Infinity;
  if (text !== undefined) return { wanted: tokensOf(text), limit };
  if (tokens === 'max') return { wanted: facts.outputLimit ?? PROVIDER_DEFAULTS.tokens, limit };
  return { wanted: Math.round(sample(tokens, random)), limit };
}

function segmentsOf(
  key: number,
  facts: RequestFacts,
  settings: AnswerSettings,
  calls: readonly ToolCallSettings[],
  { wanted, limit }: Length,
): Segment[] {
  const segments: Segment[] = [];
  const reasoning = settings.reasoningTokens ?? (facts.reasons ? PROVIDER_DEFAULTS.askedReasoningTokens : 0);
  if (reasoning > 0)
    segments.push({ type: 'reasoning', tokens: reasoning, slice: reasons(key), key, index: 0, name: '' });
  if (calls.length > 0) {
    calls.forEach(({ name, arguments: given }, index) => {
      const json = given ?? JSON.stringify({ answer: answerText(key, 0, Math.min(wanted, limit)) });
      segments.push({ type: 'tool', tokens: tokensOf(json), slice: charSlices(json), key, index, name });
    });
    return segments;
  }
  const type = settings.refusal === true ? 'refusal' : 'text';
  const match = facts.prefix === undefined || settings.text !== undefined ? undefined : matchPrefix(key, facts.prefix);
  const skipped = match?.tokens ?? 0;
  const tokens = Math.min(Math.max(0, wanted - skipped), limit);
  const slice = settings.text === undefined ? words(key, skipped, match?.extraChars ?? 0) : charSlices(settings.text);
  if (tokens > 0) segments.push({ type, tokens, slice, key, index: 0, name: '' });
  return segments;
}

function reasons(key: number): Segment['slice'] {
  const reasoningKey = (key ^ 0x5bd1e995) >>> 0;
  return (from, to) => answerText(reasoningKey, from, to);
}

/** The words of an answer from `skipped` tokens and so many characters on. */
function words(key: number, skipped: number, extraChars: number): Segment['slice'] {
  return (from, to) => {
    const text = answerText(key, from + skipped, to + skipped);
    return from === 0 ? text.slice(extraChars) : text;
  };
}

function cutAt(most: number, segments: Segment[]): Segment[] {
  if (most === Infinity) return segments;
  let left = most;
  return segments.flatMap((segment) => {
    const tokens = Math.min(left, segment.tokens);
    left -= tokens;
    return tokens > 0 ? [{ ...segment, tokens }] : [];
  });
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN);
}

function charSlices(text: string): Segment['slice'] {
  return (from, to) => text.slice(from * CHARS_PER_TOKEN, to * CHARS_PER_TOKEN);
}
