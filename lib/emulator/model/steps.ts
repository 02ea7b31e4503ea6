/** What an event of a stream is, so that faults find their place. */
export type EventPart = 'opening' | 'content' | 'finish' | 'usage' | 'fault';

/**
 * One thing that the provider does, `atMs` milliseconds after the request arrived. A stream starts with `head` and ends
 * with `end`, `reset` or `hang`; nothing follows these.
 */
export type ProviderStep = { readonly atMs: number } & (
  | { readonly kind: 'head'; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** An event of a stream. `event` is its SSE name, if it has one; `tokens` is the output that it brings. */
  | {
      readonly kind: 'event';
      readonly part: EventPart;
      readonly value: unknown;
      readonly event: string | undefined;
      readonly tokens: number;
    }
  /** A keep-alive. */
  | { readonly kind: 'comment'; readonly text: string }
  /** The literal `[DONE]`. */
  | { readonly kind: 'done' }
  /** The whole of a body that is not a stream. */
  | { readonly kind: 'body'; readonly text: string }
  /** Bytes of a stream, verbatim, in a write of their own. */
  | { readonly kind: 'bytes'; readonly bytes: string | Uint8Array }
  | { readonly kind: 'end' }
  /** The connection is reset. */
  | { readonly kind: 'reset' }
  /** Nothing more comes, and the connection stays open. */
  | { readonly kind: 'hang' }
);

export type Steps = Iterable<ProviderStep>;

/** The bytes of a step on the wire, for those that have any after the head. */
export function encodeStep(step: ProviderStep): string | Uint8Array | undefined {
  switch (step.kind) {
    case 'event': {
      const data = `data: ${JSON.stringify(step.value)}\n\n`;
      return step.event === undefined ? data : `event: ${step.event}\n${data}`;
    }
    case 'comment':
      return `: ${step.text}\n\n`;
    case 'done':
      return 'data: [DONE]\n\n';
    case 'body':
      return step.text;
    case 'bytes':
      return step.bytes;
    case 'head':
    case 'end':
    case 'reset':
    case 'hang':
      return undefined;
  }
}

/** Head, body and end at one instant. */
export function wholeBody(
  atMs: number,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
): ProviderStep[] {
  return [
    { kind: 'head', atMs, status, headers },
    { kind: 'body', atMs, text },
    { kind: 'end', atMs },
  ];
}
