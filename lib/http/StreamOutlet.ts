import type { Observable } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import type { Delivery, Outlet } from './Delivery.ts';
import { deliver } from './deliver.ts';
import type { DeliveryReport, DeliverySettings } from './DeliveryOptions.ts';
import type { HttpFailure } from './httpFailure.ts';

interface StreamHooks {
  readonly signal?: AbortSignal | undefined;
  readonly onEnd?: ((report: DeliveryReport) => void) | undefined;
  /** The stream has begun. */
  readonly onOpen?: ((headers: Readonly<Record<string, string>>) => void) | undefined;
  /** Without it, failures are always told in the stream. */
  readonly onRefuse?: ((failure: HttpFailure) => void) | undefined;
}

/** A web stream. There is room when it is being read, and for one piece: what comes meanwhile waits, merged. */
export class StreamOutlet implements Outlet {
  readonly body: ReadableStream<Uint8Array>;
  readonly refuse?: (failure: HttpFailure) => void;
  readonly #answer$: Observable<AnswerPart | AnswerEvent>;
  readonly #settings: DeliverySettings;
  readonly #hooks: StreamHooks;
  readonly #encoder = new TextEncoder();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #delivery: Delivery | undefined;
  #started = false;
  #wanted = false;
  #writing = false;

  constructor(answer$: Observable<AnswerPart | AnswerEvent>, settings: DeliverySettings, hooks: StreamHooks) {
    this.#answer$ = answer$;
    this.#settings = settings;
    this.#hooks = hooks;
    const { onRefuse } = hooks;
    if (onRefuse) this.refuse = onRefuse;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          this.#wanted = true;
          if (!this.#started) this.start();
          else if (!this.#writing) this.#delivery?.drained();
        },
        cancel: () => this.#leave(),
      },
      // Nothing is asked for ahead of the reader.
      { highWaterMark: 0 },
    );
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    const { signal } = this.#hooks;
    if (signal?.aborted) {
      this.#ended({ outcome: 'left', events: 0, error: undefined });
      this.close();
      return;
    }
    signal?.addEventListener('abort', this.#aborted);
    this.#delivery = deliver(this.#answer$, this, this.#settings, (report) => this.#ended(report));
  }

  open(headers: Readonly<Record<string, string>>): void {
    this.#hooks.onOpen?.({ ...this.#settings.headers, ...headers });
  }

  write(text: string): boolean {
    this.#wanted = false;
    // A reader that waits already asks for more while this is handed over.
    this.#writing = true;
    this.#controller.enqueue(this.#encoder.encode(text));
    this.#writing = false;
    return this.#wanted;
  }

  close(): void {
    this.#controller.close();
  }

  cut(): void {
    this.#controller.error(new Error('the client did not read'));
  }

  readonly #aborted = (): void => {
    this.#leave();
    // Not an error: nobody is there to read it, and servers would log one for each client that leaves.
    this.#controller.close();
  };

  #leave(): void {
    this.#started = true;
    this.#delivery?.left();
  }

  #ended(report: DeliveryReport): void {
    this.#hooks.signal?.removeEventListener('abort', this.#aborted);
    this.#hooks.onEnd?.(report);
  }
}
