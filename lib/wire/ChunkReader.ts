import type { Answer } from '../core/answer.ts';
import type { SluiceError } from '../core/errors.ts';
import type { Usage } from '../core/hints.ts';

/**
 * What one parsed chunk amounts to. `'content'`: it holds text, reasoning, refusal, tool-call, audio or image data.
 * `'quiet'`: it holds none of them, such as a role, a usage report or a ping. An error: the attempt has failed.
 */
export type ChunkVerdict = 'content' | 'quiet' | SluiceError;

/** Whose answer is read. Ends up in the errors that the reader makes. */
export interface ReaderContext {
  readonly model: string | undefined;
  readonly status: number;
  readonly requestId: string | undefined;
  /** How many choices were asked for: `n` of the request, else 1. */
  readonly choices: number;
}

/** What an answer says of itself, in so far as it has come. */
export interface AnswerFindings {
  readonly usage: Usage | undefined;
  readonly responseId: string | undefined;
  readonly responseModel: string | undefined;
  readonly serviceTier: string | undefined;
  readonly systemFingerprint: string | undefined;
  readonly finishReasons: readonly string[];
}

/** Reads the parsed chunks of one answer, streamed or whole, and knows when it is complete. Pure; single use. */
export interface ChunkReader {
  /** `event` is the SSE event name, where one was given. */
  read(value: unknown, event?: string): ChunkVerdict;
  /** As `read`, for the chunk that was read last with this text in place of its text. Of chat only. */
  readText?(text: string): ChunkVerdict;
  /** `[DONE]` was seen. */
  readDone(): void;
  /**
   * `'finished'`: every choice has its finish reason, and only usage and `[DONE]` may still come. `'ended'`: nothing
   * more can come: `[DONE]` after a choice chunk, or the Responses API's terminal event.
   */
  readonly state: 'open' | 'finished' | 'ended';
  /** Whether a clean end of the body now is a success. */
  readonly complete: boolean;
  /** Put together anew each time. */
  readonly findings: AnswerFindings;
  /** Whether nothing that counts as content has come. */
  readonly empty: boolean;
  /** What has been received so far. */
  partial(): Answer;
}
