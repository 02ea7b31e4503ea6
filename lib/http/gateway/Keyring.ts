import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { GatewayPolicy } from '../../policy/Policy.ts';

/** Who asks. */
export interface Caller {
  /** `undefined`: it names the tenant of its calls itself, and may see how all stand. */
  readonly tenant: string | undefined;
  /** `undefined`: it names the priority itself. */
  readonly priority: string | undefined;
}

/** Where no key is needed. */
export const ANYONE: Caller = Object.freeze({ tenant: undefined, priority: undefined });

interface Entry extends Caller {
  readonly hash: Buffer;
}

/** The keys of a policy. Only their hashes are known here. */
export class Keyring {
  readonly #policy: GatewayPolicy;
  readonly #entries: readonly Entry[];

  constructor(policy: GatewayPolicy) {
    this.#policy = policy;
    this.#entries = policy.keys.map(({ hash, tenant, priority }) => ({
      hash: Buffer.from(hash, 'hex'),
      tenant,
      priority,
    }));
  }

  isOf(policy: GatewayPolicy): boolean {
    return this.#policy === policy;
  }

  /** No key is needed. */
  get open(): boolean {
    return this.#entries.length === 0;
  }

  /** `undefined` where `key` is none of them. Takes as long for every key. */
  callerOf(key: string | undefined): Caller | undefined {
    const hash = createHash('sha256')
      .update(key ?? '')
      .digest();
    let found: Entry | undefined;
    for (const entry of this.#entries) if (timingSafeEqual(entry.hash, hash)) found = entry;
    return key === undefined ? undefined : found;
  }
}

/** The key that a request carries: as OpenAI's clients send it, as Azure's do, or as the password that a browser asks for. */
export function presentedKey(headers: IncomingHttpHeaders): string | undefined {
  const [, scheme = '', text = ''] = /^(Bearer|Basic) +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (scheme.toLowerCase() === 'bearer') return text;
  if (scheme !== '') {
    const pair = Buffer.from(text, 'base64').toString('utf8');
    return pair.slice(pair.indexOf(':') + 1) || undefined;
  }
  const key = headers['api-key'];
  return typeof key === 'string' && key !== '' ? key : undefined;
}
