import type { Grant, QuotaRequest } from '../../core/ports.ts';
import type { AdmissionTicket } from '../../limits/AdmissionPool.ts';
import type { NamedLayer, SharedRoute } from '../../limits/LimitStore.ts';
import type { LayerCost } from '../../limits/QuotaLayer.ts';
import { isLimited } from './localPart.ts';

/** What the store has granted, until this process has given it to somebody. */
export interface Credit {
  readonly grant: Grant;
  /** What was asked for. */
  readonly cost: LayerCost;
  /** Whom it was asked for. */
  readonly ticket: AdmissionTicket;
  /** Hears of pauses from now on. */
  onCooldown: QuotaRequest['onCooldown'];
}

/** One route through the store's quotas, and what it has brought. */
export class SharedLine {
  readonly key: string;
  /** Whether it limits anything. */
  readonly decides: boolean;
  readonly countsTokens: boolean;
  /** Whether a tenant has it for itself. */
  readonly ofTenant: boolean;
  readonly route: SharedRoute;
  /** Places that this process has in it. */
  places = 0;
  readonly #credits: Credit[] = [];
  #busyUntilMs = -Infinity;

  constructor(layers: readonly NamedLayer[], route: SharedRoute) {
    this.key = keyOf(layers);
    this.decides = layers.some(isLimited);
    this.countsTokens = layers.some(({ tokensPerMinute }) => tokensPerMinute !== undefined);
    this.ofTenant = layers.some(({ name }) => name.startsWith('tenant:'));
    this.route = route;
  }

  get idle(): boolean {
    return this.places === 0 && !this.brought;
  }

  /** Whether it has brought something that nobody has taken yet. */
  get brought(): boolean {
    return this.#credits.length > 0;
  }

  /** What one takes of it. Where it does not count tokens, all are alike. */
  costOf({ requests, tokens }: LayerCost): LayerCost {
    return { requests, tokens: this.countsTokens ? tokens : 0 };
  }

  bring(credit: Credit): void {
    this.#credits.push(credit);
  }

  covers(cost: LayerCost): boolean {
    return this.#smallest(this.costOf(cost)) !== undefined;
  }

  /** The smallest one that covers the cost; what is left of its tokens goes back. */
  take(cost: LayerCost): Credit | undefined {
    const needed = this.costOf(cost);
    const credit = this.#smallest(needed);
    if (credit === undefined) return undefined;
    this.#credits.splice(this.#credits.indexOf(credit), 1);
    // A guess above what can pass at all was clamped, so that less was taken than was asked for.
    const spare = credit.grant.reservedTokens - needed.tokens;
    if (spare > 0 && this.countsTokens) credit.grant.shrink?.(spare);
    return credit;
  }

  /** Those that nobody took. */
  leftOver(): readonly Credit[] {
    return this.#credits.splice(0);
  }

  /** A newcomer had to wait for so long. */
  waits(nowMs: number, waitMs: number | undefined): void {
    this.#busyUntilMs = nowMs + (waitMs ?? 0);
  }

  /** How long one who comes now is likely to wait. */
  expectedMs(nowMs: number): number {
    return Math.max(0, this.#busyUntilMs - nowMs);
  }

  #smallest({ requests, tokens }: LayerCost): Credit | undefined {
    let found: Credit | undefined;
    for (const credit of this.#credits) {
      if (credit.cost.requests < requests || credit.cost.tokens < tokens) continue;
      if (found === undefined || credit.cost.tokens < found.cost.tokens) found = credit;
    }
    return found;
  }
}

/** Lines of one key are one: rates may differ. */
export function keyOf(layers: readonly NamedLayer[]): string {
  return JSON.stringify(
    layers.map(({ name, requestsPerMinute, tokensPerMinute }) => {
      return [name, requestsPerMinute !== undefined, tokensPerMinute !== undefined];
    }),
  );
}
