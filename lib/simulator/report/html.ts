/** A piece of a page. What else stands in a page is text, and is escaped. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export type HtmlValue = string | number | Html | readonly Html[];

/** Puts values into a page: text as text, whatever is in it. Also within the quotes of an attribute. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const filled = parts.map((part, i) => {
    const value = values[i];
    return value === undefined ? part : part + sourceOf(value);
  });
  return new Html(filled.join(''));
}

/** Data that a script of the page reads. Within an element `script` nothing but its end means anything. */
export function jsonData(id: string, value: unknown): Html {
  const text = JSON.stringify(value).replaceAll('<', '\\u003c');
  return new Html(`<script type="application/json" id="${id}">${text}</script>`);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function sourceOf(value: HtmlValue): string {
  if (value instanceof Html) return value.source;
  if (typeof value === 'object') return value.map(({ source }) => source).join('');
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
