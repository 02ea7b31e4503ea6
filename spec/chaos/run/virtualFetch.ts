import type { Exchange } from '../../../lib/emulator/model/Exchange.ts';
import { encodeStep } from '../../../lib/emulator/model/steps.ts';
import type { ProviderStep } from '../../../lib/emulator/model/steps.ts';
import { startTimer } from '../../../lib/index.ts';
import type { Runtime } from '../../../lib/index.ts';
import type { VirtualProvider } from './virtualProviders.ts';

type Fetch = typeof globalThis.fetch;

/** A request, as far as anybody here sends one. */
interface Asked {
  readonly url: URL;
  readonly init: RequestInit;
}

/**
 * A `fetch` without a network, to what is at these addresses: a request arrives some time after it was sent, and what the
 * provider does reaches the other end some time after it was done. Everything but promises happens in the runtime's time.
 */
export function virtualFetch(at: ReadonlyMap<string, VirtualProvider>, runtime: Runtime): Fetch {
  return (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const provider = at.get(url.origin);
    if (provider === undefined) throw new Error(`no provider is at ${url.origin}`);
    return new Sending({ url, init }, provider, runtime).start().answer;
  };
}

/** One request, there and back. */
class Sending {
  /** Rejects where it is aborted, or cut, before there is a head. */
  readonly answer: Promise<Response>;
  readonly #asked: Asked;
  readonly #to: VirtualProvider;
  readonly #runtime: Runtime;
  readonly #signal: AbortSignal | null | undefined;
  readonly #abort = (): void => this.#fail(this.#signal?.reason);
  #exchange: Exchange | undefined;
  #arrivedMs = 0;
  #pending: ProviderStep | undefined;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #stopTimer = (): void => {};
  #left = false;
  #over = false;
  #resolve!: (response: Response) => void;
  #reject!: (reason: unknown) => void;

  constructor(asked: Asked, to: VirtualProvider, runtime: Runtime) {
    this.#asked = asked;
    this.#to = to;
    this.#runtime = runtime;
    this.#signal = asked.init.signal;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  start(): this {
    if (this.#signal?.aborted) this.#abort();
    else {
      this.#signal?.addEventListener('abort', this.#abort);
      // Also where it is left meanwhile: what is on its way arrives.
      startTimer(this.#runtime, this.#to.wayMs(), () => this.#arrive());
    }
    return this;
  }

  #arrive(): void {
    const { url, init } = this.#asked;
    const api = url.pathname.endsWith('/responses') ? 'responses' : 'chat';
    const body = JSON.parse(textOf(init.body)) as Record<string, unknown>;
    const headers = Object.fromEntries(new Headers(init.headers));
    this.#exchange = this.#to.provider.handle({ api, body, headers });
    this.#to.arrived(this.#exchange);
    if (this.#left) return this.#end();
    // The way back is drawn once: nothing overtakes anything on a connection.
    this.#arrivedMs = this.#runtime.clock.now() + this.#to.wayMs();
    this.#play(this.#exchange);
  }

  #play(exchange: Exchange): void {
    while (!this.#left && !this.#over) {
      const step = this.#pending ?? exchange.steps.next().value;
      if (!step || step.kind === 'hang') return;
      this.#pending = step;
      const waitMs = this.#arrivedMs + step.atMs - this.#runtime.clock.now();
      if (waitMs > 0) {
        this.#stopTimer = startTimer(this.#runtime, waitMs, () => this.#play(exchange));
        return;
      }
      this.#pending = undefined;
      this.#take(step);
    }
  }

  #take(step: ProviderStep): void {
    switch (step.kind) {
      case 'head':
        return this.#head(step.status, step.headers);
      case 'end':
        // As a server does that has said nothing of a head.
        if (this.#body === undefined) this.#head(200, {});
        this.#end();
        return this.#body?.close();
      case 'reset':
        this.#end();
        return this.#fail(
          new TypeError('terminated', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) }),
        );
      default: {
        const bytes = encodeStep(step) ?? '';
        if (bytes.length > 0) this.#body?.enqueue(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes);
      }
    }
  }

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void (this.#body = controller),
      cancel: () => this.#leave(),
    });
    this.#resolve(new Response(body, { status, headers }));
  }

  #fail(reason: unknown): void {
    this.#leave();
    this.#reject(reason);
    this.#body?.error(reason);
  }

  /** The other end has had enough; the provider hears of it as soon as the news is there. */
  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#signal?.removeEventListener('abort', this.#abort);
    if (this.#exchange === undefined || this.#over) return;
    this.#stopTimer();
    startTimer(this.#runtime, this.#to.wayMs(), () => this.#end());
  }

  #end(): void {
    if (this.#over || this.#exchange === undefined) return;
    this.#over = true;
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#exchange.end();
    this.#to.over(this.#exchange);
  }
}

function textOf(body: RequestInit['body']): string {
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  throw new Error('the body of a request is neither text nor bytes');
}
