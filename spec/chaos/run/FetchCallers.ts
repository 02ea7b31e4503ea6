import type { AsyncLocalStorage } from 'node:async_hooks';
import OpenAI, { APIConnectionError, APIError, APIUserAbortError } from 'openai';
import type { Observable } from 'rxjs';
import type { CallOptions, Sluice } from '../../../lib/index.ts';
import type { PlannedCall } from '../plan/ChaosPlan.ts';
import { requestOf } from '../plan/requestOf.ts';
import { askSdk } from './askSdk.ts';
import { failureTold, reading } from './reading.ts';

export interface FetchCallersOptions {
  readonly sluices: readonly Sluice[];
  /** Of providers, by the names of their clients. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Which call is being made. */
  readonly asked: AsyncLocalStorage<number>;
  readonly sabotage: (fetch: typeof globalThis.fetch) => typeof globalThis.fetch;
}

/** SDKs whose `fetch` is `sluice.fetch`. Their retries are on: what comes back must keep them from trying again. */
export class FetchCallers {
  readonly #asked: AsyncLocalStorage<number>;
  readonly #sdks: readonly Readonly<Record<string, OpenAI>>[];

  constructor({ sluices, addresses, asked, sabotage }: FetchCallersOptions) {
    this.#asked = asked;
    this.#sdks = sluices.map((sluice) =>
      Object.fromEntries(
        Object.entries(addresses).map(([name, baseURL]) => [
          name,
          new OpenAI({ baseURL, apiKey: 'none', fetch: sabotage(sluice.fetch), logLevel: 'off' }),
        ]),
      ),
    );
  }

  /** `home`: the client that serves the model, whose address the SDK has. */
  ask(planned: PlannedCall, index: number, home: string, options: CallOptions): Observable<unknown> {
    const { api, process = 0 } = planned;
    const sdk = this.#sdks[process]?.[home] as OpenAI;
    const { tenant, conversation, priority, deadlineMs } = options;
    const ours = { tenant, conversation, priority, 'deadline-ms': deadlineMs };
    const headers = Object.fromEntries(
      Object.entries(ours).flatMap(([name, value]) =>
        value === undefined ? [] : [[`x-sluice-${name}`, String(value)] as const],
      ),
    );
    return reading(options.signal as AbortSignal, async (signal, next) => {
      try {
        const answer = await this.#asked.run(index, () =>
          askSdk(sdk, api, requestOf(planned, index), { signal, headers }),
        );
        if (api === 'complete') next(answer);
        else for await (const value of answer) next(value);
      } catch (error) {
        throw wasAnswered(error) ? toldBy(error) : error;
      }
    });
  }
}

/** `sluice.fetch` rejects only where its caller has left. */
function wasAnswered(error: unknown): error is APIError {
  return error instanceof APIError && !(error instanceof APIConnectionError) && !(error instanceof APIUserAbortError);
}

function toldBy({ status, code, type, message }: APIError): Error {
  return failureTold({ status, code, type, message });
}
