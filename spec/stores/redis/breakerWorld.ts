import { startTimer } from '../../../lib/core/runtime.ts';
import type { BreakerCall, BreakerRules } from '../../../lib/stores/redis/BreakerCall.ts';
import { SharedBreaker } from '../../../lib/stores/redis/SharedBreaker.ts';
import type { SharedBreakerOptions } from '../../../lib/stores/redis/SharedBreakerOptions.ts';
import { SharedCircuit } from '../../../lib/stores/redis/SharedCircuit.ts';
import { StoreLink } from '../../../lib/stores/redis/StoreLink.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';

const TRIP_MS = 1;

/** A server in virtual time that decides as `breaker.lua` does, and breakers of processes that share one. */
export class BreakerWorld {
  readonly runtime: VirtualRuntime = virtualRuntime();
  calls = 0;
  #circuit: SharedCircuit | undefined;
  #down = false;

  /** The breaker of another process. `kill` ends that without a word. */
  add(options: SharedBreakerOptions = {}): { readonly breaker: SharedBreaker; kill(): void } {
    let dead = false;
    const answer = (_sha: string, _keys: readonly string[], args: readonly string[]): Promise<unknown> =>
      dead ? new Promise(() => {}) : this.#answer(args);
    const link = new StoreLink(
      { evalsha: answer, eval: answer },
      { commandTimeoutMs: 50, probeMs: 100, probeKey: 'p', onStoreLoss: 'refuse' },
      this.runtime,
    );
    const breaker = new SharedBreaker(options, link, { name: 'b', key: 'k', leaseMs: 900, keepMs: 60_000 });
    return { breaker, kill: () => void (dead = true) };
  }

  lose(): void {
    this.#down = true;
  }

  comeBack(): void {
    this.#down = false;
  }

  forgetAll(): void {
    this.#circuit = undefined;
  }

  async #answer(args: readonly string[]): Promise<unknown> {
    await this.#trip();
    if (this.#down) return new Promise(() => {});
    // The probe has no arguments.
    if (args.length === 0) return 'OK';
    const nowUs = Math.floor(this.runtime.clock.now() * 1000) + 1_000_000;
    const [rules, call] = args.map((arg) => JSON.parse(arg) as unknown) as [BreakerRules, BreakerCall];
    this.calls++;
    this.#circuit ??= new SharedCircuit(rules, nowUs, call.last);
    this.#circuit.reload(rules);
    const reply = structuredClone(this.#circuit.call(nowUs, call));
    await this.#trip();
    return reply;
  }

  #trip(): Promise<void> {
    return new Promise((resolve) => void startTimer(this.runtime, TRIP_MS, resolve));
  }
}
