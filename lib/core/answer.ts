import type { Usage } from './hints.ts';

/** A tool call put together from its deltas. */
export interface ToolCall {
  readonly index: number;
  readonly id: string | undefined;
  readonly type: string;
  readonly name: string;
  /** JSON text as the model wrote it; incomplete while it streams. */
  readonly arguments: string;
}

export interface AnswerChoice {
  readonly index: number;
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCall[];
  /** As the provider named it; `null` while streaming, and where the provider never said. */
  readonly finishReason: string | null;
}

/** What has been received of an answer. The fields of the first choice stand at the top. */
export interface Answer extends Omit<AnswerChoice, 'index'> {
  readonly choices: readonly AnswerChoice[];
  readonly usage: Usage | undefined;
  /** The model that answered, as the provider named it. */
  readonly model: string | undefined;
  /** How often the answer was started over. */
  readonly restarts: number;
  /** Whether nothing that counts as content has come. */
  readonly empty: boolean;
}
