import type { ServerResponse } from 'node:http';
import type { Outlet } from './Delivery.ts';
import type { DeliverySettings } from './DeliveryOptions.ts';
import type { HttpFailure } from './httpFailure.ts';

/** A response of `node:http`. */
export class ResponseOutlet implements Outlet {
  readonly #response: ServerResponse;
  readonly #settings: DeliverySettings;

  constructor(response: ServerResponse, settings: DeliverySettings) {
    this.#response = response;
    this.#settings = settings;
  }

  open(headers: Readonly<Record<string, string>>): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, { ...this.#settings.headers, ...headers });
    this.#response.flushHeaders();
  }

  write(text: string): boolean {
    // To a response that someone else has destroyed a write is an error; its 'close' follows.
    return !this.#response.destroyed && this.#response.write(text);
  }

  close(): void {
    this.#response.end();
  }

  cut(): void {
    this.#response.destroy();
  }

  refuse({ statusCode, headers, body }: HttpFailure): void {
    if (this.#response.headersSent) {
      this.#response.end();
      return;
    }
    this.#response.writeHead(statusCode, { ...this.#settings.headers, ...headers });
    this.#response.end(body && JSON.stringify(body));
  }
}
