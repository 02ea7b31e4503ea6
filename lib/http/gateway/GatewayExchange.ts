import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Engine } from '../../client/Engine.ts';
import type { Fields } from '../../client/CallPlan.ts';
import { isSluiceError } from '../../core/errors.ts';
import type { SluiceError } from '../../core/errors.ts';
import { startTimer } from '../../core/runtime.ts';
import { askedCall, fieldsOf, termsOf } from './askedCall.ts';
import type { AskedCall } from './askedCall.ts';
import { GatewayCall } from './GatewayCall.ts';
import type { GatewaySettings } from './GatewayOptions.ts';
import type { Caller } from './Keyring.ts';
import { readBody } from './readBody.ts';
import type { BodyRead } from './readBody.ts';
import { BROKEN, ENCODED, NOT_JSON, Refusal, TOO_SLOW, tooLarge } from './Refusal.ts';
import { sendFailure, sendRefusal } from './replies.ts';

/** How long what still comes of a refused body is thrown away, so that the client gets to read the answer. */
const LINGER_MS = 2_000;

/** One request for a call. */
export class GatewayExchange {
  readonly #id = randomUUID();
  readonly #engine: Engine;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #settings: GatewaySettings;
  #call: GatewayCall | undefined;
  #gone = false;

  /** `onClosed`: the answer is out, or the client is gone. */
  constructor(
    engine: Engine,
    request: IncomingMessage,
    response: ServerResponse,
    settings: GatewaySettings,
    onClosed: (exchange: GatewayExchange) => void,
  ) {
    this.#engine = engine;
    this.#request = request;
    this.#response = response;
    this.#settings = settings;
    // Before anything is waited for: a client that leaves meanwhile must not be missed.
    response.once('close', () => {
      this.#gone = true;
      this.#call?.leave();
      onClosed(this);
    });
  }

  /** Answers, now or later. Never throws. */
  run(api: AskedCall['api'], caller: Caller): void {
    this.#answering(() => {
      const { headers, readableEnded, body } = this.#request as IncomingMessage & { readonly body?: unknown };
      if (!isJson(headers['content-type'])) return NOT_JSON;
      if ((headers['content-encoding'] ?? 'identity') !== 'identity') return ENCODED;
      // A framework has read and parsed it.
      if (typeof body === 'object' && body !== null && readableEnded) {
        return this.#ask(api, caller, body as Fields, undefined);
      }
      const { maxBodyBytes: maxBytes, bodyMs: timeoutMs } = this.#settings;
      readBody(this.#request, { maxBytes, timeoutMs, runtime: this.#engine.runtime }, (read) => {
        this.#answering(() => this.#askWith(api, caller, read));
      });
      return undefined;
    });
  }

  cut(failure: SluiceError): void {
    if (this.#call !== undefined) this.#call.cut(failure);
    else sendFailure(this.#response, failure, { 'x-request-id': this.#id, connection: 'close' });
  }

  destroy(): void {
    this.#response.destroy();
  }

  #answering(work: () => Refusal | undefined): void {
    try {
      const refusal = work();
      if (refusal !== undefined && !this.#gone) this.#refuse(refusal);
    } catch (thrown) {
      if (isSluiceError(thrown)) sendFailure(this.#response, thrown, { 'x-request-id': this.#id });
      else this.#refuse(BROKEN);
    }
  }

  #askWith(api: AskedCall['api'], caller: Caller, read: BodyRead): Refusal | undefined {
    if (this.#gone) return undefined;
    if (read === 'too large') return tooLarge(this.#settings.maxBodyBytes);
    if (typeof read === 'string') return TOO_SLOW;
    const fields = fieldsOf(read);
    return fields instanceof Refusal ? fields : this.#ask(api, caller, fields, read);
  }

  #ask(api: AskedCall['api'], caller: Caller, fields: Fields, bytes: Uint8Array | undefined): Refusal | undefined {
    const asked = askedCall(api, fields, bytes);
    const terms = termsOf(asked, this.#request.headers, caller, this.#engine.policy);
    if (terms instanceof Refusal) return terms;
    this.#call = new GatewayCall(this.#id, this.#engine, this.#response, asked, terms, this.#settings);
    this.#call.start();
    return undefined;
  }

  #refuse(refusal: Refusal): void {
    sendRefusal(this.#response, refusal);
    if (this.#request.readableEnded) return;
    this.#request.resume();
    const stop = startTimer(this.#engine.runtime, LINGER_MS, () => this.#request.destroy());
    this.#request.once('close', stop);
  }
}

/** Anything else could be sent by a page of somebody else's, without being asked first. */
function isJson(type: string | undefined): boolean {
  return /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type ?? '');
}
