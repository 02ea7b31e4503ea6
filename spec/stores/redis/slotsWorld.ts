import { startTimer } from '../../../lib/core/runtime.ts';
import { LeasedSlots } from '../../../lib/stores/redis/LeasedSlots.ts';
import type { LeasedSlotsOptions } from '../../../lib/stores/redis/LeasedSlots.ts';
import { SharedPlaces } from '../../../lib/stores/redis/SharedPlaces.ts';
import type { SlotsCall, SlotsRules } from '../../../lib/stores/redis/SlotsCall.ts';
import { StoreLink } from '../../../lib/stores/redis/StoreLink.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';

const TRIP_MS = 1;

/** A server in virtual time that decides as `slots.lua` does, and processes that run jobs in its places. */
export class SlotsWorld {
  readonly runtime: VirtualRuntime = virtualRuntime();
  readonly processes: WorkingProcess[] = [];
  calls = 0;
  mostAtOnce = 0;
  #places: SharedPlaces | undefined;
  #down = false;

  add(limit: number, options: Partial<LeasedSlotsOptions & { loss: 'share' | 'refuse' }> = {}): WorkingProcess {
    const process = new WorkingProcess(this, limit, options);
    this.processes.push(process);
    return process;
  }

  get inFlight(): number {
    return this.processes.reduce((sum, { taken }) => sum + taken, 0);
  }

  counted(): void {
    this.mostAtOnce = Math.max(this.mostAtOnce, this.inFlight);
  }

  /** Nothing is answered any more. */
  lose(): void {
    this.#down = true;
  }

  comeBack(): void {
    this.#down = false;
  }

  forgetAll(): void {
    this.#places = undefined;
  }

  async answer(args: readonly string[]): Promise<unknown> {
    await this.#trip();
    if (this.#down) return new Promise(() => {});
    const nowUs = Math.floor(this.runtime.clock.now() * 1000) + 1_000_000;
    const [rules, call] = args.map((arg) => JSON.parse(arg) as unknown) as [SlotsRules, SlotsCall];
    // The probe has no arguments.
    if (args.length === 0) return 'OK';
    this.calls++;
    this.#places ??= new SharedPlaces(rules, nowUs, call.known);
    const reply = this.#places.call(nowUs, call);
    await this.#trip();
    return reply;
  }

  #trip(): Promise<void> {
    return new Promise((resolve) => void startTimer(this.runtime, TRIP_MS, resolve));
  }
}

export class WorkingProcess {
  readonly slots: LeasedSlots;
  taken = 0;
  waiting: number[] = [];
  started = 0;
  readonly #world: SlotsWorld;
  #dead = false;

  constructor(
    world: SlotsWorld,
    limit: number,
    { loss = 'share', ...options }: Partial<LeasedSlotsOptions & { loss: 'share' | 'refuse' }>,
  ) {
    this.#world = world;
    const answer = (_sha: string, _keys: readonly string[], args: readonly string[]): Promise<unknown> =>
      this.#dead ? new Promise(() => {}) : world.answer(args);
    const link = new StoreLink(
      { evalsha: answer, eval: answer },
      { commandTimeoutMs: 50, probeMs: 100, probeKey: 'p', onStoreLoss: loss },
      world.runtime,
    );
    this.slots = new LeasedSlots(limit, link, {
      name: 'n',
      member: `m${world.processes.length}`,
      processes: undefined,
      leaseMs: 900,
      sliceMs: 100,
      othersMs: 100,
      memberMs: 60_000,
      keepMs: 60_000,
      ...options,
    });
    this.slots.onChange = () => this.serve();
  }

  /** Jobs that take so long each. */
  want(count: number, eachMs: number): void {
    for (let i = 0; i < count; i++) {
      this.waiting.push(eachMs);
      this.serve();
    }
  }

  cancelWaiting(): void {
    this.waiting = [];
    this.serve();
  }

  /** It ends without a word, and with it what it sent. */
  kill(): void {
    this.#dead = true;
    this.taken = 0;
    this.waiting = [];
    this.slots.onChange = undefined;
  }

  serve(): void {
    if (this.#dead) return;
    this.slots.use(this.taken, this.waiting.length);
    while (this.taken < this.slots.have && this.waiting.length > 0) {
      this.taken++;
      this.started++;
      const ms = this.waiting.shift() ?? 0;
      startTimer(this.#world.runtime, ms, () => {
        if (this.#dead) return;
        this.taken--;
        this.serve();
      });
      this.slots.use(this.taken, this.waiting.length);
    }
    this.#world.counted();
  }
}
