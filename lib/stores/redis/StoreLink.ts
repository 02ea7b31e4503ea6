import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import type { StoreChange, StoreLoss } from '../../limits/LimitStore.ts';
import type { ScriptCalls } from './RedisClient.ts';
import { Script } from './Script.ts';

export interface StoreLinkOptions {
  readonly commandTimeoutMs: number;
  readonly probeMs: number;
  readonly probeKey: string;
  readonly onStoreLoss: StoreLoss;
}

/** What one of its users does when it is lost and when it is back. */
export interface LinkUser {
  lost(reason: string): void;
  returned(): void;
  /** Whether it is worth asking whether the store is back. */
  wanting(): boolean;
}

/** A timer that is later than that: something else kept the process busy. */
const HELD_UP_MS = 20;
/** So often an answer is waited for once more. A process that is always held up must not wait for ever. */
const MOST_WAITS = 4;

/**
 * The way to the server. Each command has an end: the first that fails or takes too long loses the store for all who use
 * it. While it is lost nothing is sent but one small probe at a time, and that only while somebody wants it back.
 */
export class StoreLink {
  readonly runtime: Runtime;
  /** What its users do while it is lost. */
  loss: StoreLoss;
  readonly #calls: ScriptCalls;
  readonly #options: StoreLinkOptions;
  readonly #probe: Script = new Script("return redis.call('SET', KEYS[1], '1', 'PX', 60000)");
  readonly #users = new Set<LinkUser>();
  readonly #listeners = new Set<(change: StoreChange) => void>();
  #up = true;
  #lostFor = '';
  #closed = false;
  #probeAtMs = -Infinity;
  #stopProbe: Cancel | undefined;

  constructor(calls: ScriptCalls, options: StoreLinkOptions, runtime: Runtime) {
    this.#calls = calls;
    this.#options = options;
    this.loss = options.onStoreLoss;
    this.runtime = runtime;
  }

  get up(): boolean {
    return this.#up;
  }

  /** Why it is lost, while it is. */
  get lostFor(): string {
    return this.#lostFor;
  }

  use(user: LinkUser): void {
    this.#users.add(user);
  }

  /** What it throws is ignored. Returns what ends that. */
  listen(listener: (change: StoreChange) => void): () => void {
    const own = (change: StoreChange): void => listener(change);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Runs a script. Undefined: the store is lost, as `lost` of every user has been told by then. */
  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    try {
      return await this.#bounded(script, keys, args);
    } catch (error) {
      this.#lose(reasonOf(error));
      return undefined;
    }
  }

  /** Somebody would use the store now, if it were there. */
  wanted(): void {
    if (this.#up || this.#closed || this.#stopProbe) return;
    this.#stopProbe = startTimer(this.runtime, this.#probeAtMs - this.runtime.clock.now(), () => void this.#ask());
  }

  close(): void {
    this.#closed = true;
    this.#stopProbe?.();
  }

  /** Time in which this process was held up itself does not count: the answer may be there, and not read yet. */
  #bounded(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const { clock } = this.runtime;
    const { commandTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      let stop: Cancel = () => {};
      const wait = (forMs: number, left: number): void => {
        const dueAtMs = clock.now() + forMs;
        stop = startTimer(this.runtime, forMs, () => {
          const lateMs = clock.now() - dueAtMs;
          if (lateMs > HELD_UP_MS && left > 0) wait(Math.min(lateMs, commandTimeoutMs), left - 1);
          else reject(new Error('TIMEOUT'));
        });
      };
      wait(commandTimeoutMs, MOST_WAITS);
      script
        .run(this.#calls, keys, args)
        .then(resolve, reject)
        .finally(() => stop());
    });
  }

  async #ask(): Promise<void> {
    try {
      await this.#bounded(this.#probe, [this.#options.probeKey], []);
      this.#stopProbe = undefined;
      this.#up = true;
      this.#tell('store.returned', undefined);
      for (const user of this.#users) user.returned();
    } catch {
      this.#stopProbe = undefined;
      this.#probeLater();
      if ([...this.#users].some((user) => user.wanting())) this.wanted();
    }
  }

  #lose(reason: string): void {
    if (!this.#up) return;
    this.#up = false;
    this.#lostFor = reason;
    this.#probeLater();
    this.#tell('store.lost', reason);
    for (const user of this.#users) user.lost(reason);
  }

  /** Not all processes at the same time. */
  #probeLater(): void {
    this.#probeAtMs = this.runtime.clock.now() + this.#options.probeMs * (0.5 + this.runtime.random() / 2);
  }

  #tell(type: StoreChange['type'], reason: string | undefined): void {
    const change = { type, reason, atMs: this.runtime.clock.now() };
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch {
        // A listener that throws must not keep the others from going on.
      }
    }
  }
}

/** Only words of the protocol and of the system are passed on: what else a client writes may hold addresses and secrets. */
export function reasonOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  const said = typeof code === 'string' ? code : typeof message === 'string' ? (message.split(' ')[0] ?? '') : '';
  return /^[A-Z]{4,20}$/.test(said) ? said : 'CONNECTION';
}
