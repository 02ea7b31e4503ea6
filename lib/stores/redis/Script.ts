import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ScriptCalls } from './RedisClient.ts';

/** A Lua script that the server runs in one step. */
export class Script {
  readonly #text: string;
  readonly #sha: string;

  constructor(text: string) {
    this.#text = text;
    this.#sha = createHash('sha1').update(text).digest('hex');
  }

  /** The files of those names next to this one, joined. */
  static read(...names: readonly string[]): Script {
    const texts = names.map((name) => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8'));
    return new Script(texts.join('\n'));
  }

  /** Sends its hash; its text only where the server does not know it: after a restart or SCRIPT FLUSH, or at first. */
  async run(calls: ScriptCalls, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    try {
      return await calls.evalsha(this.#sha, keys, args);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return calls.eval(this.#text, keys, args);
    }
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
