/** A request that is no call, and what it is answered. A class, as nothing that a client sends may pass for one. */
export class Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.code = code;
    this.message = message;
    this.headers = headers;
  }

  /** In the shape of a provider's error. */
  get body(): string {
    const { status, code, message } = this;
    const type = status >= 500 ? 'server_error' : 'invalid_request_error';
    return JSON.stringify({ error: { message, type, param: null, code } });
  }
}

export const UNKNOWN_PATH: Refusal = new Refusal(404, 'unknown_url', 'there is nothing at this path');
export const UNKNOWN_MODEL: Refusal = new Refusal(404, 'model_not_found', 'the policy lists no such model');
export const WRONG_HOST: Refusal = new Refusal(
  421,
  'misdirected_request',
  'this gateway does not answer for that host',
);
export const NO_KEY: Refusal = new Refusal(401, 'invalid_api_key', 'a key is needed: authorization: Bearer <key>', {
  'www-authenticate': 'Bearer',
});
export const WRONG_KEY: Refusal = new Refusal(401, 'invalid_api_key', 'the key is not one of this gateway', {
  'www-authenticate': 'Bearer',
});
export const NO_KEY_FOR_PAGE: Refusal = new Refusal(401, 'invalid_api_key', 'a key of the operator is needed', {
  'www-authenticate': 'Basic realm="sluice", charset="UTF-8"',
});
export const NOT_OF_OPERATOR: Refusal = new Refusal(403, 'forbidden', 'this is for keys that are not of one tenant');
export const OTHER_TENANT: Refusal = new Refusal(403, 'forbidden', 'x-sluice-tenant: the key is of another tenant');
export const OTHER_PRIORITY: Refusal = new Refusal(
  403,
  'forbidden',
  'x-sluice-priority: the key is of another priority',
);
export const NOT_JSON: Refusal = new Refusal(415, 'unsupported_media_type', 'content-type must be application/json');
export const ENCODED: Refusal = new Refusal(415, 'unsupported_media_type', 'content-encoding must be identity');
export const TOO_SLOW: Refusal = new Refusal(408, 'request_timeout', 'the request did not arrive in time', {
  connection: 'close',
});
export const HEADERS_TOO_LARGE: Refusal = new Refusal(431, 'headers_too_large', 'the headers are too large');
export const NOT_HTTP: Refusal = new Refusal(400, 'bad_request', 'this is not a request of HTTP/1.1');
export const NOT_JSON_BODY: Refusal = new Refusal(400, 'invalid_json', 'the body is not JSON in UTF-8');
export const NO_OBJECT: Refusal = new Refusal(400, 'invalid_json', 'the body is not a JSON object');
export const CLOSING: Refusal = new Refusal(503, 'closed', 'this gateway is being stopped', {
  connection: 'close',
  'retry-after': '1',
});
export const BROKEN: Refusal = new Refusal(500, 'internal_error', 'the gateway failed');

export function wrongMethod(allowed: readonly string[]): Refusal {
  return new Refusal(405, 'method_not_allowed', `this path takes ${allowed.join(', ')}`, { allow: allowed.join(', ') });
}

export function tooLarge(maxBytes: number): Refusal {
  return new Refusal(413, 'request_too_large', `the body is above ${maxBytes} bytes`, { connection: 'close' });
}
