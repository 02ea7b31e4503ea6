import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import { failedResponse } from '../../sources/failures.ts';
import type { FailedSend } from '../../sources/failures.ts';
import type { HeaderReader } from '../../wire/headers.ts';
import { Utf8Reads } from '../../wire/Utf8Reads.ts';

/** Most that is read of the body of a failed answer, and how long that may take. */
const MAX_BODY_BYTES = 64 * 1024;
const MAX_BODY_MS = 1_000;

/** An answer with an error status, whose body is read up to a size and a time. */
export class FailedAnswer {
  readonly #status: number;
  readonly #headers: HeaderReader;
  readonly #utf8 = new Utf8Reads();
  readonly #stop: Cancel;
  #left = MAX_BODY_BYTES;
  #text = '';

  /** `enough` is called once no more is worth waiting for. */
  constructor(status: number, headers: HeaderReader, runtime: Runtime, enough: () => void) {
    this.#status = status;
    this.#headers = headers;
    this.#stop = startTimer(runtime, MAX_BODY_MS, enough);
  }

  /** Returns whether more is wanted. */
  push(bytes: Uint8Array): boolean {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    this.#text += this.#utf8.decode(part);
    return this.#left > 0;
  }

  /** No more comes, or is wanted. */
  stop(): void {
    this.#stop();
  }

  /** What it says, in so far as it came. */
  told(model: string | undefined, wallNowMs: number): FailedSend {
    const body = this.#text + this.#utf8.end();
    return failedResponse({ status: this.#status, headers: this.#headers, body }, model, wallNowMs);
  }
}
