import { seededRandom } from '../../core/seededRandom.ts';
import { isFields, prefixOf } from './request.ts';

const WORDS =
  'amber basin cedar delta ember fjord glade harbor island juniper kelp lagoon meadow north ocean pebble quartz river sluice tide upland valley water yarrow'.split(
    ' ',
  );
const PASSAGE_TOKENS = 4_096;

// Answers are cut from one long passage, so a token costs no work and a long answer is one slice.
const { passage, starts } = writePassage();

function writePassage(): { passage: string; starts: Uint32Array } {
  const random = seededRandom(20_477);
  const starts = new Uint32Array(PASSAGE_TOKENS + 1);
  let passage = '';
  for (let i = 0; i < PASSAGE_TOKENS; i++) {
    passage += ` ${WORDS[Math.floor(random() * WORDS.length)] ?? ''}`;
    starts[i + 1] = passage.length;
  }
  return { passage, starts };
}

/**
 * Tokens `from` to `to` (not included) of the answer named by `key`. The first token is the key itself, so answers to
 * different requests differ from the start.
 */
export function answerText(key: number, from: number, to: number): string {
  if (from >= to) return '';
  let text = from === 0 ? key.toString(16).padStart(8, '0') : '';
  let at = Math.max(from, 1);
  while (at < to) {
    const start = (key + at) % PASSAGE_TOKENS;
    const end = Math.min(PASSAGE_TOKENS, start + to - at);
    text += passage.slice(starts[start], starts[end]);
    at += end - start;
  }
  return text;
}

/** How far a text reaches into the answer named by `key`. */
export interface PrefixMatch {
  /** Whole tokens of the answer that the text holds. */
  readonly tokens: number;
  /** Characters of the next token that it holds as well. */
  readonly extraChars: number;
}

/** Where an answer goes on after `prefix`, or `undefined` where `prefix` is not its beginning. */
export function matchPrefix(key: number, prefix: string): PrefixMatch | undefined {
  let length = 0;
  for (let tokens = 0; ; tokens++) {
    const token = answerText(key, tokens, tokens + 1);
    const rest = prefix.slice(length, length + token.length);
    if (!token.startsWith(rest)) return undefined;
    if (rest.length < token.length) return { tokens, extraChars: rest.length };
    length += token.length;
  }
}

/**
 * Names the answer to a request: the same for the same seed, model, messages and choice, whether streamed or not. A last
 * message of the assistant is not part of it.
 */
export function answerKey(body: Readonly<Record<string, unknown>>, seed: number, choice = 0): number {
  const input = body['messages'] ?? body['input'];
  const model = String(body['model']);
  return ((staysAsItIs(input) ? keptHash(input, model, seed) : inputHash(input, model, seed)) + choice * 40_503) >>> 0;
}

interface KeptHash {
  readonly model: string;
  readonly seed: number;
  readonly hash: number;
}

/** Of inputs that stay as they are: a simulation asks the same ones millions of times. */
const kept = new WeakMap<readonly unknown[], KeptHash>();

function keptHash(input: readonly unknown[], model: string, seed: number): number {
  const known = kept.get(input);
  if (known !== undefined && known.model === model && known.seed === seed) return known.hash;
  const hash = inputHash(input, model, seed);
  kept.set(input, { model, seed, hash });
  return hash;
}

function inputHash(input: unknown, model: string, seed: number): number {
  const asked = prefixOf(input) === undefined ? input : (input as readonly unknown[]).slice(0, -1);
  return hashText(`${model}\n${JSON.stringify(asked)}`, seed);
}

/** Frozen messages of plain text. */
function staysAsItIs(input: unknown): input is readonly unknown[] {
  if (!Array.isArray(input) || !Object.isFrozen(input)) return false;
  for (const message of input as unknown[]) {
    if (!isFields(message) || !Object.isFrozen(message) || typeof message['content'] !== 'string') return false;
  }
  return true;
}

/** 32-bit FNV-1a over UTF-16 units, with a final mix. */
export function hashText(text: string, seed: number): number {
  let hash = (0x811c9dc5 ^ Math.imul(seed, 0x9e3779b9)) >>> 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x21f0aaad);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Names the software behind a model. */
export function fingerprintOf(model: string, seed: number): string {
  return `fp_${hashText(model, seed).toString(16).padStart(8, '0')}`;
}

export interface PredictOptions {
  /** The provider's seed. Default: 1. */
  readonly seed?: number | undefined;
  /** The provider's `tokens` setting, where it is a number. Default: 64. */
  readonly tokens?: number | undefined;
  /** Which of several choices. Default: 0. */
  readonly choice?: number | undefined;
}

/**
 * The text that the fake provider answers to a request with, so that a test can tell a lost or repeated piece. After a
 * last message of the assistant that is the beginning of that text, only the rest is sent.
 *
 * @example
 * ```ts
 * import { predictAnswer } from 'sluice/emulator';
 *
 * const request = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] };
 * console.log(predictAnswer(request, { tokens: 3 }).split(' ').length); // => 3
 * ```
 */
export function predictAnswer(body: Readonly<Record<string, unknown>>, options: PredictOptions = {}): string {
  const { seed = 1, tokens = 64, choice = 0 } = options;
  const limit = body['max_completion_tokens'] ?? body['max_tokens'] ?? body['max_output_tokens'];
  return answerText(answerKey(body, seed, choice), 0, typeof limit === 'number' ? Math.min(tokens, limit) : tokens);
}
