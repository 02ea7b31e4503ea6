import type { Answer } from './answer.ts';

/** What was asked in one attempt, and what came of it. Exists only where capturing content was switched on. */
export interface AttemptContent {
  readonly attempt: number;
  readonly api: 'chat' | 'responses';
  /** The body as it was sent. */
  readonly request: Readonly<Record<string, unknown>>;
  /** As far as it came. */
  readonly answer: Answer | undefined;
}

/** Called once for each attempt that was sent, before its `attempt.ended`. */
export type ContentListener = (content: AttemptContent) => void;
