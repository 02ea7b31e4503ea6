import type { Outcome } from '../../lib/core/outcome.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionStep } from '../../lib/limits/AdmissionStep.ts';
import type { AimdDecision } from '../../lib/limits/Aimd.ts';
import { CircuitBreaker } from '../../lib/limits/CircuitBreaker.ts';
import type { BreakerChange, BreakerDecision, BreakerTicket } from '../../lib/limits/CircuitBreaker.ts';
import { ConcurrencyLimit } from '../../lib/limits/ConcurrencyLimit.ts';
import type { Slot } from '../../lib/limits/ConcurrencyLimit.ts';
import { ConversationLanes } from '../../lib/limits/ConversationLanes.ts';
import type { ExpiredTurn } from '../../lib/limits/ConversationLanes.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { FairQueue } from '../../lib/limits/FairQueue.ts';
import type { FairWaiter } from '../../lib/limits/FairQueue.ts';
import type { Turn } from '../../lib/limits/Lane.ts';
import { Quota } from '../../lib/limits/Quota.ts';
import type { QuotaStep } from '../../lib/limits/Quota.ts';
import { checkedQuotaRules } from '../../lib/limits/QuotaOptions.ts';
import { RetryBudget } from '../../lib/limits/RetryBudget.ts';
import { TokenBucket } from '../../lib/limits/TokenBucket.ts';
import { ADMISSION } from './AdmissionWorld.ts';
import { BRITTLE } from './BreakerWorld.ts';
import { BUCKET } from './BucketWorld.ts';
import { BUDGET } from './BudgetWorld.ts';
import { COOLDOWN } from './CooldownWorld.ts';
import { LANES } from './LanesWorld.ts';
import type { ModelClock } from './rules.ts';
import { SLOTS } from './SlotsWorld.ts';

// Each is wrong in one thing that a test by example may miss: a model that does not find it checks nothing.

class DoublyReleasing<T> extends ConcurrencyLimit<T> {
  override release(slot: Slot, outcome: Outcome): AimdDecision | undefined {
    super.release({ ...slot, released: false }, outcome);
    return undefined;
  }
}

class NeverLeaving<T> extends ConcurrencyLimit<T> {
  override leave(): boolean {
    return true;
  }
}

export const doublyReleasing = <T>(clock: ModelClock): ConcurrencyLimit<T> => new DoublyReleasing<T>(SLOTS, clock);
export const neverLeaving = <T>(clock: ModelClock): ConcurrencyLimit<T> => new NeverLeaving<T>(SLOTS, clock);

class ForgetfulLanes extends ConversationLanes {
  override leave(turn: Turn): Turn | undefined {
    super.leave(turn);
    return undefined;
  }
}

class PatientLanes extends ConversationLanes {
  override expire(): ExpiredTurn[] {
    return [];
  }
}

export const forgetfulLanes = (clock: ModelClock): ConversationLanes => new ForgetfulLanes(LANES, clock);
export const patientLanes = (clock: ModelClock): ConversationLanes => new PatientLanes(LANES, clock);

class ForgetfulBreaker extends CircuitBreaker {
  #epoch = 0;

  override join(): BreakerTicket {
    const ticket = super.join();
    this.#epoch = ticket.epoch;
    return ticket;
  }

  override settle(ticket: BreakerTicket, outcome: Outcome): readonly BreakerChange[] {
    if (ticket.settled) return [];
    ticket.settled = true;
    return super.settle({ ...ticket, epoch: this.#epoch, settled: false }, outcome);
  }
}

class LeakyBreaker extends CircuitBreaker {
  override ask(): BreakerDecision {
    const decision = super.ask();
    return decision.kind === 'pass' ? decision : { kind: 'pass', ticket: this.join(), changes: decision.changes };
  }
}

export const forgetfulBreaker = (clock: ModelClock): CircuitBreaker => new ForgetfulBreaker(BRITTLE, clock);
export const leakyBreaker = (clock: ModelClock): CircuitBreaker => new LeakyBreaker(BRITTLE, clock);

class FreeQueue<T extends FairWaiter> extends FairQueue<T> {
  override take(waiter: T): void {
    this.leave(waiter);
  }
}

class ClingingQueue<T extends FairWaiter> extends FairQueue<T> {
  override leave(): boolean {
    return false;
  }
}

export const freeQueue = <T extends FairWaiter>(): FairQueue<T> => new FreeQueue<T>();
export const clingingQueue = <T extends FairWaiter>(): FairQueue<T> => new ClingingQueue<T>();

class LyingBucket extends TokenBucket {
  override giveBack(_nowMs: number, amount: number): number {
    return amount;
  }
}

export const hastyBucket = (): TokenBucket => new TokenBucket(BUCKET, 0);
export const lyingBucket = (refillLagMs: number): TokenBucket => new LyingBucket({ ...BUCKET, refillLagMs }, 0);

class HastyQuota extends Quota {
  override next(nowMs: number): QuotaStep {
    return super.next(nowMs + 1);
  }
}

class SleepyQuota extends Quota {
  override next(nowMs: number): QuotaStep {
    const step = super.next(nowMs);
    return step.kind === 'wait' ? { kind: 'wait', untilMs: Infinity } : step;
  }
}

export const hastyQuota = (): Quota => new HastyQuota(checkedQuotaRules({}));
export const sleepyQuota = (): Quota => new SleepyQuota(checkedQuotaRules({}));

class HastyCooldown extends Cooldown {
  override waitMs(nowMs: number): number {
    return Math.max(0, super.waitMs(nowMs) - 1);
  }
}

class EasyCooldown extends Cooldown {
  #trial = 0;

  override passed(nowMs: number): number | undefined {
    const trial = super.passed(nowMs);
    this.#trial = trial ?? this.#trial;
    return trial;
  }

  override answered(nowMs: number): void {
    super.answered(nowMs, this.#trial);
  }
}

export const hastyCooldown = (): Cooldown => new HastyCooldown(COOLDOWN, () => 0.75);
export const easyCooldown = (): Cooldown => new EasyCooldown(COOLDOWN, () => 0.75);

class CheapBudget extends RetryBudget {
  override withdraw(): boolean {
    return super.withdraw(1);
  }
}

export const cheapBudget = (clock: ModelClock): RetryBudget => new CheapBudget(BUDGET, clock);

class KeepingAdmission extends Admission {
  override close(): void {}
}

class SleepyAdmission extends Admission {
  override next(): AdmissionStep {
    const step = super.next();
    return step.kind === 'wait' ? { kind: 'wait', untilMs: Infinity } : step;
  }
}

export const keepingAdmission = (clock: ModelClock): Admission => new KeepingAdmission(ADMISSION, clock, () => 0.5);
export const sleepyAdmission = (clock: ModelClock): Admission => new SleepyAdmission(ADMISSION, clock, () => 0.5);
