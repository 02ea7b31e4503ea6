import type { Admission } from '../../limits/Admission.ts';
import type { AdmissionTenant } from '../../limits/AdmissionTenant.ts';
import type { LimitStore } from '../../limits/LimitStore.ts';
import { Ceiling } from './Ceiling.ts';
import { storeName } from './storeName.ts';

const FIRST_SWEEP = 1024;

/** The ceilings of all calls, of each priority and of each tenant, over all processes. */
export class SharedCeilings {
  readonly #machine: Admission;
  readonly #make: (name: string) => Ceiling;
  readonly #all: Ceiling;
  #levels = new Map<string, Ceiling>();
  readonly #tenants = new Map<string, Ceiling>();
  /** Tenants for which something has changed since the store was told. */
  readonly #touched = new Set<string>();
  #sweepAt = FIRST_SWEEP;

  constructor(machine: Admission, store: LimitStore, changed: () => void) {
    const make = (name: string): Ceiling => new Ceiling(name, store, changed);
    this.#machine = machine;
    this.#make = make;
    this.#all = this.#make('calls');
    this.reload();
  }

  /** Takes the rules that the machine has by now. */
  reload(): void {
    const { maxInFlight, levels } = this.#machine.rules;
    this.#all.reload(maxInFlight);
    const before = this.#levels;
    this.#levels = new Map(
      levels.map(({ name, maxInFlight: limit }) => {
        const ceiling = before.get(name) ?? this.#make(`priority.${storeName(name)}`);
        before.delete(name);
        ceiling.reload(limit);
        return [name, ceiling];
      }),
    );
    for (const gone of before.values()) gone.close();
    this.#machine.lent = this.#all.have;
    for (const [name, ceiling] of this.#levels) this.#machine.levels.lent.set(name, ceiling.have);
    for (const [name, ceiling] of this.#tenants) {
      ceiling.reload(this.#machine.tenants.find(name)?.rules.maxInFlight ?? Infinity);
    }
    // Those too that have come while there was no ceiling for them.
    for (const name of Object.keys(this.#machine.tenants.snapshot())) {
      this.enter(this.#machine.tenants.find(name) as AdmissionTenant);
    }
  }

  /** One of the tenant has come: the machine must not grant it anything before it knows what it may have. */
  enter(tenant: AdmissionTenant): void {
    this.#touched.add(tenant.name);
    const ceiling = this.#tenants.get(tenant.name) ?? this.#ceilingOf(tenant);
    if (ceiling) tenant.lent = ceiling.have;
  }

  /** Something of the tenant has gone. */
  touch(tenant: string): void {
    this.#touched.add(tenant);
  }

  /** Why a call of this priority and tenant cannot be let go by anybody now. */
  refusing(level: number, tenant: string): string | undefined {
    const { name = '' } = this.#machine.rules.levels[level] ?? {};
    return this.#all.refusing ?? this.#levels.get(name)?.refusing ?? this.#tenants.get(tenant)?.refusing;
  }

  /**
   * Tells the store what is taken and wanted, and the machine what it may have. `waitingAt`: of each priority. Whether it may
   * have more than before.
   */
  update(waitingAt: readonly number[]): boolean {
    const machine = this.#machine;
    const { lent } = machine.levels;
    this.#all.use(machine.inFlight, machine.waiting);
    let more = this.#all.have > machine.lent;
    machine.lent = this.#all.have;
    machine.rules.levels.forEach(({ name }, level) => {
      const ceiling = this.#levels.get(name);
      if (ceiling === undefined) return;
      ceiling.use(machine.levels.inFlight[level] ?? 0, waitingAt[level] ?? 0);
      more ||= ceiling.have > (lent.get(name) ?? 0);
      lent.set(name, ceiling.have);
    });
    const touched = [...this.#touched];
    this.#touched.clear();
    for (const name of touched) more = this.#updateTenant(name) || more;
    return more;
  }

  /** The store has lent more, or less. */
  lent(): void {
    for (const name of this.#tenants.keys()) this.#touched.add(name);
  }

  close(): void {
    for (const ceiling of [this.#all, ...this.#levels.values(), ...this.#tenants.values()]) ceiling.close();
  }

  #updateTenant(name: string): boolean {
    const tenant = this.#machine.tenants.find(name);
    if (tenant === undefined) {
      this.#tenants.get(name)?.close();
      this.#tenants.delete(name);
      return false;
    }
    const ceiling = this.#tenants.get(name) ?? this.#ceilingOf(tenant);
    if (ceiling === undefined) return false;
    ceiling.use(tenant.inFlight, tenant.waiting);
    const before = tenant.lent;
    tenant.lent = ceiling.have;
    if (tenant.lent <= before) return false;
    this.#machine.tenants.unpark(tenant);
    return true;
  }

  #ceilingOf({ name, rules }: AdmissionTenant): Ceiling | undefined {
    // Stryker disable next-line ConditionalExpression: one that limits nothing would only be kept
    if (rules.maxInFlight === Infinity) return undefined;
    if (this.#tenants.size >= this.#sweepAt) this.#sweep();
    const ceiling = this.#make(`tenant.${storeName(name)}`);
    ceiling.reload(rules.maxInFlight);
    this.#tenants.set(name, ceiling);
    return ceiling;
  }

  #sweep(): void {
    for (const [name, ceiling] of this.#tenants) {
      const { inFlight = 0, waiting = 0 } = this.#machine.tenants.find(name) ?? {};
      if (inFlight > 0 || waiting > 0) continue;
      ceiling.close();
      this.#tenants.delete(name);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#tenants.size);
  }
}
