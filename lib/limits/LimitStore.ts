import type { BreakerPort, Grant, LanesPort, QuotaPort } from '../core/ports.ts';
import type { CircuitBreakerOptions } from './breakerRules.ts';
import type { ConversationLanesOptions } from './ConversationLanes.ts';
import type { LayerOptions } from './QuotaLayer.ts';
import type { QuotaRules } from './QuotaOptions.ts';

/** What a process does while the store is lost: it goes on with its share of each limit, or refuses. */
export type StoreLoss = 'share' | 'refuse';

/** What happened to the store. Holds no address, user, password or key. */
export interface StoreChange {
  readonly type: 'store.lost' | 'store.returned';
  /** Why it was lost: `TIMEOUT`, a code of the connection such as `ECONNREFUSED`, or of the server such as `READONLY`. */
  readonly reason: string | undefined;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

/** Limits that processes share, by name: what one process names, others find under the same name. */
export interface LimitStore {
  /** Longest time that one decision of the store takes, in milliseconds: after that it counts as lost. */
  readonly answerMs: number;
  /** Quotas whose routes share layers, with one line for all of them. */
  quotas(name: string, rules: QuotaRules): SharedQuotas;
  lanes(name: string, options?: ConversationLanesOptions): SharedLanes;
  breaker(name: string, options?: CircuitBreakerOptions): SharedBreaker;
  /** `limit`: whole, at least 1. */
  slots(name: string, limit: number): SharedSlots;
  spend(name: string): SharedSpend;
  /** Takes another rule, for everything that is shared through this store. */
  setLoss(loss: StoreLoss): void;
  /** Hears when the store is lost and when it is back. Returns what ends that. */
  onChange(listener: (change: StoreChange) => void): () => void;
}

/** What others share of a quota as well. */
export interface NamedLayer extends LayerOptions {
  readonly name: string;
}

export interface RouteOptions extends Pick<QuotaRules, 'settle' | 'refundOn'> {
  /** The layer that the provider's reports are about. Default: the last one that is not named `tenant:` and something. */
  readonly reportsTo?: string | undefined;
}

export interface SharedQuotas {
  /**
   * The way through these layers. Layers of equal name are one bucket for all routes, and the same list of names is the same
   * route; rates that are given anew hold from then on. A layer without rates limits nothing, but keeps routes apart. A pause
   * that the provider asks for holds all routes that differ in layers named `tenant:` and something only. Options that are not
   * given are those of the quotas.
   */
  route(layers: readonly NamedLayer[], options?: RouteOptions): SharedRoute;
  /** Takes other rules, for what comes. */
  reload(rules: QuotaRules): void;
}

export interface SharedQuotaGrant extends Grant {
  shrink(tokens: number): void;
}

/** Its grants are {@link SharedQuotaGrant}s, or what they take beyond the need of who gets them stays taken. */
export type SharedRoute = QuotaPort;

export interface SharedLanes extends LanesPort {
  /** Takes other bounds, for turns to come. */
  reload(options: ConversationLanesOptions): void;
}

export interface SharedBreaker extends BreakerPort {
  /** Takes other options, and goes on from where it is. */
  reload(options: CircuitBreakerOptions): void;
}

/** Places in a ceiling that are leased to this process, in small lots, and lent on where others want them. */
export interface SharedSlots {
  /** How many this process may have taken now. Falls while the store is lost to the process's share. */
  readonly have: number;
  /** Why none can be had while the store is lost and this process knows of no share, or may not take one. Else undefined. */
  readonly refusing: string | undefined;
  /** Called when `have` or `refusing` has changed, but for what changes within `use`. One listener. */
  onChange: (() => void) | undefined;
  /**
   * How many are taken, and how many more are wanted now: at once more are asked for, and what is not wanted is given back
   * after a short while. Where others wait, places that come free are given back at once: look at `have` anew after this.
   */
  use(taken: number, wanted: number): void;
  /** Takes another limit. Who has more than is allowed now takes none until enough have come free. */
  reload(limit: number): void;
  /** Gives everything back. */
  close(): void;
}

/** What tenants have spent on a day, over all processes. Days are counted in UTC from the epoch. */
export interface SharedSpend {
  /** Adds what this process has spent. It is told soon, together with what else there is, and after a loss once it is over. */
  add(day: number, tenant: string, cost: number): void;
  /** What the other processes have spent, as last heard; `undefined` where nothing was heard yet. Asks anew now and then. */
  others(day: number, tenant: string): number | undefined;
  /** Whether `others` was heard of in the last few seconds, or cannot be now. */
  fresh(day: number, tenant: string): boolean;
  /** Calls `heard` once `others` is known, or will not be for now because the store is lost. Returns what ends that. */
  ask(day: number, tenant: string, heard: () => void): () => void;
  /** Tells what has not been told. */
  close(): void;
}
