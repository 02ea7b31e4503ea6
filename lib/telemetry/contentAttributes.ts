import type { Attributes } from '@opentelemetry/api';
import type { AttemptContent } from '../core/content.ts';
import { inputMessages, outputMessages, systemInstructions, toolDefinitions } from './contentMessages.ts';
import { SPAN_ATTRIBUTES as NAMES } from './spanNames.ts';

/** What a text is part of. */
export type ContentKind = 'input' | 'output' | 'system' | 'tools';

export interface ContentSettings {
  /** Each text passes it. One that throws keeps all content of that call back. */
  readonly redact: ((text: string, kind: ContentKind) => string) | undefined;
  /** Most characters in one attribute. */
  readonly maxContentChars: number;
}

/** What the JSON around a text or a message costs, about. */
const AROUND = 40;

/** Words of the format, which no redaction is asked about. */
const STRUCTURE: ReadonlySet<string> = new Set(['type', 'role', 'id', 'name', 'finish_reason']);

/** Captured content as attributes: JSON text, as the conventions want it on spans. Too much of it is cut, the oldest first. */
export function contentAttributes(content: AttemptContent, { redact, maxContentChars }: ContentSettings): Attributes {
  const attributes: Attributes = {};
  let truncated = false;
  const add = (name: string, kind: ContentKind, items: readonly unknown[]): void => {
    if (items.length === 0) return;
    const cut = new Cut(maxContentChars, (text) => (redact === undefined ? text : redact(text, kind)));
    attributes[name] = JSON.stringify(cut.newest(items));
    truncated ||= cut.truncated;
  };
  try {
    add(NAMES.systemInstructions, 'system', systemInstructions(content));
    add(NAMES.inputMessages, 'input', inputMessages(content));
    add(NAMES.outputMessages, 'output', outputMessages(content));
    add(NAMES.toolDefinitions, 'tools', toolDefinitions(content));
  } catch {
    return {};
  }
  if (truncated) attributes[NAMES.contentTruncated] = true;
  return attributes;
}

/** Copies plain data with its texts redacted, until so much has been copied. */
class Cut {
  truncated = false;
  readonly #redact: (text: string) => string;
  #left: number;

  constructor(maxChars: number, redact: (text: string) => string) {
    this.#left = maxChars;
    this.#redact = redact;
  }

  newest(items: readonly unknown[]): unknown[] {
    const kept: unknown[] = [];
    for (const item of items.toReversed()) {
      if (this.#left <= 0) {
        this.truncated = true;
        break;
      }
      kept.unshift(this.#copy(item));
    }
    return kept;
  }

  #copy(value: unknown, key = ''): unknown {
    if (typeof value === 'string') return this.#text(STRUCTURE.has(key) ? value : this.#redact(value));
    if (typeof value !== 'object' || value === null) return value;
    this.#left -= AROUND;
    if (Array.isArray(value)) return value.map((item) => this.#copy(item));
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, this.#copy(field, name)]));
  }

  #text(text: string): string {
    const room = Math.max(0, this.#left);
    this.#left -= text.length;
    if (text.length <= room) return text;
    this.truncated = true;
    return `${text.slice(0, room)}…`;
  }
}
