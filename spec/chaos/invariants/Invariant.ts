import type { Policy } from '../../../lib/index.ts';
import type { ChaosPlan } from '../plan/ChaosPlan.ts';
import type { CallTrace, Fact, Leftovers } from '../run/Fact.ts';

/** What an invariant may look at besides the facts. */
export interface Stage {
  readonly plan: ChaosPlan;
  /** In force now. */
  readonly policy: Policy;
  readonly calls: readonly CallTrace[];
  nowMs(): number;
}

/** Something that must hold at every moment of every run, whatever the plan. */
export interface Invariant {
  /** As the file, and as a failure prints it. */
  readonly name: string;
  /** In one sentence. */
  readonly promise: string;
  /** Watches one run. `fail` says what was seen instead. */
  watch(stage: Stage, fail: (what: string) => void): Watch;
}

export interface Watch {
  see?(fact: Fact): void;
  /** When all calls have ended and the client is closed. */
  end?(left: Leftovers): void;
}
