import type { ProviderErrorKind } from './dialects/Dialect.ts';
import type { ProviderStep } from './steps.ts';

/** One request and what the provider does about it. */
export interface Exchange {
  /** Number of the request, from 1. */
  readonly ordinal: number;
  readonly requestId: string;
  readonly model: string | undefined;
  readonly conversation: string | undefined;
  readonly stream: boolean;
  readonly promptTokens: number;
  /** Prompt and output limit: what was taken of the limits on tokens; 0 unless it was admitted. */
  readonly reservedTokens: number;
  /** `'admitted'`: it counts as running until {@link end}. */
  readonly verdict: 'admitted' | 'refused' | 'outage';
  /** Why it was refused. */
  readonly refusal: ProviderErrorKind | undefined;
  /** Kind of the fault that it got. */
  readonly fault: string | undefined;
  /** What happens next, made as it is asked for. Times count from the request's arrival. */
  readonly steps: Iterator<ProviderStep, void>;
  /** Tokens of output that the steps taken so far have brought. */
  sentTokens(): number;
  /** The exchange is over, played to its end or not. Further calls do nothing. */
  end(): void;
}
