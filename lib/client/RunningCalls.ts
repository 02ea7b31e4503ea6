import type { CallState } from '../core/CallScopeChanges.ts';
import { SluiceError } from '../core/errors.ts';
import type { End } from '../operators/scoped.ts';
import { startTimer } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';

/** The calls that run or wait, and their end. */
export class RunningCalls {
  readonly #runtime: Runtime;
  /** How to end each of them. */
  readonly #calls = new Map<CallState, End>();
  readonly #tenants = new Map<string, number>();
  readonly #drained: (() => void)[] = [];
  #closing: Promise<void> | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get size(): number {
    return this.#calls.size;
  }

  get closed(): boolean {
    return this.#closing !== undefined;
  }

  /** By name; calls without a tenant are not in it. */
  byTenant(): Record<string, number> {
    return Object.fromEntries(this.#tenants);
  }

  has(call: CallState): boolean {
    return this.#calls.has(call);
  }

  add(call: CallState, tenant: string | undefined, end: End): void {
    this.#calls.set(call, end);
    if (tenant !== undefined) this.#tenants.set(tenant, (this.#tenants.get(tenant) ?? 0) + 1);
  }

  remove(call: CallState, tenant: string | undefined): void {
    if (!this.#calls.delete(call)) return;
    if (tenant !== undefined) {
      const left = (this.#tenants.get(tenant) ?? 0) - 1;
      if (left > 0) this.#tenants.set(tenant, left);
      else this.#tenants.delete(tenant);
    }
    if (this.#calls.size === 0) for (const drained of this.#drained.splice(0)) drained();
  }

  /** Resolves when no call runs any more, at the latest after `drainMs`. */
  close(drainMs: number): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      if (this.#calls.size === 0) return resolve();
      const stop = startTimer(this.#runtime, drainMs, () => this.#cut());
      this.#drained.push(() => {
        stop();
        resolve();
      });
    });
    return this.#closing;
  }

  #cut(): void {
    for (const end of [...this.#calls.values()]) end.error(closedError());
  }
}

export function closedError(): SluiceError {
  return new SluiceError('closed', 'this client has been closed', { while: 'entry' });
}
