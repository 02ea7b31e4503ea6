import type { ProviderErrorKind } from './dialects/Dialect.ts';
import type { ProviderApi, RequestFacts } from './request.ts';
import type { AnswerSettings } from './answerSettings.ts';

/**
 * Where in an answer a fault strikes. `'connect'`: before the head. `'headers'`: after the head, before anything else. A
 * number: after the opening events and that many content chunks. `'content'`: after all content, before the finish
 * reason (Responses API: before the terminal event). `'finish'`: after it, before usage and `[DONE]`. `'done'`: after
 * `[DONE]`. In an answer that is not streamed, everything after `'headers'` is the middle of the body.
 */
export type FaultPosition = 'connect' | 'headers' | 'content' | 'finish' | 'done' | number;

/** How a body ends: cleanly, by a connection reset, or not at all. */
export type BodyEnd = 'close' | 'reset' | 'hang';

/** Shapes that providers put an error into a stream in. */
export type InBandShape =
  'openai' | 'top_level' | 'numeric' | 'anthropic' | 'flat' | 'nested' | 'untyped' | 'openrouter';

export type Fault =
  /** The normal answer: a place in the list. */
  | { readonly kind: 'pass' }
  /** An answer, verbatim. An object is sent as JSON. */
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>> | undefined;
      readonly body?: unknown;
      readonly delayMs?: number | undefined;
      readonly end?: BodyEnd | undefined;
    }
  /** An error as the dialect words it. */
  | {
      readonly kind: 'error';
      readonly error: ProviderErrorKind;
      readonly retryAfterMs?: number | undefined;
      readonly status?: number | undefined;
      readonly delayMs?: number | undefined;
    }
  /** The body ends cleanly, too early. */
  | { readonly kind: 'cut'; readonly after: FaultPosition }
  | { readonly kind: 'reset'; readonly after: FaultPosition }
  /** Silence, then the rest. `forMs` is for ever by default; `commentsEveryMs` sends keep-alives meanwhile. */
  | {
      readonly kind: 'stall';
      readonly after: FaultPosition;
      readonly forMs?: number | undefined;
      readonly commentsEveryMs?: number | undefined;
    }
  | { readonly kind: 'slow'; readonly firstTokenMs: number }
  /** An error inside a 200. Default: `server_error`, in the shape `'openai'`. Then the body ends. */
  | {
      readonly kind: 'in_band_error';
      readonly after: FaultPosition;
      readonly shape?: InBandShape | undefined;
      readonly error?: ProviderErrorKind | undefined;
      /** The whole event, instead of a shape. */
      readonly value?: unknown;
      readonly thenDone?: boolean | undefined;
      readonly end?: BodyEnd | undefined;
    }
  /** A chunk that is not JSON; then the rest. */
  | { readonly kind: 'malformed'; readonly after: FaultPosition; readonly text?: string | undefined }
  /** One event of that many bytes; then the rest. */
  | { readonly kind: 'huge_event'; readonly after: FaultPosition; readonly bytes: number }
  /** No `[DONE]`. `keepOpen`: and the connection stays open. */
  | { readonly kind: 'no_done'; readonly keepOpen?: boolean | undefined }
  | { readonly kind: 'no_usage' }
  /** A page of a proxy. Default status: 502. */
  | { readonly kind: 'html'; readonly status?: number | undefined }
  /** A stream with nothing in it. */
  | { readonly kind: 'empty'; readonly done?: boolean | undefined }
  /** Another finish reason, for instance `content_filter` or `error`; `null` sends none. `after`: and less content. */
  | { readonly kind: 'finish'; readonly reason: string | null; readonly after?: number | undefined }
  /** Refuses a request that ends with a message of the assistant; any other passes. */
  | { readonly kind: 'refuse_prefix' }
  /** The body, verbatim: each item is one write. */
  | {
      readonly kind: 'bytes';
      readonly chunks: readonly (
        string | { readonly hex: string } | { readonly text: string; readonly repeat: number }
      )[];
      readonly everyMs?: number | undefined;
      readonly delayMs?: number | undefined;
      readonly headers?: Readonly<Record<string, string>> | undefined;
      readonly end?: BodyEnd | undefined;
    }
  /** That many characters of content, as fast as they are read. Default: 65,536 in a chunk. */
  | { readonly kind: 'flood'; readonly bytes: number; readonly chunkBytes?: number | undefined };

export type FaultKind = Fault['kind'];

/** Which requests a fault is for. What is not given matches any. */
export interface FaultMatch {
  readonly model?: string | undefined;
  readonly api?: ProviderApi | undefined;
  readonly conversation?: string | undefined;
  readonly stream?: boolean | undefined;
  /** Headers that must have these values. Names are in lower case. */
  readonly requestHeaders?: Readonly<Record<string, string>> | undefined;
  /** Not over HTTP. */
  readonly when?: ((request: RequestFacts) => boolean) | undefined;
}

export interface FaultExtras {
  /** How the answer comes, where there is one. */
  readonly answer?: AnswerSettings | undefined;
  /** Further faults of the same answer. */
  readonly also?: readonly Fault[] | undefined;
}

/** A fault of the script. */
export type FaultRule = Fault &
  FaultMatch &
  FaultExtras & {
    /** How many requests it is for. Default: 1. */
    readonly times?: number | 'always' | undefined;
  };

/** A fault that comes to each request it matches with this probability. */
export type RandomFault = Fault & FaultMatch & FaultExtras & { readonly probability: number };

/** A fault of every request it matches that arrives from `fromMs` to before `toMs`. */
export type Outage = Fault & FaultMatch & FaultExtras & { readonly fromMs: number; readonly toMs: number };

/** What was drawn for a request. */
export type DrawnFault = Fault & FaultExtras;
