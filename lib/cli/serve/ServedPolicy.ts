import { SluiceError } from '../../core/errors.ts';
import { loadPolicy } from '../../policy/loadPolicy.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import type { Policy } from '../../policy/Policy.ts';

/** The policy that a gateway goes by: that of a file, as it was when it was read last, or one without settings. */
export class ServedPolicy {
  readonly path: string | undefined;
  #current: Policy;

  /** @throws SluiceError `invalid_policy` */
  constructor(path: string | undefined) {
    this.path = path;
    this.#current = read(path);
  }

  get current(): Policy {
    return this.#current;
  }

  /**
   * Reads the file again. `take` puts what it holds into force; if it throws, the policy stays as it was.
   *
   * @throws SluiceError `invalid_policy`, and what `take` throws.
   */
  reload(take: (next: Policy) => void): void {
    const next = read(this.path);
    if (next.store.url !== this.#current.store.url) {
      // Neither address is shown: it may hold a password.
      throw new SluiceError('invalid_policy', 'store.url cannot change while the gateway runs: restart it');
    }
    take(next);
    this.#current = next;
  }
}

function read(path: string | undefined): Policy {
  if (path === undefined) return parsePolicy({});
  const policy = loadPolicy(path);
  // Where it names no clients there is one, and models must not name another.
  return Object.keys(policy.clients).length > 0 ? policy : loadPolicy(path, { clients: ['main'] });
}
