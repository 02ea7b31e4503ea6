import type { Usage } from '../core/hints.ts';

/** Text of a choice of the answer, to be added to what came before it. */
export interface TextPiece {
  /** Number of the choice; 0 where only one was asked for. */
  readonly index: number;
  readonly text: string;
}

/** A piece of a tool call. `id` and `name` come with the first piece that knows them. */
export interface ToolCallPiece {
  /** Number of the choice. */
  readonly index: number;
  /** Number of the tool call within the choice, from 0. */
  readonly call: number;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  /** JSON text to be added to what came before it. */
  readonly arguments: string;
}

export interface AnswerEnd {
  /** As the provider named it, of the first choice; `null` where it never said. */
  readonly finishReason: string | null;
  /** Those of all choices, where there were several. */
  readonly finishReasons?: readonly string[] | undefined;
  /** The model that answered, as the provider named it. */
  readonly model: string | null;
  /** Whether nothing that counts as content came. */
  readonly empty: boolean;
}

/** A failure, in the form of OpenAI's error bodies. */
export interface FailureBody {
  readonly error: {
    readonly message: string;
    /** `'upstream'`: a provider failed. `'local'`: the call was declined, or ended here. `'internal'`: anything else. */
    readonly type: 'upstream' | 'local' | 'internal';
    /** The code of the SluiceError; `internal_error` for anything else. */
    readonly code: string;
    readonly param: null;
  };
  /** When another attempt makes sense, where that is known. */
  readonly retryAfterMs?: number | undefined;
}

/** What is told of an answer, one after another. `id` rises within a stream. */
export type AnswerEvent = { readonly id?: string | undefined } & (
  | { readonly type: 'delta' | 'reasoning' | 'refusal'; readonly data: TextPiece }
  | { readonly type: 'tool_call'; readonly data: ToolCallPiece }
  | { readonly type: 'usage'; readonly data: Usage }
  /** The answer starts over: drop all that came before it. */
  | { readonly type: 'reset'; readonly data: { readonly code: string; readonly model: string | null } }
  | { readonly type: 'done'; readonly data: AnswerEnd }
  | { readonly type: 'failure'; readonly data: FailureBody }
);

const TYPES: ReadonlySet<unknown> = new Set<AnswerEvent['type']>([
  'delta',
  'reasoning',
  'refusal',
  'tool_call',
  'usage',
  'reset',
  'done',
  'failure',
]);

/** Whether `value` is an event already, and not a part of an answer: neither API has events of these types. */
export function isAnswerEvent(value: unknown): value is AnswerEvent {
  if (typeof value !== 'object' || value === null) return false;
  const { type, data } = value as { readonly type?: unknown; readonly data?: unknown };
  return TYPES.has(type) && typeof data === 'object';
}

/** Whether nothing follows it. */
export function isLast({ type }: AnswerEvent): boolean {
  return type === 'done' || type === 'failure';
}

/** Both as one event, with the id of the second; `undefined` where they must stay apart. */
export function merged(first: AnswerEvent, second: AnswerEvent): AnswerEvent | undefined {
  switch (second.type) {
    case 'delta':
    case 'reasoning':
    case 'refusal': {
      if (first.type !== second.type || first.data.index !== second.data.index) return undefined;
      const text = first.data.text + second.data.text;
      return { id: second.id, type: second.type, data: { index: first.data.index, text } };
    }
    case 'tool_call': {
      if (first.type !== 'tool_call') return undefined;
      const { data } = second;
      if (first.data.index !== data.index || first.data.call !== data.call) return undefined;
      const args = first.data.arguments + data.arguments;
      return { id: second.id, type: 'tool_call', data: { ...first.data, ...data, arguments: args } };
    }
    default:
      return undefined;
  }
}
