import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { createLivePage } from '../../lib/http/live/createLivePage.ts';
import type { LiveSource } from '../../lib/http/live/LiveSource.ts';

const TENANTS = ['acme', 'globex', 'initech', 'umbrella'];

/** A client of an emulator, and a server of its live page. */
export interface Live {
  readonly emulator: Emulator;
  readonly sluice: Sluice;
  readonly url: string;
  /** The server of the page goes away, and comes back on the same port. */
  leave(): void;
  comeBack(): void;
  close(): Promise<void>;
}

/** The page is of `other`, where that is given. */
export async function startLive(other?: LiveSource): Promise<Live> {
  const emulator = await startEmulator({ firstTokenMs: 60, tokenMs: 4, tokens: 30 });
  const clientOf = (): OpenAI => new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
  const sluice = createSluice(
    { main: clientOf(), other: clientOf() },
    {
      deadlineMs: 10_000,
      quota: { account: { requestsPerMinute: 3_000, burstRequests: 60, tokensPerMinute: 4_000_000 } },
      models: {
        'gpt-5.5': {
          breaker: { consecutiveFailures: 3, errorRatio: null, openMs: 1_200, rampMs: 500 },
          retry: { attempts: 2, baseMs: 50 },
          concurrency: { initial: 16 },
          fallback: ['deepseek-v3.2'],
          price: { inputPerMTok: 2.5, outputPerMTok: 10 },
        },
        'gpt-5.5-mini': { concurrency: { initial: 8 }, price: { inputPerMTok: 0.25, outputPerMTok: 2 } },
        'deepseek-v3.2': { client: 'other', price: { inputPerMTok: 0.3, outputPerMTok: 1.2 } },
      },
      tenants: { default: {}, acme: { maxInFlight: 4 } },
      spend: { perTenantPerDay: { default: 5 } },
    },
  );
  const live = createLivePage(other ?? sluice, { title: 'Support assistant', frameMs: 250 });
  const serve = (port: number): Server =>
    createServer((request, response) => live.listener(request, response)).listen(port, '127.0.0.1');
  let server = serve(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const leave = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return {
    emulator,
    sluice,
    url: `http://127.0.0.1:${port}/`,
    leave,
    comeBack: () => void (server = serve(port)),
    async close() {
      live.close();
      leave();
      await sluice.close({ drainMs: 0 });
      await emulator.close();
    },
  };
}

export async function ask(sluice: Sluice, model: string, tenant = 'acme'): Promise<void> {
  const request = { model, messages: [{ role: 'user' as const, content: 'A question that nobody must see' }] };
  await sluice
    .chat(request, { tenant })
    .forEach(() => {})
    .catch(() => {});
}

/** Some calls each second, until it is stopped. */
export function traffic(sluice: Sluice, everyMs: number): () => void {
  let number = 0;
  const timer = setInterval(() => {
    number++;
    const tenant = TENANTS[number % 7 > 3 ? 0 : number % 4];
    void ask(sluice, number % 3 === 0 ? 'gpt-5.5-mini' : 'gpt-5.5', tenant);
  }, everyMs);
  return () => clearInterval(timer);
}
