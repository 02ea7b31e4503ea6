import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';
import { checkedTenantRules, own } from './AdmissionOptions.ts';
import type { CheckedTenantRules, TenantAdmissionOptions } from './AdmissionOptions.ts';
import { QuotaLayer } from './QuotaLayer.ts';
import type { LayerCost } from './QuotaLayer.ts';
import type { QuotaRoute } from './QuotaRoute.ts';

/** Where a tenant may be parked. */
export interface Parking {
  unpark(tenant: string): void;
}

/** What is known of a tenant, over all models. */
export interface AdmissionTenant {
  readonly name: string;
  rules: CheckedTenantRules;
  layer: QuotaLayer | undefined;
  /** Ways through with its layer, by the deployment. */
  routes: WeakMap<object, QuotaRoute>;
  readonly parkedIn: Set<Parking>;
  /** What this process may have of the ceiling. */
  lent: number;
  inFlight: number;
  /** Grants that have not ended, whether in flight or not. */
  open: number;
  waiting: number;
  /** Start tag among tenants of all models, see {@link AdmissionTenants.charge}. */
  tag: number;
  wake: HeapNode<Wake> | undefined;
}

interface Wake {
  readonly tenant: AdmissionTenant;
  readonly atMs: number;
}

type TenantsOptions = Readonly<Record<string, TenantAdmissionOptions>>;

const FIRST_SWEEP = 1024;

/**
 * The tenants that there is something to remember of: what each has in flight, its own quota, and who is owed a slot.
 *
 * Those who may not go for a reason of their own are parked, so that nobody looks at them again before something has
 * changed for them.
 */
export class AdmissionTenants {
  #options: TenantsOptions | undefined;
  readonly #tenants = new Map<string, AdmissionTenant>();
  // Stryker disable next-line EqualityOperator: those of one time are woken together
  readonly #wakes = new Heap<Wake>((a, b) => a.atMs < b.atMs);
  /** Those that wait while they have less than their reserve. */
  readonly #owed = new Set<AdmissionTenant>();
  #owedSlots = 0;
  /** As in `FairQueue`. */
  #present = 0;
  #underWay = 0;
  #weights = 0;
  #sweepAt = FIRST_SWEEP;

  /** @throws SluiceError `invalid_option` */
  constructor(options: TenantsOptions | undefined, nowMs: number) {
    this.#options = options;
    // Made to be thrown away: a wrong option must be found now, not at the first call of that tenant.
    for (const [name, rules] of Object.entries(options ?? {})) {
      new QuotaLayer(`tenants.${name}`, checkedTenantRules(name, rules).rates, 0, nowMs);
    }
  }

  get size(): number {
    return this.#tenants.size;
  }

  /** Slots that those who wait could claim at once from their reserves. */
  get owedSlots(): number {
    return this.#owedSlots;
  }

  /** Who is owed a slot. One who was given one stands last. */
  get owed(): Iterable<AdmissionTenant> {
    return this.#owed;
  }

  get nextWakeAtMs(): number {
    return this.#wakes.peek()?.atMs ?? Infinity;
  }

