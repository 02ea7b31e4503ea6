import type { OpenAI } from 'openai';
import { OpenAI as Newest } from 'openai';
import { VERSION } from 'openai/version';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

export interface OpenAIVersion {
  /** `openai 7.59.0` */
  readonly name: string;
  readonly OpenAI: typeof OpenAI;
}

const clients = new URL('../clients/', import.meta.url);
// Not `await import`: mocha loads specs by require, which takes no top-level await.
const require = createRequire(import.meta.url);

/** Versions installed by spec/clients, besides the one of the root: folder in its node_modules, and version. */
const OTHERS = [
  { alias: 'openai6', version: '6.49.0' },
  // The floor of the peer range.
  { alias: 'openai60', version: '6.0.0' },
] as const;

const missing = OTHERS.filter(({ alias }) => !existsSync(new URL(`node_modules/${alias}/package.json`, clients)));

/** The SDKs to test against: the newest and, where spec/clients is installed, the last and the first of 6.x. */
export const openaiVersions: readonly OpenAIVersion[] = [
  { name: `openai ${VERSION}`, OpenAI: Newest },
  ...OTHERS.filter((other) => !missing.includes(other)).map(({ alias, version }) => {
    const module = require(`../clients/${alias}.mjs`) as { OpenAI: typeof OpenAI };
    return { name: `openai ${version}`, OpenAI: module.OpenAI };
  }),
];

/**
 * Registers `body` once for each SDK. One that is not installed shows as skipped, and in CI as failed.
 *
 * Call it within a `describe`.
 */
export function forEachOpenAI(body: (version: OpenAIVersion) => void): void {
  for (const version of openaiVersions) describe(`with ${version.name}`, () => body(version));
  for (const { version } of missing) {
    describe(`with openai ${version}`, () => {
      const title = 'needs `npm ci` in spec/clients';
      if (process.env['CI'] === 'true') it(title, () => Promise.reject(new Error(title)));
      else it.skip(title);
    });
  }
}
