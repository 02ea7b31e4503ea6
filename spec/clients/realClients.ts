import { existsSync } from 'node:fs';
import { openaiVersions } from '../helpers/openaiVersions.ts';
import type { AskClient, RealClient } from './RealClient.ts';

type Open = (...args: unknown[]) => AskClient;

const installed = (folder: string): boolean =>
  existsSync(new URL(`node_modules/${folder}/package.json`, import.meta.url));

/** Loaded late: LangChain alone takes seconds, and not every run of the specs needs it. */
async function load(file: string, name: string): Promise<Open> {
  const module = (await import(new URL(file, import.meta.url).href)) as Record<string, Open>;
  return module[name] as Open;
}

const sdks: readonly RealClient[] = openaiVersions.map(({ name, OpenAI }) => ({
  name,
  needs: undefined,
  family: 'openai',
  open: async (baseURL) => (await load('openaiClient.mjs', 'openaiClient'))(OpenAI, baseURL),
}));

const others: readonly RealClient[] = (
  [
    ['ai with @ai-sdk/openai-compatible', '@ai-sdk/openai-compatible', 'ai', 'aiSdk'],
    ['@langchain/openai', '@langchain/openai', 'openai', 'langchain'],
    ['@openai/agents', '@openai/agents', 'openai', 'agents'],
  ] as const
).map(([name, needs, family, file]) => ({
  name,
  needs,
  family,
  open: async (baseURL: string) => (await load(`${file}.mjs`, file))(baseURL),
}));

/**
 * Registers `body` once for each client. One that is not installed shows as skipped, and in CI as failed.
 *
 * Call it within a `describe`.
 */
export function forEachClient(body: (client: RealClient) => void): void {
  for (const client of [...sdks, ...others]) {
    describe(`with ${client.name}`, () => {
      if (client.needs === undefined || installed(client.needs)) return body(client);
      const title = 'needs `npm ci` in spec/clients';
      if (process.env['CI'] === 'true') it(title, () => Promise.reject(new Error(title)));
      else it.skip(title);
    });
  }
}
