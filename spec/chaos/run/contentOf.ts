type Fields = Readonly<Record<string, unknown>>;

/** All that a chunk, an event or a whole answer says, in one text. Reads what the wire and a caller get alike. */
export function contentOf(value: unknown): string {
  const { type, delta, choices } = fieldsOf(value);
  if (typeof type === 'string') return type.endsWith('.delta') && typeof delta === 'string' ? delta : '';
  if (!Array.isArray(choices)) return '';
  let text = '';
  for (const choice of choices as unknown[]) {
    const { delta: part, message } = fieldsOf(choice);
    const { content } = fieldsOf(part ?? message);
    if (typeof content === 'string') text += content;
  }
  return text;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
