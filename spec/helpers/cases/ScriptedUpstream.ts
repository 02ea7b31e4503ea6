import type { CountedRuntime } from './CaseTime.ts';
import { rawServer } from '../rawServer.ts';
import type { RawExchange, RawServer } from '../rawServer.ts';
import type { ScriptedAnswer, UpstreamInput } from './upstreamCase.ts';

/** One request as the server saw it, and how it ended there. */
export interface SeenRequest {
  readonly atMs: number;
  readonly model: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The client closed the connection before the answer was over. */
  abortedAtMs: number | undefined;
  doneWrittenAtMs: number | undefined;
}

/** One request from the client's side, to know when nothing of it is on its way. */
interface Sent {
  exchange: RawExchange | undefined;
  /** What the server has done. */
  headWritten: boolean;
  endWritten: boolean;
  closed: boolean;
  /** The server goes on by itself: neither done nor waiting for time to pass. */
  busy: boolean;
  /** What has arrived. */
  headed: boolean;
  got: number;
  /** The client has had its end, by itself or by its own doing. */
  over: 'clean' | 'broken' | 'cancelled' | undefined;
  wake: (() => void) | undefined;
}

const NUMBER = 'x-case-request';

/**
 * A scripted provider over real sockets in virtual time. Each piece of an answer is written when the one before it has
 * arrived, so reads are those of the script; `quiet` tells when nothing is on its way.
 */
export class ScriptedUpstream {
  readonly requests: SeenRequest[] = [];
  /** Cancels of bodies that never end. */
  cancels = 0;
  readonly #sent: Sent[] = [];
  readonly #runtime: CountedRuntime;
  readonly #script: UpstreamInput['script'];
  readonly #taken = new Map<string, number>();
  #server: RawServer | undefined;

  constructor(script: UpstreamInput['script'], runtime: CountedRuntime) {
    this.#script = script;
    this.#runtime = runtime;
  }

  async start(): Promise<string> {
    this.#server = await rawServer((exchange) => void this.#answer(exchange));
    return this.#server.baseURL;
  }

  async stop(): Promise<void> {
    await this.#server?.close();
  }

