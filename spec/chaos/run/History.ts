import type { Policy } from '../../../lib/index.ts';
import type { Invariant, Stage, Watch } from '../invariants/Invariant.ts';
import type { ChaosPlan } from '../plan/ChaosPlan.ts';
import { isOutside } from './Fact.ts';
import type { AttemptTrace, CallTrace, Fact, Leftovers } from './Fact.ts';

export interface Violation {
  readonly invariant: string;
  readonly atMs: number;
  readonly what: string;
}

/** More of one invariant say nothing new. */
const MOST_OF_ONE = 5;

/** What has happened, told to every invariant at once. */
export class History implements Stage {
  readonly plan: ChaosPlan;
  readonly calls: CallTrace[] = [];
  readonly #byIndex = new Map<number, CallTrace>();
  readonly violations: Violation[] = [];
  readonly nowMs: () => number;
  attempts = 0;
  policy: Policy;
  readonly #watches: readonly (readonly [Invariant, Watch])[];

  constructor(plan: ChaosPlan, policy: Policy, invariants: readonly Invariant[], nowMs: () => number) {
    this.plan = plan;
    this.policy = policy;
    this.nowMs = nowMs;
    this.#watches = invariants.map((invariant) => [
      invariant,
      invariant.watch(this, (what) => this.#failed(invariant.name, what)),
    ]);
  }

  asked(call: CallTrace): void {
    this.calls.push(call);
    this.#byIndex.set(call.index, call);
    if (!isOutside(call.planned)) this.begun(call);
  }

  /** It is the client's from now on, under the rules that hold by now. */
  begun(call: CallTrace): void {
    const { policy, nowMs } = this;
    call.policy = policy;
    call.deadlineAtMs = nowMs() + Math.min(call.planned.deadlineMs ?? policy.deadlineMs, policy.totalMs);
    // Callers of a gateway may be in more of a hurry than the policy, but not in less.
    if (call.planned.by === 'gateway') call.deadlineAtMs = Math.min(call.deadlineAtMs, nowMs() + policy.deadlineMs);
    call.begun = true;
    this.tell({ kind: 'asked', call });
  }

  call(index: number): CallTrace {
    const call = this.#byIndex.get(index);
    if (call === undefined) throw new Error(`nobody has made call ${index}`);
    return call;
  }

  tell(fact: Fact): void {
    for (const [, watch] of this.#watches) watch.see?.(fact);
  }

  end(left: Leftovers): void {
    for (const [, watch] of this.#watches) watch.end?.(left);
  }

  sent(client: string, process: number, request: AttemptTrace['request']): AttemptTrace {
    const { call: index } = request['metadata'] as { readonly call: string };
    const call = this.call(Number(index));
    const upstream = String(request['model']);
    const [model = upstream] = upstream.split('@');
    const attempt: AttemptTrace = {
      call,
      process,
      client,
      upstream,
      model,
      request,
      sentMs: this.nowMs(),
      text: '',
      closedMs: undefined,
    };
    this.attempts++;
    call.attempts.push(attempt);
    this.tell({ kind: 'sent', attempt });
    return attempt;
  }

  closed(attempt: AttemptTrace): void {
    attempt.closedMs = this.nowMs();
    this.tell({ kind: 'closed', attempt });
  }

  judged(client: string, model: string | undefined, refusal: string | undefined): void {
    this.tell({ kind: 'judged', client, model, refusal });
  }

  #failed(invariant: string, what: string): void {
    if (this.violations.filter((one) => one.invariant === invariant).length >= MOST_OF_ONE) return;
    this.violations.push({ invariant, atMs: Math.round(this.nowMs() * 10) / 10, what });
  }
}