  /** @throws SluiceError `invalid_option` for a name that is empty */
  at(name: string | undefined, arrivalMarginMs: number, nowMs: number): AdmissionTenant {
    const known = this.#tenants.get(name ?? '');
    if (known) return known;
    if (this.#tenants.size >= this.#sweepAt) this.#sweep(nowMs);
    const tenant: AdmissionTenant = {
      name: name ?? '',
      ...this.#rulesOf(name ?? '', arrivalMarginMs, nowMs),
      parkedIn: new Set(),
      lent: Infinity,
      inFlight: 0,
      open: 0,
      waiting: 0,
      tag: this.#present,
      wake: undefined,
    };
    this.#tenants.set(tenant.name, tenant);
    return tenant;
  }

  /**
   * Takes other options, for everyone at once: rates go on from where they are, and nobody is parked for a limit that is no
   * longer there.
   */
  reload(options: TenantsOptions | undefined, arrivalMarginMs: number, nowMs: number): void {
    this.#options = options;
    this.#weights = this.#owedSlots = 0;
    for (const tenant of this.#tenants.values()) {
      this.unpark(tenant);
      const { layer } = tenant;
      Object.assign(tenant, this.#rulesOf(tenant.name, arrivalMarginMs, nowMs));
      if (layer) tenant.layer?.succeed(nowMs, layer);
      if (tenant.waiting > 0) this.#weights += tenant.rules.weight;
      const owed = owedTo(tenant);
      this.#owedSlots += owed;
      if (owed > 0) this.#owed.add(tenant);
      else this.#owed.delete(tenant);
    }
  }

  find(name: string | undefined): AdmissionTenant | undefined {
    return this.#tenants.get(name ?? '');
  }

  /** Milliseconds until nothing of its own holds the tenant back; `Infinity`: until one of its own has ended. */
  blockedMs(tenant: AdmissionTenant, cost: LayerCost, nowMs: number): number {
    if (tenant.inFlight >= Math.min(tenant.rules.maxInFlight, tenant.lent)) return Infinity;
    return tenant.layer?.waitMs(nowMs, clampTo(tenant.layer, cost)) ?? 0;
  }

  park(tenant: AdmissionTenant, where: Parking, untilMs: number): void {
    tenant.parkedIn.add(where);
    // Stryker disable next-line ConditionalExpression: it would only be remembered
    if (untilMs === Infinity) return;
    // Stryker disable next-line EqualityOperator: the same time
    if (tenant.wake && tenant.wake.item.atMs <= untilMs) return;
    if (tenant.wake) this.#wakes.remove(tenant.wake);
    tenant.wake = this.#wakes.push({ tenant, atMs: untilMs });
  }

  unpark(tenant: AdmissionTenant): void {
    if (tenant.wake) this.#wakes.remove(tenant.wake);
    tenant.wake = undefined;
    // Stryker disable next-line ConditionalExpression: to clear a set makes another table for it
    if (tenant.parkedIn.size === 0) return;
    for (const where of tenant.parkedIn) where.unpark(tenant.name);
    tenant.parkedIn.clear();
  }

  wake(nowMs: number): void {
    for (let first = this.#wakes.peek(); first && first.atMs <= nowMs; first = this.#wakes.peek()) {
      this.unpark(first.tenant);
    }
  }

  /** Changes what a tenant has waiting and in flight. */
  move(tenant: AdmissionTenant, waiting: number, inFlight: number): void {
    if (tenant.waiting === 0 && waiting > 0) {
      tenant.tag = Math.max(tenant.tag, this.#present);
      this.#weights += tenant.rules.weight;
    }
    this.#owedSlots -= owedTo(tenant);
    const waited = tenant.waiting > 0;
    tenant.waiting += waiting;
    if (waited && tenant.waiting === 0) this.#weights -= tenant.rules.weight;
    tenant.inFlight += inFlight;
    const owed = owedTo(tenant);
    this.#owedSlots += owed;
    if (inFlight > 0 || owed === 0) this.#owed.delete(tenant);
    if (owed > 0) this.#owed.add(tenant);
    // Nor is anything to be done for one that nobody waits for.
    if (inFlight < 0 || (waited && tenant.waiting === 0)) this.unpark(tenant);
  }

  /** A grant to one that did not wait, where nobody does: as if it had come to wait and gone. */
  pass(tenant: AdmissionTenant, tokens: number): void {
    const { weight } = tenant.rules;
    tenant.tag = Math.max(tenant.tag, this.#present);
    this.#weights += weight;
    this.charge(tenant, tokens);
    this.#weights -= weight;
    tenant.inFlight++;
  }

  /** A grant of any model to one that waits: decides between models, as `FairQueue` decides within one. */
  charge(tenant: AdmissionTenant, tokens: number): void {
    const work = Math.max(1, tokens);
    this.#present = Math.max(this.#present + this.#underWay, tenant.tag);
    this.#underWay = work / this.#weights;
    tenant.tag = Math.max(tenant.tag + work / tenant.rules.weight, this.#present);
  }

  /** By name, those that have something in flight or waiting. */
  snapshot(): Record<string, { readonly inFlight: number; readonly waiting: number }> {
    const busy = [...this.#tenants.values()].filter(({ inFlight, waiting }) => inFlight > 0 || waiting > 0);
    return Object.fromEntries(busy.map(({ name, inFlight, waiting }) => [name, { inFlight, waiting }]));
  }

  #rulesOf(name: string, arrivalMarginMs: number, nowMs: number): Pick<AdmissionTenant, 'rules' | 'layer' | 'routes'> {
    const rules = checkedTenantRules(name, (name === '' ? undefined : own(this.#options, name)) ?? {});
    const layer = new QuotaLayer('tenant', rules.rates, arrivalMarginMs, nowMs);
    return { rules, layer: layer.requests || layer.tokens ? layer : undefined, routes: new WeakMap() };
  }

  #sweep(nowMs: number): void {
    for (const [name, { inFlight, open, waiting, layer }] of this.#tenants) {
      if (inFlight === 0 && open === 0 && waiting === 0 && (layer?.atRest(nowMs) ?? true)) this.#tenants.delete(name);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#tenants.size);
  }
}

function owedTo({ rules, inFlight, waiting }: AdmissionTenant): number {
  return Math.max(0, Math.min(rules.reservedInFlight - inFlight, waiting));
}

/** A guess above one minute's worth is taken for that. */
export function clampTo(layer: QuotaLayer, cost: LayerCost): LayerCost {
  return {
    requests: Math.min(cost.requests, layer.requests?.perMinute ?? Infinity),
    tokens: Math.min(cost.tokens, layer.tokens?.perMinute ?? Infinity),
  };
}
