import { nonEmpty, oneOf, ratio, wholeNumber, zeroOrInfinity, zeroOrMore } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';
import { PROVIDER_ERRORS } from './dialects/Dialect.ts';
import type { FaultRule, Outage, RandomFault } from './faults.ts';
import { checkAnswerSettings } from './answerSettings.ts';
import type { AnswerSettings } from './answerSettings.ts';

type Check = (option: string, value: never) => unknown;
type Fields = Readonly<Record<string, Check>>;

const STRIKES = ['connect', 'headers', 'content', 'finish', 'done'];
const SHAPES = ['openai', 'top_level', 'numeric', 'anthropic', 'flat', 'nested', 'untyped', 'openrouter'];

const anything: Check = () => {};
const flag: Check = (option, value: unknown) => accept(typeof value === 'boolean', option, 'true or false', value);
const text: Check = (option, value: unknown) => accept(typeof value === 'string', option, 'a string', value);
const status: Check = (option, value: number) =>
  accept(Number.isInteger(value) && value >= 200 && value <= 599, option, 'a status from 200 to 599', value);
const ms: Check = (option, value: number) => zeroOrMore(option, value);
const msOrNever: Check = (option, value: number) => zeroOrInfinity(option, value);
const count: Check = (option, value: number) => wholeNumber(option, value);
const end: Check = (option, value: string) => oneOf(option, value, ['close', 'reset', 'hang']);
const error: Check = (option, value: string) => oneOf(option, value, PROVIDER_ERRORS);
const after: Check = (option, value: unknown) =>
  typeof value === 'string' ? oneOf(option, value, STRIKES) : wholeNumber(option, value as number, 0);
const inBody: Check = (option, value: unknown) =>
  typeof value === 'string' ? oneOf(option, value, STRIKES.slice(1)) : wholeNumber(option, value as number, 0);
const strings: Check = (option, value: unknown) =>
  accept(
    isRecord(value) && Object.values(value).every((item) => typeof item === 'string'),
    option,
    'names with strings',
    value,
  );
const chunks: Check = (option, value: unknown) =>
  accept(Array.isArray(value) && value.every(isChunk), option, 'a list of strings, { hex } or { text, repeat }', value);

/** Fields of each kind: those it needs, and those it may have. */
const KINDS: Readonly<Record<string, { needs: Fields; may: Fields }>> = {
  pass: { needs: {}, may: {} },
  reply: { needs: { status }, may: { headers: strings, body: anything, delayMs: ms, end } },
  error: { needs: { error }, may: { retryAfterMs: ms, status, delayMs: ms } },
  cut: { needs: { after }, may: {} },
  reset: { needs: { after }, may: {} },
  stall: { needs: { after }, may: { forMs: msOrNever, commentsEveryMs: count } },
  slow: { needs: { firstTokenMs: ms }, may: {} },
  in_band_error: {
    needs: { after: inBody },
    may: {
      shape: (option, value: string) => oneOf(option, value, SHAPES),
      error,
      value: anything,
      thenDone: flag,
      end,
    },
  },
  malformed: { needs: { after: inBody }, may: { text } },
  huge_event: { needs: { after: inBody, bytes: count }, may: {} },
  no_done: { needs: {}, may: { keepOpen: flag } },
  no_usage: { needs: {}, may: {} },
  html: { needs: {}, may: { status } },
  empty: { needs: {}, may: { done: flag } },
  finish: {
    needs: { reason: (option, value: string | null) => value === null || nonEmpty(option, value) },
    may: { after: (option, value: number) => wholeNumber(option, value, 0) },
  },
  refuse_prefix: { needs: {}, may: {} },
  bytes: { needs: { chunks }, may: { everyMs: ms, delayMs: ms, headers: strings, end } },
  flood: { needs: { bytes: count }, may: { chunkBytes: count } },
};

const COMMON: Fields = {
  model: text,
  api: (option, value: string) => oneOf(option, value, ['chat', 'responses', 'embeddings']),
  conversation: text,
  stream: flag,
  requestHeaders: strings,
  when: (option, value: unknown) => accept(typeof value === 'function', option, 'a function', value),
  answer: (option, value: AnswerSettings) => {
    accept(isRecord(value), option, 'an object', value);
    checkAnswerSettings(value, `${option}.`);
  },
  also: (option, value: unknown) => checkFaults(option, value, {}),
};

const LISTS: Readonly<Record<string, Fields>> = {
  script: { times: (option, value: unknown) => value === 'always' || wholeNumber(option, value as number) },
  randomFaults: { probability: (option, value: number) => ratio(option, value) },
  outages: { fromMs: ms, toMs: msOrNever },
};

/**
 * A field that no fault has is refused too: a fault that silently does less than it says makes a test pass for nothing.
 *
 * @throws SluiceError `invalid_option` naming the fault by its place in the list.
 */
export function checkFaults(
  list: string,
  faults: unknown,
  extra: Fields = LISTS[list] ?? {},
): asserts faults is readonly (FaultRule | RandomFault | Outage)[] {
  if (!Array.isArray(faults)) throw invalidOption(list, 'a list of faults', faults);
  faults.forEach((fault: unknown, index) => checkFault(`${list}[${index}]`, fault, list, extra));
}

function checkFault(path: string, fault: unknown, list: string, extra: Fields): void {
  if (!isRecord(fault)) throw invalidOption(path, 'an object with a kind', fault);
  const fields = KINDS[oneOf(`${path}.kind`, fault['kind'] as string, Object.keys(KINDS))];
  if (fields === undefined) return;
  const known: Fields = { ...COMMON, ...fields.needs, ...fields.may, ...extra };
  for (const [name, value] of Object.entries(fault)) {
    if (name === 'kind' || value === undefined) continue;
    const check = Object.hasOwn(known, name) ? known[name] : undefined;
    if (check === undefined)
      throw invalidOption(`${path}.${name}`, `absent, as ${String(fault['kind'])} has no such field`, value);
    check(`${path}.${name}`, value as never);
  }
  const needed = list === 'script' ? fields.needs : { ...fields.needs, ...extra };
  for (const name of Object.keys(needed)) {
    if (fault[name] === undefined) throw invalidOption(`${path}.${name}`, 'given', undefined);
  }
}

function accept(accepted: boolean, option: string, rule: string, value: unknown): void {
  if (!accepted) throw invalidOption(option, rule, value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isChunk(value: unknown): boolean {
  if (typeof value === 'string') return true;
  if (!isRecord(value)) return false;
  if (typeof value['hex'] === 'string') return /^([0-9a-f]{2})*$/i.test(value['hex']);
  return typeof value['text'] === 'string' && Number.isSafeInteger(value['repeat']) && (value['repeat'] as number) > 0;
}
