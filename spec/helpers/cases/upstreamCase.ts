/** One answer of the fake server. */
export interface ScriptedAnswer {
  readonly after_ms?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly sse?: readonly string[];
  readonly chunk_every_ms?: number;
  readonly end?: 'close' | 'reset' | 'premature_close' | 'hang';
  /** Before any byte. */
  readonly error?: string;
  readonly hang?: boolean;
  readonly after_headers_hang?: boolean;
  readonly throws?: Readonly<Record<string, unknown>>;
  /** A body that never ends, and counts how often it is cancelled. */
  readonly body_stream?: string;
}

export interface FallbackTarget {
  readonly model: string;
  readonly map?: Readonly<Record<string, string>>;
  readonly omit?: readonly string[];
  readonly set?: Readonly<Record<string, unknown>>;
  readonly max_prompt_tokens?: number;
}

export interface NeutralPolicy {
  readonly max_attempts?: number;
  readonly base_ms?: number;
  readonly max_ms?: number;
  readonly jitter?: 'full' | 'equal' | 'decorrelated' | 'none';
  /** `null`: no cap. */
  readonly max_hint_ms?: number | null;
  readonly deadline_ms?: number;
  readonly attempt_timeout_ms?: number;
  readonly idle_ms?: number;
  readonly first_content_ms?: number;
  readonly fallback?: readonly (string | FallbackTarget)[];
  /** Statuses that lead to a fallback. */
  readonly fallback_on?: readonly number[];
  readonly delivery?: 'buffered';
}

export interface UpstreamInput {
  /** Default: chat. */
  readonly api?: 'chat' | 'responses';
  readonly request?: Readonly<Record<string, unknown>>;
  readonly client?: { readonly maxRetries?: number };
  readonly policy?: NeutralPolicy | 'defaults';
  readonly config?: { readonly rate_per_min?: number; readonly bucket_now?: number };
  /** In order; or one list per model. */
  readonly script: readonly ScriptedAnswer[] | Readonly<Record<string, readonly ScriptedAnswer[]>>;
  readonly consumer?: { readonly unsubscribe_after_chunks?: number };
  readonly call_options?: { readonly fallback?: boolean };
  readonly estimate?: { readonly prompt?: number };
  readonly abort_at_ms?: number;
  readonly abort_reason?: string;
  readonly lazy_start?: boolean;
  readonly nest?: string;
}

export interface ExpectedError {
  readonly class?: string;
  readonly status?: number;
  readonly status_not?: number;
  readonly retry_after_ms?: number;
  readonly limit?: number;
  readonly requested?: number;
  readonly content_type?: string;
  readonly body_excerpt_max?: number;
  readonly partial?: boolean;
  readonly message_includes?: string;
  readonly message_excludes?: string;
  readonly attempts?: readonly Readonly<Record<string, unknown>>[];
  readonly name?: string;
  readonly while?: string;
}
