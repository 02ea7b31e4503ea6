import type { Demand } from '../../core/attempt.ts';
import type { SluiceError } from '../../core/errors.ts';
import { DONE_FRAME, errorFrame, valueFrame } from '../wire/frames.ts';

/** Bytes that wait for a reader before the provider's body is read on. */
const BUFFER_BYTES = 16 * 1024;

/** The events of an answer as the body of a Response, at the pace of its reader. */
export class AnswerStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly demand: Demand = { ready: () => this.#ready() };
  readonly #api: 'chat' | 'responses';
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  #over = false;

  /** `onCancel`: the reader has had enough. */
  constructor(api: 'chat' | 'responses', onCancel: () => void) {
    this.#api = api;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#wake(),
        cancel: () => {
          this.#end();
          onCancel();
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES }),
    );
  }

  value(value: unknown): void {
    this.#send(valueFrame(this.#api, value));
  }

  complete(): void {
    if (this.#api === 'chat') this.#send(DONE_FRAME);
    if (this.#end()) this.#controller?.close();
  }

  fail(error: SluiceError): void {
    this.#send(errorFrame(this.#api, error));
    if (this.#end()) this.#controller?.close();
  }

  abort(reason: unknown): void {
    if (this.#end()) this.#controller?.error(reason);
  }

  #send(frame: string): void {
    if (!this.#over) this.#controller?.enqueue(this.#encoder.encode(frame));
  }

  #ready(): Promise<void> | undefined {
    if (this.#over || (this.#controller?.desiredSize ?? 1) > 0) return undefined;
    if (this.#room === undefined) {
      let resolve = (): void => {};
      const promise = new Promise<void>((done) => (resolve = done));
      this.#room = { promise, resolve };
    }
    return this.#room.promise;
  }

  #wake(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  /** Whether it had not ended before. */
  #end(): boolean {
    const first = !this.#over;
    this.#over = true;
    this.#wake();
    return first;
  }
}
