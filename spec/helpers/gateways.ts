import OpenAI from 'openai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { Clients, SluiceOptions } from '../../lib/client/SluiceOptions.ts';
import { createGateway } from '../../lib/http/gateway/createGateway.ts';
import type { Gateway } from '../../lib/http/gateway/createGateway.ts';
import type { GatewayOptions } from '../../lib/http/gateway/GatewayOptions.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly sluice: Sluice;
  readonly url: string;
  readonly baseURL: string;
  /** A request with a JSON body, and what it is answered. */
  ask(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  /** An OpenAI client that asks the gateway. */
  openai(apiKey?: string): OpenAI;
  close(): Promise<void>;
}

export interface GatewaySetup extends GatewayOptions {
  readonly policy?: PolicyInput | undefined;
  readonly sluice?: SluiceOptions | undefined;
  readonly listen?: Parameters<Gateway['listen']>[0];
}

/** A gateway before `upstream`: a base URL, or clients. */
export async function startGateway(upstream: string | Clients, setup: GatewaySetup = {}): Promise<RunningGateway> {
  const { policy = {}, sluice: sluiceOptions = {}, listen = {}, ...options } = setup;
  const clients =
    typeof upstream === 'string' ? new OpenAI({ baseURL: upstream, apiKey: 'upstream', maxRetries: 0 }) : upstream;
  const sluice = createSluice(clients, policy, sluiceOptions);
  const gateway = createGateway(sluice, options);
  const { url, baseURL } = await gateway.listen(listen);
  return {
    gateway,
    sluice,
    url,
    baseURL,
    ask: (path, body, headers = {}, signal) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal && { signal }),
      }),
    openai: (apiKey = 'none') => new OpenAI({ baseURL, apiKey, maxRetries: 0 }),
    close: async () => {
      await gateway.close({ drainMs: 0 });
      await sluice.close({ drainMs: 0 });
    },
  };
}

/** The data of a stream's events, as text. */
export async function eventsOf(response: Response): Promise<readonly string[]> {
  const text = await response.text();
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => /^data: (.*)$/m.exec(event)?.[1] ?? '');
}
