import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isSluiceError } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { EmulatorOptions } from './EmulatorOptions.ts';
import { checkEmulatorOptions, EMULATOR_DEFAULTS } from './EmulatorOptions.ts';
import { EmulatorState } from './EmulatorState.ts';
import type { EmulatorReport } from './EmulatorState.ts';
import type { QuotaChange } from './model/FakeProvider.ts';
import type { FaultRule } from './model/faults.ts';
import { isFields } from './model/request.ts';
import { readBody } from './readBody.ts';
import { routeOf } from './routes.ts';
import type { Route } from './routes.ts';

/** Connections that wait to be accepted. Node's own 511 lets a burst of a thousand clients wait for seconds. */
const BACKLOG = 4_096;

/** A fake provider that listens. */
export interface Emulator {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** What an SDK wants as its base URL: `url` with `/v1`. */
  readonly baseURL: string;
  readonly port: number;
  /** What it saw since the start, or since `reset`. */
  report(): EmulatorReport;
  /**
   * Takes the place of what is left of the script; `[]` clears it.
   * @throws SluiceError `invalid_option`
   */
  script(faults: readonly FaultRule[]): void;
  /**
   * Changes the limits that are named, from now on.
   * @throws SluiceError `invalid_option`
   */
  setQuota(change: QuotaChange): void;
  /** Back to the options of the start: full buckets, the first script, an empty report. Running answers go on unseen. */
  reset(): void;
  /** Ends every connection at once. Nothing keeps the process alive after it. Further calls do nothing. */
  close(): Promise<void>;
}

/**
 * Starts a fake provider: `/v1/chat/completions`, `/v1/responses`, `/v1/embeddings` and `/v1/models` with quotas,
 * latency and faults like those of real ones. `GET /report`, `POST /script`, `POST /quota` and `POST /reset` control it.
 *
 * It listens on this machine only, and takes no key: any is accepted and none is kept.
 *
 * @throws SluiceError `invalid_option`, as a rejection.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { startEmulator } from 'sluice/emulator';
 *
 * const emulator = await startEmulator({ requestsPerMinute: 60, burstRequests: 8 });
 * const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none', maxRetries: 0 });
 * emulator.script([{ kind: 'error', error: 'overloaded' }]);
 * await openai.chat.completions
 *   .create({ model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .catch((error: unknown) => console.log(error));
 * console.log(emulator.report().statuses); // { '503': 1 }
 * await emulator.close();
 * ```
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  checkEmulatorOptions(options);
  const { port = EMULATOR_DEFAULTS.port, host = EMULATOR_DEFAULTS.host } = options;
  const { maxBodyBytes = EMULATOR_DEFAULTS.maxBodyBytes, runtime = systemRuntime } = options;
  let state = new EmulatorState(options, runtime);

  const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
    const route = routeOf(request.method, request.url);
    readBody(request, maxBodyBytes, (body) => {
      if (body.kind === 'gone') return;
      if (body.kind === 'too_large') {
        // What is left of the body is not read, so the connection cannot be used again.
        response.setHeader('connection', 'close');
        sendError(response, 413, `the body is larger than ${maxBodyBytes} bytes`);
      } else if (body.kind === 'not_json') {
        sendError(response, 400, 'the body is not JSON');
      } else {
        serve(route, body.value, request, response);
      }
    });
  });

  const serve = (route: Route, body: unknown, request: IncomingMessage, response: ServerResponse): void => {
    switch (route.kind) {
      case 'ask': {
        const fields = isFields(body) ? body : {};
        const { deployment, api } = route;
        const asked =
          deployment !== undefined && fields['model'] === undefined ? { ...fields, model: deployment } : fields;
        state.ask({ api, body: asked, headers: flat(request) }, response);
        return;
      }
      case 'models': {
        const data = state.modelNames.map((id) => ({ id, object: 'model', created: 0, owned_by: 'emulator' }));
        send(response, 200, { object: 'list', data });
        return;
      }
      case 'method':
        response.setHeader('allow', route.allowed);
        sendError(response, 405, `use ${route.allowed}`);
        return;
      case 'unknown':
        sendError(response, 404, 'there is nothing at this address');
        return;
      default:
        control(route.kind, body, request, response);
    }
  };

  const control = (
    kind: 'report' | 'script' | 'reset' | 'quota',
    body: unknown,
    request: IncomingMessage,
    response: ServerResponse,
  ): void => {
    // A web page must not steer, or read, what runs on its visitor's machine.
    if (request.headers.origin !== undefined) {
      sendError(response, 403, 'not from a web page');
      return;
    }
    try {
      if (kind === 'script') emulator.script((isFields(body) ? body['faults'] : body) as readonly FaultRule[]);
      if (kind === 'quota') emulator.setQuota(isFields(body) ? body : {});
      if (kind === 'reset') emulator.reset();
      send(response, 200, kind === 'report' ? emulator.report() : { ok: true });
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      sendError(response, 400, error.message);
    }
  };

  server.on('connection', (socket) => {
    state.connected();
    // Counts for the state that is there when it ends: `reset` carries the open ones over.
    socket.on('close', () => state.disconnected());
    // A reset by the client is an abort like any other.
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: BACKLOG }, resolve);
  });
  const address = server.address() as AddressInfo;
  const shownHost = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  const url = `http://${shownHost}:${address.port}`;
  let closing: Promise<void> | undefined;

  const emulator: Emulator = {
    url,
    baseURL: `${url}/v1`,
    port: address.port,
    report: () => state.report(),
    script: (faults) => state.script(faults),
    setQuota: (change) => state.setQuota(change),
    reset() {
      const { openConnections } = state;
      state = new EmulatorState(options, runtime, openConnections);
    },
    close() {
      closing ??= new Promise((resolve) => {
        state.closing();
        server.close(() => resolve());
        server.closeAllConnections();
      });
      return closing;
    },
  };
  return emulator;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendError(response: ServerResponse, status: number, message: string): void {
  send(response, status, { error: { message, type: 'invalid_request_error', param: null, code: null } });
}

function flat({ headers }: IncomingMessage): Record<string, string | undefined> {
  const out: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(headers)) out[name] = Array.isArray(value) ? value.join(', ') : value;
  return out;
}
