import type { OpReply, RouteOp } from './QuotaCall.ts';
import type { QuotaCalls } from './QuotaCalls.ts';
import type { QuotaDecider } from './QuotaDecider.ts';
import type { RoutePlan } from './QuotaLayers.ts';
import type { GrantDesk } from './SharedGrant.ts';
import type { SpareSlice } from './SpareSlice.ts';

/** What is not urgent is told within this time. */
const LATER_MS = 20;

/** Tells whoever decides what became of what it granted. */
export class QuotaTelling {
  readonly #calls: QuotaCalls;
  readonly #decider: QuotaDecider;
  readonly #nowMs: () => number;
  readonly #watch: () => void;
  #laterAtMs = Infinity;

  constructor(calls: QuotaCalls, decider: QuotaDecider, nowMs: () => number, watch: () => void) {
    this.#calls = calls;
    this.#decider = decider;
    this.#nowMs = nowMs;
    this.#watch = watch;
  }

  /** When something has to be sent that waits for company; `Infinity` if nothing does. */
  get laterAtMs(): number {
    return this.#laterAtMs;
  }

  /** All that waited goes now. */
  sent(): void {
    this.#laterAtMs = Infinity;
  }

  /** For the next call. */
  tell(plan: RoutePlan, op: RouteOp, hear?: (reply: OpReply) => void): void {
    if (this.#decider.refusing === undefined) this.#calls.add(plan, op, hear);
  }

  /** It goes with the next call, and soon in any case. */
  tellLater(plan: RoutePlan, op: RouteOp): void {
    this.tell(plan, op);
    this.#laterAtMs = Math.min(this.#laterAtMs, this.#nowMs() + LATER_MS);
    this.#watch();
  }

  /** Gives back what was taken ahead of need. */
  endSlice(slice: SpareSlice): void {
    const back = slice.end();
    if (back) this.tellLater(back.plan, back.op);
  }

  /** For grants of whoever decides now. */
  grantDesk(plan: RoutePlan, slice: SpareSlice): GrantDesk {
    const { way } = this.#decider;
    return {
      nowMs: this.#nowMs,
      tell: (op, soon, hear) => {
        // Who granted it is gone; only what the provider asks for still means something.
        if (this.#decider.way !== way && op[0] !== 'hint') return;
        if (op[0] === 'hint' || op[0] === 'rejected') this.endSlice(slice);
        if (!soon) {
          this.tellLater(plan, op);
          return;
        }
        this.tell(plan, op, hear);
        this.#calls.send();
      },
    };
  }
}
