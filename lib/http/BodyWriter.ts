import { OutgoingMessage } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Writes a streamed body, piece by piece. After the first piece each goes to the socket as one string that is framed here,
 * which costs half of what `response.write` costs: that makes four writes of it, joins them, and sends them in a tick of
 * their own. Where the body is not chunked, or something stands before the response, such as compression, the response
 * writes all of them.
 */
export class BodyWriter {
  readonly #response: ServerResponse;
  readonly #onRoom: () => void;
  #begun = false;
  #socket: Socket | undefined;
  #full = false;

  /** `onRoom` hears of each time that what was too much has been written. */
  constructor(response: ServerResponse, onRoom: () => void) {
    this.#response = response;
    this.#onRoom = onRoom;
  }

  /** More was written than the client has taken, and `onRoom` will be called if it takes it. */
  get full(): boolean {
    return this.#full;
  }

  /** @returns Whether there is room for more. The response has its head by now, and has not been ended. */
  write(text: string): boolean {
    // A chunk of no bytes would be the end of the body.
    if (text === '') return !this.#full;
    const socket = this.#direct();
    if (socket === undefined) {
      this.#begun = true;
      return this.#response.write(text) ? !this.#full : this.#wait(this.#response);
    }
    const length = Buffer.byteLength(text).toString(16);
    return socket.write(`${length}\r\n${text}\r\n`) ? !this.#full : this.#wait(socket);
  }

  /** The socket, where nothing of the response is left before it or stands between. */
  #direct(): Socket | undefined {
    const response = this.#response;
    if (this.#socket === undefined) {
      const { socket, chunkedEncoding } = response;
      if (!this.#begun || !chunkedEncoding || response.write !== OutgoingMessage.prototype.write) return undefined;
      // None as long as another response of the same connection goes first.
      if (socket === null) return undefined;
      this.#socket = socket;
    }
    return response.writableEnded ? undefined : this.#socket;
  }

  #wait(on: ServerResponse | Socket): false {
    if (!this.#full) on.once('drain', this.#drained);
    this.#full = true;
    return false;
  }

  readonly #drained = (): void => {
    this.#full = false;
    this.#onRoom();
  };
}
