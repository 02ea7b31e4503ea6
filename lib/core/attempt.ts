import type { Observable } from 'rxjs';
import type { RateLimitHints } from './hints.ts';

/** Paces the reading of a body. Awaited before each read; `undefined` means go on at once. */
export interface Demand {
  ready(): Promise<void> | undefined;
}

/** Where requests go. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** One request to a provider, as a transport gets it. */
export interface Attempt {
  readonly api: 'chat' | 'responses';
  /** The body, with `model` and `stream` set. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: boolean;
  readonly demand: Demand | undefined;
  /** `request` as it came from elsewhere, where nothing in it was changed: a transport may send it as it stands. */
  readonly bytes?: Uint8Array | undefined;
}

/** The head of an answer. */
export interface WireHead {
  readonly kind: 'head';
  readonly status: number;
  readonly requestId: string | undefined;
  readonly hints: RateLimitHints | undefined;
}

/** A parsed JSON body: one event of a stream, or the whole answer. */
export interface WireData {
  readonly kind: 'data';
  readonly value: unknown;
  /** The SSE event name, if one was given. */
  readonly event: string | undefined;
  /** Characters on the wire, where they were counted. Bounds what is held back. */
  readonly size?: number;
  /** `value` as it came, where a transport keeps it. */
  readonly text?: string | undefined;
  /** Set where `value` is the chat chunk before it over again, with this text in place of its text. */
  readonly added?: string | undefined;
}

/** What comes off the wire in one attempt, in order: one `head`, then the rest. */
export type WireEvent =
  | WireHead
  /** A keep-alive: proves the connection, not progress. */
  | { readonly kind: 'comment' }
  | WireData
  /** The literal `[DONE]`. */
  | { readonly kind: 'done' };

/**
 * A transport. Cold: sends when subscribed. Completes at the clean end of the body, whether or not the answer is whole;
 * fails with a SluiceError of source 'upstream'; unsubscribe aborts in the same tick.
 *
 * It tells the scope (`CallScope`) when the request leaves and when nothing of it runs any more.
 */
export interface AttemptSource {
  (attempt: Attempt): Observable<WireEvent>;
  /** Where it sends to, where it says so: events and spans name it. */
  readonly server?: ServerAddress | undefined;
}
