import type { NeutralPolicy } from './upstreamCase.ts';

export type StepScript = string | readonly string[] | Readonly<Record<string, readonly string[]>>;

export interface Step {
  readonly op: string;
  readonly t?: number;
  readonly id?: string;
  readonly of?: string;
  readonly times?: number;
  readonly concurrent?: boolean;
  readonly concurrency?: 'saturate';
  readonly sequential?: boolean;
  readonly conversation?: string;
  readonly conversations?: number;
  readonly priority?: number;
  readonly model?: string;
  readonly script?: StepScript;
  readonly takes_ms?: number;
  readonly upstream_takes_ms?: number;
  readonly async_preflight_ms?: number;
  readonly max_attempts?: number;
  readonly base_ms?: number;
  readonly signal?: string;
  readonly abort_at_ms?: number;
  readonly estimate?: number;
  readonly explicit_tokens?: number;
  readonly prompt_tokens?: number;
  readonly actual?: number;
  readonly wait?: boolean;
  readonly stream?: boolean;
  readonly ms?: number;
  readonly attempt?: number;
  readonly after_chunks?: number;
  readonly break_after?: number;
  readonly delay_per_chunk_ms?: number;
  readonly stop_after_ms?: number;
  readonly count?: number;
  readonly payload_kb?: number;
}

export interface BreakerConfig {
  readonly failures?: number;
  readonly error_ratio?: number;
  readonly min_calls?: number;
  readonly reset_ms?: number;
  readonly half_open_max?: number;
  readonly count_429?: boolean;
}

export interface BucketConfig {
  readonly tokens_per_min?: number;
  readonly burst_tokens?: number;
}

export interface CallsConfig extends NeutralPolicy, BucketConfig {
  /** What is left of the tokens at the start. Default: the burst. */
  readonly bucket_now?: number;
  readonly concurrency?: number;
  readonly factor?: number;
  readonly breaker?: BreakerConfig;
  readonly buckets?: Readonly<Record<string, BucketConfig>>;
  readonly rate_per_sec?: number;
  readonly burst?: number;
  readonly min_interval_ms?: number;
  readonly default_output_estimate?: number;
  readonly aimd?: {
    readonly start: number;
    readonly min?: number;
    readonly max?: number;
    readonly decrease?: number;
  };
  readonly policy?: NeutralPolicy;
}

export interface CallsInput {
  readonly config?: CallsConfig;
  readonly upstream?: { readonly bytes?: number; readonly chunk_bytes?: number; readonly chunks?: number };
  readonly steps: readonly Step[];
}
