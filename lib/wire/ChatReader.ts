import type { Answer } from '../core/answer.ts';
import { SluiceError } from '../core/errors.ts';
import { AnswerAssembler, findingsOf, isFinished } from './AnswerAssembler.ts';
import type { AnswerFindings, ChunkReader, ChunkVerdict, ReaderContext } from './ChunkReader.ts';
import { classifyErrorObject, classifyInStream } from './classifyResponse.ts';
import { holdsError } from './errorBody.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Reasons that report a failure although they come where an end is reported. */
const FAILED: ReadonlyMap<unknown, 'server_error' | 'overloaded'> = new Map([
  ['error', 'server_error'],
  ['abort', 'server_error'],
  ['insufficient_system_resource', 'overloaded'],
]);

/** Fields of which one is enough for a chunk without choices to be one: usage, filter results, a ping. */
const KNOWN = ['usage', 'usageMetadata', 'object', 'id', 'model', 'type', 'prompt_filter_results', 'x_groq', 'created'];

/** Reads chat completion chunks, or one whole chat completion. */
export class ChatReader implements ChunkReader {
  readonly #context: ReaderContext;
  readonly #answer = new AnswerAssembler();
  #done = false;
  #begun = false;

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  read(value: unknown, event?: string): ChunkVerdict {
    if (event === 'error') return classifyErrorObject(value, this.#context);
    if (typeof value !== 'object' || value === null) return this.#invalid();
    const fields = value as Fields;
    const choices = fields['choices'];
    // Stryker disable next-line ConditionalExpression: to look for an error where a choice came only takes longer
    if (!Array.isArray(choices) || fields['error'] !== undefined) {
      const failure = classifyInStream(value, this.#context);
      if (failure !== undefined) return failure;
    } else if (choices.length === 0 && holdsError(fields)) {
      return classifyErrorObject(value, this.#context);
    }
    if (!Array.isArray(choices)) return this.#withoutChoices(fields);
    let held: boolean;
    try {
      held = this.#answer.addChat(value);
    } catch {
      // An ambiguous piece of a tool call passes as it came; only whoever assembles the answer has to care.
      held = true;
    }
    return this.#failedChoice(choices) ?? (held && this.#hasBegun() ? 'content' : 'quiet');
  }

  #withoutChoices(fields: Fields): ChunkVerdict {
    if (Array.isArray(fields) || !(KNOWN.some((key) => key in fields) || isEmptyObject(fields))) return this.#invalid();
    this.#answer.addChat(fields);
    return 'quiet';
  }

  readText(text: string): ChunkVerdict {
    this.#answer.addText(text);
    return this.#hasBegun() ? 'content' : 'quiet';
  }

  readDone(): void {
    if (this.#answer.choiceCount > 0) this.#done = true;
  }

  get state(): 'open' | 'finished' | 'ended' {
    if (this.#done) return 'ended';
    return isFinished(this.#answer, this.#context.choices) ? 'finished' : 'open';
  }
  get complete(): boolean {
    return this.state !== 'open';
  }
  get findings(): AnswerFindings {
    return findingsOf(this.#answer);
  }
  get empty(): boolean {
    return this.#answer.empty;
  }

  partial(): Answer {
    return this.#answer.snapshot();
  }

  /** White space does not begin an answer; once it has begun, it belongs to it. */
  #hasBegun(): boolean {
    return (this.#begun ||= !this.#answer.blank);
  }

  #failedChoice(choices: readonly unknown[]): SluiceError | undefined {
    for (const choice of choices) {
      const { error, finish_reason: reason } = (choice ?? {}) as Fields;
      if (typeof error === 'object' && error !== null) return classifyErrorObject({ error }, this.#context);
      const code = FAILED.get(reason);
      if (code !== undefined) return this.#failed(code, reason);
    }
    return undefined;
  }

  #failed(code: 'server_error' | 'overloaded', reason: unknown): SluiceError {
    const { model, requestId } = this.#context;
    return new SluiceError(code, `the answer ended with finish_reason ${String(reason)}`, { model, requestId });
  }

  #invalid(): SluiceError {
    const { model, status, requestId } = this.#context;
    const fields = { model, status, requestId };
    return new SluiceError('upstream_body_invalid', 'the answer holds something that is no chat completion', fields);
  }
}

function isEmptyObject(fields: Fields): boolean {
  for (const _ in fields) return false;
  return true;
}
