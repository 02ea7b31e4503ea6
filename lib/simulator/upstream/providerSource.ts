import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { Attempt, AttemptSource, WireEvent } from '../../core/attempt.ts';
import { CallScope } from '../../core/CallScope.ts';
import { currentScope } from '../../core/currentScope.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import type { Exchange } from '../../emulator/model/Exchange.ts';
import type { FakeProvider } from '../../emulator/model/FakeProvider.ts';
import type { ProviderStep } from '../../emulator/model/steps.ts';
import { AnswerDecoder } from '../../sources/AnswerDecoder.ts';
import { SOURCE_DEFAULTS } from '../../sources/AttemptOptions.ts';
import { failedResponse, requestIdOf, thrownError } from '../../sources/failures.ts';
import { NO_HEADERS } from '../../wire/headers.ts';
import type { HeaderReader } from '../../wire/headers.ts';
import { readHints } from '../../wire/hints.ts';

/** How long a message takes on its way, in milliseconds. Drawn for each. */
export interface Network {
  sendMs(): number;
  receiveMs(): number;
}

/** Hears when each request was sent, what the provider did with it when it arrived, and when it was over there. */
export interface ProviderListener {
  sent(attempt: Attempt): void;
  /** `status`: of the answer, where it will have a head. */
  arrived(exchange: Exchange, attempt: Attempt, status: number | undefined): void;
  over(exchange: Exchange): void;
}

/**
 * A transport to a provider without a network: requests arrive some time after they were sent, and what the provider
 * does reaches the other end some time after it was done. Everything happens in the runtime's time.
 */
export function providerSource(
  provider: FakeProvider,
  network: Network,
  listener: ProviderListener,
  runtime: Runtime,
): AttemptSource {
  const world = { provider, network, listener, runtime };
  // Hand-written: one run owns the timers of an attempt, and outlives the subscription until the provider knows.
  return (attempt) =>
    new Observable<WireEvent>((subscriber) => {
      const run = new ProviderRun(attempt, subscriber, world);
      run.start();
      return () => run.leave();
    });
}

interface World {
  readonly provider: FakeProvider;
  readonly network: Network;
  readonly listener: ProviderListener;
  readonly runtime: Runtime;
}

/** One request, there and back. */
class ProviderRun {
  readonly #attempt: Attempt;
  readonly #subscriber: Subscriber<WireEvent>;
  readonly #world: World;
  readonly #scope: CallScope;
  /** Of bytes that are sent verbatim. */
  #decoder: AnswerDecoder | undefined;
  #exchange: Exchange | undefined;
  #arrivedMs = 0;
  #pending: ProviderStep | undefined;
  #status = 0;
  #headers: HeaderReader = NO_HEADERS;
  #cancel: Cancel = () => {};
  #left = false;
  #over = false;
  readonly #goOn = (): void => this.#play();

  constructor(attempt: Attempt, subscriber: Subscriber<WireEvent>, world: World) {
    this.#attempt = attempt;
    this.#subscriber = subscriber;
    this.#world = world;
    this.#scope = currentScope() ?? CallScope.start(world.runtime);
  }

  start(): void {
    const { runtime, network } = this.#world;
    this.#world.listener.sent(this.#attempt);
    this.#scope.dispatched(runtime.clock.now());
    // Also where it is left meanwhile: what is on its way arrives.
    this.#cancel = startTimer(runtime, network.sendMs(), () => this.#arrive());
  }

