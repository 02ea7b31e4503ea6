import type { Subscriber } from 'rxjs';
import type { HeapNode } from '../../core/Heap.ts';
import type { QuotaRequest } from '../../core/ports.ts';
import type { SharedQuotaGrant } from '../../limits/LimitStore.ts';
import type { LayerCost } from '../../limits/QuotaLayer.ts';
import type { RoutePlan } from './QuotaLayers.ts';
import type { WaitBound } from './refusals.ts';

/** Someone who waits for a shared quota. */
export interface QuotaWaiter {
  readonly subscriber: Subscriber<SharedQuotaGrant>;
  readonly request: QuotaRequest;
  readonly cost: LayerCost;
  /** As it was when it was last asked about. */
  plan: RoutePlan;
  readonly enqueuedAtMs: number;
  readonly bound: WaitBound;
  readonly expiresAtMs: number;
  /** Its name in the store; another one each time it gets in line. */
  id: string;
  /** `asked`: for a place in line; `waiting`: has one; `due`: has its grant, which begins at its turn; `over`. */
  state: 'asked' | 'waiting' | 'due' | 'over';
  /** When it is its turn, as far as is known; and when to ask about it. */
  turnAtMs: number;
  lookAtMs: number;
  /** Once it is due. */
  reply: readonly number[];
  told: boolean;
  place: HeapNode<QuotaWaiter> | undefined;
}

export function newWaiter(
  asks: Pick<QuotaWaiter, 'subscriber' | 'request' | 'plan' | 'cost' | 'bound'>,
  nowMs: number,
): QuotaWaiter {
  return {
    ...asks,
    enqueuedAtMs: nowMs,
    expiresAtMs: nowMs + asks.bound.limitMs,
    id: '',
    state: 'asked',
    turnAtMs: Infinity,
    lookAtMs: Infinity,
    reply: [],
    told: false,
    place: undefined,
  };
}
