import type { DeploymentSnapshot } from '../../core/ports.ts';
import type { Clock } from '../../core/runtime.ts';
import type { AdmissionOptions } from '../../limits/AdmissionOptions.ts';
import type { AdmissionTarget, TargetGate } from '../../limits/AdmissionTarget.ts';
import type { LimitStore, SharedBreaker, SharedQuotas } from '../../limits/LimitStore.ts';
import type { LayerCost } from '../../limits/QuotaLayer.ts';
import { Ceiling } from './Ceiling.ts';
import { deploymentPart, isLimited, layersAt } from './localPart.ts';
import type { DeploymentPart } from './localPart.ts';
import { keyOf, SharedLine } from './SharedLine.ts';
import { storeName } from './storeName.ts';

export interface SharedParts {
  readonly store: LimitStore;
  readonly quotas: SharedQuotas;
  readonly clock: Pick<Clock, 'now'>;
  /** What this process may have in flight has changed. */
  readonly changed: () => void;
}

/** So many lines of tenants are kept before the idle ones are forgotten. */
const FIRST_SWEEP = 1024;

/** One deployment as all processes share it: its breaker, its ceiling, and the ways through its quota. */
export class SharedTarget implements TargetGate {
  readonly target: AdmissionTarget;
  readonly model: string;
  readonly breaker: SharedBreaker;
  /** Where its limit stands; one that finds its size is each process's own. */
  readonly ceiling: Ceiling;
  /** Waiters that have a place in one of its lines. */
  asking = 0;
  readonly #parts: SharedParts;
  #options: AdmissionOptions;
  #part: DeploymentPart;
  /** By tenant; those without a layer of their own go by the empty name. */
  #lines = new Map<string, SharedLine>();
  #sweepAt = FIRST_SWEEP;
  #restUntilMs = -Infinity;

  constructor(target: AdmissionTarget, model: string, options: AdmissionOptions, parts: SharedParts) {
    const name = storeName(target.name);
    this.target = target;
    this.model = model;
    this.#parts = parts;
    this.#options = options;
    this.#part = deploymentPart(options, model, target.name) as DeploymentPart;
    this.breaker = parts.store.breaker(name, this.#part.deployment.breaker ?? this.#part.model.breaker);
    this.ceiling = new Ceiling(`deployment.${name}`, parts.store, parts.changed);
    this.ceiling.reload(this.#limit);
  }

  /** Takes other options. Lines whose layers have other names, or count something else, are begun anew. */
  reload(options: AdmissionOptions): void {
    const part = deploymentPart(options, this.model, this.target.name);
    if (part === undefined) return;
    this.#options = options;
    this.#part = part;
    this.breaker.reload(part.deployment.breaker ?? part.model.breaker ?? {});
    this.ceiling.reload(this.#limit);
    const before = this.#lines;
    this.#lines = new Map();
    for (const [tenant, line] of before) {
      if (this.#lineThrough(tenant).key === line.key) this.#lines.set(tenant, line);
    }
  }

  get closedMs(): number {
    const { state, retryAfterMs } = this.breaker.snapshot();
    const restMs = this.#restUntilMs - this.#parts.clock.now();
    return Math.ceil(Math.max(0, restMs, state === 'open' ? retryAfterMs : 0));
  }

  get places(): number {
    return this.ceiling.have;
  }

  /** How many more may ask for a place now. */
  get room(): number {
    return Math.min(this.target.limit, this.places) - this.target.inFlight - this.asking;
  }

  decides(tenant: string): boolean {
    return this.lineOf(tenant).decides;
  }

  lets(tenant: string, cost: LayerCost): boolean {
    return this.lineOf(tenant).covers(cost);
  }

  waitsAlone(tenant: string): boolean {
    const line = this.lineOf(tenant);
    return line.ofTenant && !line.brought;
  }

  /** How much of it is in use, as far as this process knows. */
  load(tenant: string): number {
    const { layers } = this.lineOf(tenant).route.snapshot();
    const used = layers.flatMap(({ requests, tokens }) =>
      [requests, tokens].map((unit) => unit && 1 - unit.level / unit.burst),
    );
    return Math.max(this.target.load(this.#parts.clock.now()), ...used.map((share) => share ?? 0));
  }

  /** Leaves it to others for a while. */
  rest(forMs: number): void {
    this.#restUntilMs = this.#parts.clock.now() + forMs;
  }

  lineOf(tenant: string): SharedLine {
    const known = this.#lines.get(tenant);
    if (known) return known;
    if (this.#lines.size >= this.#sweepAt) this.#sweep();
    const line = this.#lineThrough(tenant);
    this.#lines.set(tenant, line);
    return line;
  }

  /** What is to be shown in place of what this process knows by itself. */
  shown(): Partial<DeploymentSnapshot> {
    const line = this.lineOf('');
    const breaker = this.breaker.snapshot();
    if (!line.decides) return { breaker };
    const { cooldownMs, layers } = line.route.snapshot();
    return { breaker, cooldownMs, layers: layers.filter(({ requests, tokens }) => requests ?? tokens) };
  }

  /** `Infinity`: none, or one that finds its size. */
  get #limit(): number {
    return (this.#part.deployment.concurrency ?? this.#part.model.concurrency)?.limit ?? Infinity;
  }

  #lineThrough(tenant: string): SharedLine {
    const layers = layersAt(this.#options, this.model, this.#part, tenant);
    const open = tenant === '' ? undefined : this.lineOf('');
    // Most tenants have no layer of their own, and none needs a line of its own then.
    if (open && open.key === keyOf(layers)) return open;
    const reportsTo = layers.filter((layer) => isLimited(layer) && !layer.name.startsWith('tenant:')).at(-1)?.name;
    const { settle, refundOn } = this.target.rules;
    return new SharedLine(layers, this.#parts.quotas.route(layers, { reportsTo, settle, refundOn }));
  }

  #sweep(): void {
    for (const [tenant, line] of this.#lines) if (tenant !== '' && line.idle) this.#lines.delete(tenant);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#lines.size);
  }
}
