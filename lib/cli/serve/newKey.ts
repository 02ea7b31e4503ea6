import { createHash, randomBytes } from 'node:crypto';

export interface NewKey {
  /** What a client sends. */
  readonly key: string;
  /** What the policy keeps of it. */
  readonly hash: string;
}

/** A key that nobody can guess: a hash of it gives nothing away. */
export function newKey(): NewKey {
  const key = `sluice-${randomBytes(32).toString('base64url')}`;
  return { key, hash: createHash('sha256').update(key).digest('hex') };
}