  /** The other end has had enough; the provider hears of it as soon as the news is there. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    if (this.#exchange !== undefined) {
      this.#cancel();
      if (!this.#over) startTimer(this.#world.runtime, this.#world.network.sendMs(), () => this.#end());
    }
    this.#scope.closed();
  }

  #arrive(): void {
    const { provider, listener, runtime, network } = this.#world;
    const { api, request, headers } = this.#attempt;
    const exchange = provider.handle({ api, body: request, headers });
    this.#exchange = exchange;
    const first = exchange.steps.next().value;
    this.#pending = first || undefined;
    listener.arrived(exchange, this.#attempt, first?.kind === 'head' ? first.status : undefined);
    if (this.#left) {
      this.#end();
      return;
    }
    // The way back is drawn once: nothing overtakes anything on a connection.
    this.#arrivedMs = runtime.clock.now() + network.receiveMs();
    this.#play();
  }

  #play(): void {
    const { runtime } = this.#world;
    const exchange = this.#exchange as Exchange;
    for (;;) {
      const step = this.#pending ?? exchange.steps.next().value;
      if (!step) return;
      this.#pending = step;
      const waitMs = this.#arrivedMs + step.atMs - runtime.clock.now();
      if (waitMs > 0) {
        this.#cancel = startTimer(runtime, waitMs, this.#goOn);
        return;
      }
      this.#pending = undefined;
      this.#take(step);
      if (this.#left || this.#over) return;
    }
  }

  #take(step: ProviderStep): void {
    const subscriber = this.#subscriber;
    switch (step.kind) {
      case 'head':
        this.#head(step.status, step.headers);
        return;
      case 'event':
        subscriber.next({ kind: 'data', value: step.value, event: step.event });
        return;
      case 'done':
      case 'comment':
        subscriber.next({ kind: step.kind });
        return;
      case 'body':
        this.#body(step.text);
        return;
      case 'bytes':
        this.#bytes(step.bytes);
        return;
      case 'end':
        this.#end();
        if (this.#decoded((decoder) => decoder.end())) subscriber.complete();
        return;
      case 'reset':
        this.#end();
        subscriber.error(this.#broken());
        return;
      case 'hang':
        return;
    }
  }

  /** What is sent verbatim may be anything, and is read as it is where there is a network. */
  #bytes(bytes: string | Uint8Array): void {
    this.#decoder ??= new AnswerDecoder(this.#attempt, this.#subscriber, {
      maxBytes: SOURCE_DEFAULTS.maxEventBytes,
      about: { model: this.#model, status: this.#status, requestId: requestIdOf(this.#headers) },
      headers: this.#headers,
      runtime: this.#world.runtime,
    });
    const read = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes;
    if (!this.#decoded((decoder) => decoder.push(read))) this.#end();
  }

  /** Whether it could be read. */
  #decoded(read: (decoder: AnswerDecoder) => void): boolean {
    if (this.#decoder === undefined) return true;
    try {
      read(this.#decoder);
      return true;
    } catch (error) {
      this.#subscriber.error(error);
      return false;
    }
  }

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#status = status;
    this.#headers = new PlainHeaders(headers);
    if (status >= 400) return;
    const hints = readHints({ status, headers: this.#headers, wallNowMs: this.#wallNowMs });
    this.#subscriber.next({ kind: 'head', status, requestId: requestIdOf(this.#headers), hints });
  }

  #body(text: string): void {
    if (this.#status < 400) return this.#bytes(text);
    const answer = { status: this.#status, headers: this.#headers, body: text };
    const { head, error } = failedResponse(answer, this.#model, this.#wallNowMs);
    this.#end();
    if (head !== undefined) this.#subscriber.next(head);
    this.#subscriber.error(error);
  }

  /** What the platform throws for a connection that is reset. */
  #broken(): Error {
    const thrown = new TypeError('terminated', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
    const status = this.#status === 0 ? undefined : this.#status;
    return thrownError(thrown, { model: this.#model, status, requestId: undefined }, this.#wallNowMs);
  }

  #end(): void {
    if (this.#over || this.#exchange === undefined) return;
    this.#over = true;
    this.#exchange.end();
    this.#world.listener.over(this.#exchange);
  }

  get #model(): string | undefined {
    const { model } = this.#attempt.request;
    return typeof model === 'string' ? model : undefined;
  }

  get #wallNowMs(): number {
    return this.#world.runtime.clock.wallNow();
  }
}

/** Names are in lower case. */
class PlainHeaders implements HeaderReader {
  readonly #values: Readonly<Record<string, string>>;

  constructor(values: Readonly<Record<string, string>>) {
    this.#values = values;
  }

  get(name: string): string | null {
    return this.#values[name] ?? null;
  }

  forEach(each: (value: string, name: string) => void): void {
    for (const name in this.#values) each(this.#values[name] as string, name);
  }
}
