import type { SluiceError } from '../../core/errors.ts';
import type { AdmissionRequest } from '../../core/ports.ts';
import type { AdmissionTicket } from '../../limits/AdmissionPool.ts';
import type { LayerCost } from '../../limits/QuotaLayer.ts';
import type { SharedLine } from './SharedLine.ts';
import type { SharedTarget } from './SharedTarget.ts';

/** A place in the line of a route: asked for one waiter, but whoever is next gets what it brings. */
export interface LinePlace {
  readonly line: SharedLine;
  readonly cost: LayerCost;
  waiter: Waiter;
  /** Whether it was asked for somebody else. */
  lentOn: boolean;
  leave(): void;
}

/** One who waits here, and what is asked of the store for it. */
export interface Waiter {
  readonly ticket: AdmissionTicket;
  readonly request: AdmissionRequest;
  /** When its own bound ends its wait. */
  readonly untilMs: number;
  readonly places: Map<SharedTarget, LinePlace>;
  /** Where the store has refused it. */
  readonly refused: Map<SharedTarget, SluiceError>;
  /** Nothing is asked for it before. */
  restUntilMs: number;
  told: boolean;
}
