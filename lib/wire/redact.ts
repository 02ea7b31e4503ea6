import type { ErrorCause } from '../core/errors.ts';
import { VOCABULARY } from './vocabulary.ts';

const MAX_LENGTH = 200;
/** Read of a text at most: enough to fill a message after everything unknown has gone. */
const MAX_READ = 4_000;
const GAP = '…';

/**
 * What may be shown of a text that came from outside: words of this trade, small numbers and durations, names of system
 * errors. Everything else becomes `…`, as it may be part of a prompt, a completion, a key or a name; so does a quotation
 * of more than 40 characters. At most 200 characters.
 */
export function redact(text: string): string {
  const parts: string[] = [];
  let length = 0;
  const readable = text.slice(0, MAX_READ).replace(/(["'`“])[^"'`“”]{41,}(["'`”]|$)/g, ` ${GAP} `);
  for (const word of readable.split(/\s/)) {
    if (word === '') continue;
    const shown = showable(word) ? word : GAP;
    if (shown === GAP && parts.at(-1) === GAP) continue;
    if (length + shown.length > MAX_LENGTH - 2) {
      if (parts.at(-1) !== GAP) parts.push(GAP);
      break;
    }
    parts.push(shown);
    length += shown.length + 1;
  }
  return parts.join(' ');
}

/** Text of a page without its markup, scripts and styles, then {@link redact}ed. */
export function redactHtml(html: string): string {
  const text = html
    .slice(0, MAX_READ)
    .replace(/<(script|style)\b[^]*?(?:<\/\1\s*>|$)/gi, ' ')
    .replace(/<[^<>]*(?:>|$)/g, ' ')
    .replace(/&[#\w]{1,8};/g, ' ');
  return redact(text);
}

/** A name such as `insufficient_quota`; `undefined` where it could be something else, such as a key. */
export function redactName(name: string | undefined): string | undefined {
  if (name === undefined || name.length > 64 || KEY_LIKE.test(name)) return undefined;
  // Several words are a sentence, which may quote a prompt.
  if (name.includes(' ') && redact(name) !== name) return undefined;
  // Words and short numbers: names of errors have no words of letters and digits mixed, and keys have nothing else.
  return name.split(/[_.\- ]/).every((part) => /^(?:[A-Za-z]+\d?|\d{1,5})?$/.test(part)) && /\w/.test(name)
    ? name
    : undefined;
}

const KEY_LIKE = /^(?:sk|pk|rk|gsk|key|xai|csk|ghp|bearer|token|secret)[-_ ](?=[\w-]*\d)/i;

/** The `content-type` without its parameters; `undefined` where it is none. */
export function redactContentType(value: string | undefined): string | undefined {
  const type = value?.split(';')[0]?.trim().toLowerCase();
  return type !== undefined && /^[a-z]{1,20}\/[a-z][a-z.+-]{0,60}$/.test(type) ? type : undefined;
}

/** A copy of what was thrown that is safe to keep. */
export function causeOf(thrown: unknown): ErrorCause {
  const code = textOf(thrown, 'code') ?? textOf(fieldOf(thrown, 'cause'), 'code');
  const message = typeof thrown === 'string' ? thrown : wordsOf(thrown, 'message');
  return {
    name: redactName(nameOf(thrown)) ?? 'Error',
    code: redactName(code),
    message: redact(message),
  };
}

/** Name of what was thrown: the class, where the object's own name says only "Error". */
export function nameOf(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return typeof thrown;
  const name = textOf(thrown, 'name');
  if (name !== undefined && name !== 'Error') return name;
  return textOf(fieldOf(thrown, 'constructor'), 'name') ?? name ?? 'Error';
}

/** Reads a field of anything. A getter that throws, and a revoked proxy, give nothing. */
export function fieldOf(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

export function textOf(value: unknown, key: string): string | undefined {
  const field = fieldOf(value, key);
  return typeof field === 'string' && field !== '' ? field : undefined;
}

/** {@link textOf} to search in: empty where there is none. */
export function wordsOf(value: unknown, key: string): string {
  return textOf(value, key) ?? '';
}

function showable(word: string): boolean {
  const core = word.replace(/^[("'`“‘[{<*:-]+|[)"'`”’\]}>.,;:!?*]+$/g, '');
  if (core === '') return word.length <= 3;
  if (/^\$?\d{1,3}(?:,\d{3}){1,2}$|^\$?\d{1,8}(?:\.\d{1,9})?%?$|^\d{1,8}\/\d{1,8}$/.test(core)) return true;
  if (/^(?:\d{1,8}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h|d|k|K|M|MB|KB)){1,4}$/.test(core)) return true;
  if (/^(?:E[A-Z]{3,14}|EAI_AGAIN|(?:UND_)?ERR_[A-Z_]{3,40})$/.test(core)) return SYSTEM_CODE.test(core);
  if (core.length > 60) return false;
  if (VOCABULARY.has(core.toLowerCase())) return true;
  return core
    .replace(/(?:'s|’s|n't|n’t|'t|’t|'re|'ve)$/, '')
    .split(/[-/_=+&()]|(?<=[a-z])'/)
    .every(
      (part) => part === '' || (/^\d{1,2}$/.test(part) && /[A-Za-z]/.test(core)) || VOCABULARY.has(part.toLowerCase()),
    );
}

const SYSTEM_CODE =
  /^(?:E(?:CONN(?:RESET|REFUSED|ABORTED)|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|PROTO|ADDRINUSE)|(?:UND_)?ERR_[A-Z_]+)$/;
