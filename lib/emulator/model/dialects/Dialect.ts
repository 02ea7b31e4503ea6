import type { LimitState } from '../ProviderQuota.ts';

/** Errors that every dialect has words for. */
export const PROVIDER_ERRORS = [
  'requests',
  'tokens',
  'too_large',
  'concurrency',
  'slow_down',
  'quota_exhausted',
  'daily',
  'overloaded',
  'server_error',
  'bad_request',
  'context_too_long',
  'content_filtered',
  'prefix_refused',
  'model_not_found',
  'auth',
] as const;

export type ProviderErrorKind = (typeof PROVIDER_ERRORS)[number];

export interface ProviderErrorFacts {
  readonly kind: ProviderErrorKind;
  readonly model: string;
  /** Milliseconds until a new request would pass, where it is known. */
  readonly retryAfterMs: number | undefined;
  readonly limit: number | undefined;
  readonly used: number | undefined;
  readonly requested: number | undefined;
  /** Says more than the kind, as with a field that is missing. */
  readonly message?: string | undefined;
  readonly param?: string | undefined;
}

/** What a dialect's headers are made from. */
export interface HeaderFacts {
  readonly requestId: string;
  readonly requests: LimitState | undefined;
  readonly tokens: LimitState | undefined;
  /** Requests that were admitted so far. */
  readonly served: number;
  /** Milliseconds since the Unix epoch. */
  readonly wallMs: number;
}

export interface ErrorReply {
  readonly status: number;
  /** Beside those of `headers`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** How a provider words its limits and errors. Pass an object of your own as `dialect` to speak another. */
export interface Dialect {
  readonly name: string;
  /** Whether the limiter counts what was reserved, or corrects it to what was used. */
  readonly settle: 'reserved' | 'usage';
  /** Headers of every answer. */
  headers(facts: HeaderFacts): Record<string, string>;
  error(facts: ProviderErrorFacts): ErrorReply;
}
