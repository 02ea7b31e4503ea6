import type { Answer } from '../core/answer.ts';
import { SluiceError } from '../core/errors.ts';
import { AnswerAssembler, findingsOf } from './AnswerAssembler.ts';
import type { AnswerFindings, ChunkReader, ChunkVerdict, ReaderContext } from './ChunkReader.ts';
import { classifyErrorObject, classifyInStream } from './classifyResponse.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Reads events of the Responses API, or one whole response. Only its terminal event ends it; `[DONE]` means nothing. */
export class ResponsesReader implements ChunkReader {
  readonly #context: ReaderContext;
  readonly #answer = new AnswerAssembler();
  #ended = false;
  #begun = false;

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  read(value: unknown, event?: string): ChunkVerdict {
    if (event === 'error') return classifyErrorObject(value, this.#context);
    if (typeof value !== 'object' || value === null) return this.#invalid();
    const failure = classifyInStream(value, this.#context);
    if (failure !== undefined) return failure;
    const { type, object, status } = value as Fields;
    if (typeof type === 'string') {
      if (type === 'response.cancelled' || type === 'response.canceled') return this.#failed('cancelled');
      if (type === 'response.completed' || type === 'response.incomplete') this.#ended = true;
    } else if (object === 'response') {
      if (status === 'cancelled' || status === 'failed') return this.#failed(status);
      this.#ended = true;
    } else {
      return this.#invalid();
    }
    try {
      if (!this.#answer.addResponses(value)) return 'quiet';
      // White space does not begin an answer; once it has begun, it belongs to it.
      this.#begun ||= !this.#answer.blank;
      return this.#begun ? 'content' : 'quiet';
    } catch {
      // An ambiguous piece of a tool call passes as it came; only whoever assembles the answer has to care.
      return 'content';
    }
  }

  readDone(): void {}

  get state(): 'open' | 'ended' {
    return this.#ended ? 'ended' : 'open';
  }
  get complete(): boolean {
    return this.#ended;
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

  #failed(status: string): SluiceError {
    const { model, requestId } = this.#context;
    const fields = { model, requestId, retryable: status !== 'cancelled' };
    return new SluiceError('server_error', `the response ended with status ${status}`, fields);
  }

  #invalid(): SluiceError {
    const { model, status, requestId } = this.#context;
    const fields = { model, status, requestId };
    return new SluiceError('upstream_body_invalid', 'the answer holds something that is no response', fields);
  }
}
