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

  constructor(engine: Engine, request: IncomingMessage, response: ServerResponse, settings: GatewaySettings) {
    this.#engine = engine;
    this.#request = request;
    this.#response = response;
    this.#settings = settings;
    // Before anything is awaited: a client that leaves meanwhile must not be missed.
    response.once('close', () => {
      this.#gone = true;
      this.#call?.leave();
    });
  }

  /** Never rejects. */
  async run(api: AskedCall['api'], caller: Caller): Promise<void> {
    try {
      const refusal = await this.#run(api, caller);
      if (refusal !== undefined && !this.#gone) this.#refuse(refusal);
    } catch (thrown) {
      if (isSluiceError(thrown)) sendFailure(this.#response, thrown, { 'x-request-id': this.#id });
      else this.#refuse(BROKEN);
    }
  }

  cut(failure: SluiceError): void {
    if (this.#call !== undefined) this.#call.cut(failure);
    else sendFailure(this.#response, failure, { 'x-request-id': this.#id, connection: 'close' });
  }

  destroy(): void {
    this.#response.destroy();
  }

  async #run(api: AskedCall['api'], caller: Caller): Promise<Refusal | undefined> {
    const { headers } = this.#request;
    if (!isJson(headers['content-type'])) return NOT_JSON;
    if ((headers['content-encoding'] ?? 'identity') !== 'identity') return ENCODED;
    const read = await this.#body();
    if (this.#gone) return undefined;
    if (read instanceof Refusal) return read;
    const asked = askedCall(api, read.fields, read.bytes);
    const terms = termsOf(asked, headers, caller, this.#engine.policy);
    if (terms instanceof Refusal) return terms;
    this.#call = new GatewayCall(this.#id, this.#engine, this.#response, asked, terms, this.#settings);
    this.#call.start();
    return undefined;
  }

  async #body(): Promise<Refusal | { readonly fields: Fields; readonly bytes: Uint8Array | undefined }> {
    const { body: parsed } = this.#request as { readonly body?: unknown };
    // A framework has read and parsed it.
    if (typeof parsed === 'object' && parsed !== null && this.#request.readableEnded) {
      return { fields: parsed as Fields, bytes: undefined };
    }
    const { maxBodyBytes: maxBytes, bodyMs: timeoutMs } = this.#settings;
    const bytes = await readBody(this.#request, { maxBytes, timeoutMs, runtime: this.#engine.runtime });
    if (bytes === 'too large') return tooLarge(maxBytes);
    if (typeof bytes === 'string') return TOO_SLOW;
    const fields = fieldsOf(bytes);
    return fields instanceof Refusal ? fields : { fields, bytes };
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
