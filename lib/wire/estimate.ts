import { positive, zeroOrMore } from '../core/checks.ts';
import { utf8Length } from './utf8Length.ts';

export interface EstimateOptions {
  /** UTF-8 bytes of text that make a token. Finite, above 0. Default: 4. */
  readonly bytesPerToken?: number;
  /** Output tokens of a request that names no limit. Finite, 0 or more. Default: 1,024. */
  readonly defaultOutputTokens?: number;
}

export const ESTIMATE_DEFAULTS: Required<EstimateOptions> = Object.freeze({
  bytesPerToken: 4,
  defaultOutputTokens: 1_024,
});

/** What a request will probably be counted as. Never NaN; 0 or more. */
export interface CostEstimate {
  /** Input and output together. */
  readonly tokens: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** A guess: it is clamped to a limit, where a cost that a caller named is refused. */
  readonly explicit: false;
}

const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_ANSWER = 3;
const TOKENS_PER_LOW_IMAGE = 85;
const TOKENS_PER_IMAGE = 765;
const BASE64_LENGTH_PER_AUDIO_TOKEN = 2_133;
const BASE64_LENGTH_PER_FILE_TOKEN = 43;
const DEEPEST = 24;

/** Fields of a request that hold what a model reads. */
const TEXTS = ['messages', 'input', 'instructions', 'prompt', 'tools', 'functions', 'response_format', 'text'];
const NO_OPTIONS: EstimateOptions = {};

type Fields = Readonly<Record<string, unknown>>;

/**
 * Estimates, without a tokenizer, what a provider's token limiter will take for a request:
 *
 * ```text
 * tokens = input + n * output
 * input  = bytes / 4 of all text, tools and schemas + 4 a message + 3
 *          + 765 an image (85 with detail: low) + base64 length / 2,133 of audio, / 43 of files
 * output = max_completion_tokens ?? max_tokens ?? max_output_tokens ?? 1,024
 * ```
 *
 * For embeddings (a list of texts, or token numbers, as `input`) there is no output.
 *
 * Origin: OpenAI's and Azure's limiters reserve the characters of the prompt over four and the output limit when a
 * request arrives (learn.microsoft.com/azure/ai-foundry/openai/how-to/quota, "Understanding rate limits"); 4 and 3 are the
 * framing of chat messages (OpenAI cookbook, "How to count tokens with tiktoken"); 85 and 765 are the tiles of an image
 * of 1,024 x 1,024. Bytes and not characters, so that scripts of three bytes a letter count about a token a letter.
 *
 * @throws SluiceError `invalid_option` for an option out of its range.
 *
 * @example
 * ```ts
 * import { estimateCost } from 'sluice';
 *
 * const request = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 100 };
 * console.log(estimateCost(request).tokens); // => 110
 * ```
 */
export function estimateCost(request: unknown, options: EstimateOptions = NO_OPTIONS): CostEstimate {
  const { bytesPerToken, defaultOutputTokens } = options === NO_OPTIONS ? ESTIMATE_DEFAULTS : checkedOptions(options);
  const fields = (typeof request === 'object' && request !== null ? request : {}) as Fields;
  const tally: Tally = { bytes: 0, tokens: 0 };
  for (const key of TEXTS) if (fields[key] !== undefined) add(tally, fields[key], 0);
  const { messages, input } = fields;
  const listed = Array.isArray(messages) ? messages : Array.isArray(input) ? input : undefined;
  const embeds = messages === undefined && isEmbedding(fields);
  if (!embeds) {
    tally.tokens += TOKENS_PER_ANSWER + TOKENS_PER_MESSAGE * (listed?.length ?? (typeof input === 'string' ? 1 : 0));
  }
  const named = [fields['max_completion_tokens'], fields['max_tokens'], fields['max_output_tokens']].find(isCount);
  const choices = [fields['n'], fields['best_of']].filter(isCount);
  const inputTokens = tally.tokens + Math.ceil(tally.bytes / bytesPerToken);
  // Kept finite: no request may ask for so many answers of such a length that its cost is no number.
  const asked = Math.ceil(named ?? defaultOutputTokens) * Math.max(1, ...choices);
  const outputTokens = embeds ? 0 : Math.min(asked, Number.MAX_SAFE_INTEGER);
  return { tokens: inputTokens + outputTokens, inputTokens, outputTokens, explicit: false };
}

function checkedOptions({ bytesPerToken, defaultOutputTokens }: EstimateOptions): Required<EstimateOptions> {
  const usual = ESTIMATE_DEFAULTS;
  return {
    bytesPerToken: positive('bytesPerToken', bytesPerToken ?? usual.bytesPerToken),
    defaultOutputTokens: zeroOrMore('defaultOutputTokens', defaultOutputTokens ?? usual.defaultOutputTokens),
  };
}

interface Tally {
  bytes: number;
  tokens: number;
}

/** Adds all text below `value`, object keys included. */
function add(tally: Tally, value: unknown, depth: number): void {
  if (typeof value === 'string') tally.bytes += utf8Length(value);
  else if (typeof value === 'number') tally.tokens += depth === 0 ? 0 : 1;
  else if (typeof value === 'boolean') tally.bytes += 4;
  else if (typeof value === 'object' && value !== null && depth < DEEPEST) {
    if (Array.isArray(value)) for (const item of value as unknown[]) add(tally, item, depth + 1);
    else if (!addMedia(tally, value as Fields)) addFields(tally, value as Fields, depth);
  }
}

function addFields(tally: Tally, fields: Fields, depth: number): void {
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || value === null || typeof value === 'function') continue;
    // Names of a message's own fields become framing, which is counted a message.
    const framing = key === 'role' || key === 'content' || key === 'type';
    if (!framing) tally.bytes += key.length;
    if (key === 'role' || (key === 'type' && depth < 4)) continue;
    add(tally, value, depth + 1);
  }
}

/** Images, audio and files, whose data is no text. @returns Whether `part` was one. */
function addMedia(tally: Tally, part: Fields): boolean {
  const { image_url: image, input_audio: audio, file_data: fileData, file, detail } = part;
  if (image !== undefined || part['type'] === 'input_image') {
    const low = (detail ?? (image as Fields | null | undefined)?.['detail']) === 'low';
    tally.tokens += low ? TOKENS_PER_LOW_IMAGE : TOKENS_PER_IMAGE;
    return true;
  }
  const sound = (audio as Fields | null | undefined)?.['data'];
  if (typeof sound === 'string') {
    tally.tokens += Math.ceil(sound.length / BASE64_LENGTH_PER_AUDIO_TOKEN);
    return true;
  }
  const document = fileData ?? (file as Fields | null | undefined)?.['file_data'];
  if (typeof document !== 'string') return false;
  tally.tokens += Math.ceil(document.length / BASE64_LENGTH_PER_FILE_TOKEN);
  return true;
}

/** Lists of texts and token numbers are embeddings; a list of objects is a conversation. */
function isEmbedding(fields: Fields): boolean {
  const { input } = fields;
  if (!(Array.isArray(input) || typeof input === 'string')) return false;
  if ('dimensions' in fields || 'encoding_format' in fields) return true;
  const first: unknown = Array.isArray(input) ? input[0] : undefined;
  return typeof first === 'string' || typeof first === 'number' || Array.isArray(first);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
