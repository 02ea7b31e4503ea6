/** A chat chunk that only reports usage: `choices` is empty. */
export function isUsageReport(value: unknown): boolean {
  const { choices, usage } = Object(value) as { readonly choices?: unknown; readonly usage?: unknown };
  return Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null;
}

/**
 * Whether an event of the Responses API without content proves that a running answer goes on: a search between two pieces
 * of text takes its time. A chat chunk without content does not: providers send empty ones to keep
 * the connection alive.
 */
export function isProgress(value: unknown): boolean {
  const { type } = value as { readonly type?: unknown };
  return typeof type === 'string' && type.startsWith('response.');
}