  quiet(): boolean {
    return this.#sent.every((sent) => {
      const { exchange, over } = sent;
      if (over !== undefined) return exchange === undefined || over === 'clean' || sent.closed;
      if (exchange === undefined) return false;
      return sent.headed === sent.headWritten && sent.got === exchange.written && !sent.endWritten && !sent.busy;
    });
  }

  readonly fetch = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    const body = JSON.parse(init.body as string) as Record<string, unknown>;
    const step = this.#next(body['model']);
    if (step.throws ?? step.body_stream) return this.#stub(step, body, init);
    const sent: Sent = {
      exchange: undefined,
      headWritten: false,
      endWritten: false,
      closed: false,
      busy: false,
      headed: false,
      got: 0,
      over: undefined,
      wake: undefined,
    };
    const headers = new Headers(init.headers);
    headers.set(NUMBER, String(this.#sent.push(sent) - 1));
    this.#steps.set(sent, step);
    init.signal?.addEventListener('abort', () => (sent.over ??= 'cancelled'), { once: true });
    try {
      const response = await fetch(url as string, { ...init, headers });
      sent.headed = true;
      const { status, statusText } = response;
      return new Response(counted(response, sent), { status, statusText, headers: response.headers });
    } catch (error) {
      sent.over ??= 'broken';
      throw error;
    }
  };

  readonly #steps = new WeakMap<Sent, ScriptedAnswer>();

  #next(model: unknown): ScriptedAnswer {
    const perModel = !Array.isArray(this.#script);
    const key = perModel ? String(model) : '';
    const list = perModel
      ? ((this.#script as Record<string, readonly ScriptedAnswer[]>)[key] ?? [])
      : (this.#script as readonly ScriptedAnswer[]);
    const at = this.#taken.get(key) ?? 0;
    this.#taken.set(key, at + 1);
    const step = list[Math.min(at, list.length - 1)];
    if (step === undefined) throw new Error(`the script has no answer for ${key}`);
    return step;
  }

  #see(body: Record<string, unknown>, headers: Record<string, unknown>): SeenRequest {
    const { model } = body;
    const seen: SeenRequest = {
      atMs: this.#runtime.clock.now(),
      model: typeof model === 'string' ? model : undefined,
      body,
      headers,
      abortedAtMs: undefined,
      doneWrittenAtMs: undefined,
    };
    this.requests.push(seen);
    return seen;
  }

  #stub(step: ScriptedAnswer, body: Record<string, unknown>, init: RequestInit): Response {
    this.#see(body, Object.fromEntries(new Headers(init.headers)));
    if (step.throws)
      throw Object.assign(new Error((step.throws['message'] as string | undefined) ?? 'thrown'), step.throws);
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from('{"error":')),
      cancel: () => void this.cancels++,
    });
    return new Response(stream, { status: step.status ?? 200, headers: step.headers ?? {} });
  }

  async #answer(exchange: RawExchange): Promise<void> {
    const sent = this.#sent[Number(exchange.headers[NUMBER])] as Sent;
    const step = this.#steps.get(sent) as ScriptedAnswer;
    const seen = this.#see(exchange.body, exchange.headers);
    sent.exchange = exchange;
    sent.busy = true;
    void exchange.closed.then(({ aborted }) => {
      sent.closed = true;
      sent.wake?.();
      if (aborted && !sent.endWritten) seen.abortedAtMs = this.#runtime.clock.now();
    });
    await this.#play(exchange, sent, seen, step);
    sent.busy = false;
  }

  async #play(exchange: RawExchange, sent: Sent, seen: SeenRequest, step: ScriptedAnswer): Promise<void> {
    if (step.after_ms !== undefined) await this.#wait(step.after_ms, sent);
    if (sent.closed || step.hang) return;
    if (step.error !== undefined) {
      sent.endWritten = true;
      exchange.reset();
      return;
    }
    if (step.sse === undefined && step.after_headers_hang !== true) return this.#whole(exchange, sent, step);
    sent.headWritten = true;
    exchange.head(step.status ?? 200, { 'content-type': 'text/event-stream', ...step.headers });
    await this.#stream(exchange, sent, seen, step);
  }

  #whole(exchange: RawExchange, sent: Sent, { status = 200, headers = {}, body, end }: ScriptedAnswer): void {
    const isText = typeof body === 'string';
    const type = body === undefined || isText ? {} : { 'content-type': 'application/json' };
    sent.headWritten = true;
    exchange.head(status, { ...type, ...headers });
    if (body !== undefined) exchange.write(isText ? Buffer.from(body) : Buffer.from(JSON.stringify(body)));
    if (end === 'hang') return;
    sent.endWritten = true;
    exchange.end();
  }

  async #stream(exchange: RawExchange, sent: Sent, seen: SeenRequest, step: ScriptedAnswer): Promise<void> {
    await this.#arrived(sent);
    for (const [at, chunk] of (step.sse ?? []).entries()) {
      if (at > 0 && step.chunk_every_ms !== undefined) await this.#wait(step.chunk_every_ms, sent);
      if (sent.closed) return;
      exchange.write(Buffer.from(chunk));
      if (chunk.includes('[DONE]')) seen.doneWrittenAtMs = this.#runtime.clock.now();
      await this.#arrived(sent);
    }
    if (sent.closed || (step.end ?? 'hang') === 'hang') return;
    sent.endWritten = true;
    if (step.end === 'close') exchange.end();
    else if (step.end === 'reset') exchange.reset();
    else exchange.cut();
  }

  /** Until what was written is at the client: a reset overtakes what is still on its way. */
  async #arrived(sent: Sent): Promise<void> {
    while (!sent.closed && sent.over === undefined && !(sent.headed && sent.got === sent.exchange?.written)) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #wait(delayMs: number, sent: Sent): Promise<void> {
    return new Promise((resolve) => {
      const goOn = (): void => {
        sent.busy = true;
        resolve();
      };
      const timer = this.#runtime.scheduler.schedule(goOn, delayMs);
      sent.busy = false;
      sent.wake = () => {
        timer.unsubscribe();
        goOn();
      };
    });
  }
}

/** The body, read as fast as it comes, and counted. */
function counted(response: Response, sent: Sent): ReadableStream<Uint8Array> | null {
  const reader = response.body?.getReader();
  if (reader === undefined) {
    sent.over ??= 'clean';
    return null;
  }
  return new ReadableStream({
    start(controller) {
      void pump(reader, sent, controller);
    },
    cancel(reason) {
      sent.over ??= 'cancelled';
      return reader.cancel(reason);
    },
  });
}

async function pump(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  sent: Sent,
  controller: ReadableStreamDefaultController<Uint8Array>,
): Promise<void> {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (sent.over === 'cancelled') return;
      if (done) break;
      sent.got += value.length;
      controller.enqueue(value);
    }
    sent.over ??= 'clean';
    controller.close();
  } catch (error) {
    if (sent.over === 'cancelled' && sent.closed) return;
    sent.over ??= 'broken';
    controller.error(error);
  }
}
