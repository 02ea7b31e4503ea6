import { CLOSED, HALF_OPEN, MAY, OPEN, RAMPING, REASONS, VERDICT } from './BreakerCall.ts';
import type { BreakerCall, BreakerMemory, BreakerOp, BreakerRules, WrittenReply } from './BreakerCall.ts';
import type { BreakerChangeReason } from '../../limits/CircuitBreaker.ts';

interface Probe {
  readonly process: string;
  readonly atUs: number;
  content: boolean;
  heardUs: number;
}

interface Step {
  readonly step: number;
  calls: number;
  failures: number;
}

const STEPS = 10;
/** Why a breaker may be in the state that a process remembers: consecutive failures, time, a probe. */
const REMEMBERED = [0, 1, 3, 0];

/**
 * What `breaker.lua` decides, in TypeScript: the same calls get the same replies. Pure: the time is passed in, in whole
 * microseconds. The rules are those of `limits/CircuitBreaker.ts`, but for two: while closed or ramping each process decides by itself
 * whether it sends; and probes are leased, so that those of a process that is gone give their places back.
 */
export class SharedCircuit {
  #rules: BreakerRules;
  readonly #probes = new Map<string, Probe>();
  #window: Step[] = [];
  #state: number = CLOSED;
  #reason = 0;
  #epoch: number;
  #credit = 0;
  #consecutive = 0;
  #lastFailureUs = -Infinity;
  #growths = 0;
  #failedProbes = 0;
  #openForUs = 0;
  #openUntilUs = 0;
  #closedAtUs = -Infinity;
  #changes: [number, number, number][] = [];
  /** Which op is being done; -1 for none. */
  #op = -1;

  /** As the server makes it at the first call. */
  constructor(rules: BreakerRules, nowUs: number, last: BreakerMemory) {
    this.#rules = rules;
    this.#epoch = nowUs;
    this.#remember(nowUs, last);
  }

  /** The script takes those of each call. */
  reload(rules: BreakerRules): void {
    this.#rules = rules;
  }

  call(nowUs: number, call: BreakerCall): WrittenReply {
    const before = [this.#state, this.#reason] as const;
    this.#changes = [];
    this.#op = -1;
    if (call.returned === 1 && this.#state === CLOSED) this.#remember(nowUs, call.last);
    this.#lapse(nowUs, call);
    this.#pass(nowUs);
    const may: number[] = [];
    call.ops.forEach((op, i) => {
      this.#op = i;
      this.#run(nowUs, call.process, op, may);
    });
    return [[...this.#numbers(nowUs), ...before], may, this.#changes];
  }

  #numbers(nowUs: number): number[] {
    const { calls, failures } = this.#sums(nowUs);
    const stale = nowUs - this.#lastFailureUs > this.#rules.windowUs;
    return [
      this.#epoch,
      this.#state,
      this.#leftUs(nowUs),
      stale ? 0 : this.#consecutive,
      calls,
      failures,
      this.#openForUs,
      this.#growths,
      this.#failedProbes,
    ];
  }

  #leftUs(nowUs: number): number {
    if (this.#state === OPEN) return Math.max(0, this.#openUntilUs - nowUs);
    if (this.#state === RAMPING) return Math.max(0, this.#closedAtUs + this.#rules.rampUs - nowUs);
    if (this.#state === HALF_OPEN) return Math.max(1, Math.min(this.#stuckAtUs() - nowUs, this.#openForUs));
    return 0;
  }

  #remember(nowUs: number, [state, leftUs, growths, failedProbes]: BreakerMemory): void {
    if (state === CLOSED) return;
    this.#epoch = Math.max(this.#epoch + 1, nowUs);
    this.#state = state;
    this.#reason = REMEMBERED[state] ?? 0;
    this.#growths = growths;
    this.#failedProbes = failedProbes;
    this.#openUntilUs = nowUs + leftUs;
    this.#openForUs = leftUs;
    this.#closedAtUs = nowUs + leftUs - this.#rules.rampUs;
    this.#credit = 0;
  }

  #lapse(nowUs: number, { process, former }: BreakerCall): void {
    for (const [id, probe] of this.#probes) {
      if (probe.process === process) probe.heardUs = nowUs;
      else if (probe.process === former || probe.heardUs < nowUs - this.#rules.leaseUs) {
        this.#probes.delete(id);
        this.#credit++;
      }
    }
  }

  #pass(nowUs: number): void {
    const stuckAtUs = this.#stuckAtUs();
    if (nowUs >= stuckAtUs) this.#open(stuckAtUs, 'probe_stuck');
    if (this.#state === RAMPING && nowUs >= this.#closedAtUs + this.#rules.rampUs) this.#change(CLOSED, 'ramp_over');
  }

  #stuckAtUs(): number {
    let oldestUs = Infinity;
    for (const { atUs, content } of this.#probes.values()) if (!content) oldestUs = Math.min(oldestUs, atUs);
    return oldestUs + this.#rules.halfOpenMaxUs;
  }

  #run(nowUs: number, process: string, op: BreakerOp, may: number[]): void {
    if (op[0] === 'ask') may.push(this.#ask(nowUs, process, op[1]));
    else if (op[0] === 'content') {
      const probe = this.#probes.get(op[1]);
      if (probe) probe.content = true;
    } else {
      const [, epoch, verdict, count, id] = op;
      if (epoch === this.#epoch) this.#ended(nowUs, verdict, count, id);
    }
  }

  #ask(nowUs: number, process: string, id: string): number {
    if (this.#state === OPEN && nowUs >= this.#openUntilUs) {
      this.#newEpoch(nowUs);
      this.#change(HALF_OPEN, 'open_time_over');
    }
    if (this.#state === OPEN) return MAY.not;
    if (this.#state !== HALF_OPEN) return MAY.decide;
    let silent = 0;
    for (const { content } of this.#probes.values()) if (!content) silent++;
    this.#credit = Math.min(1, this.#credit) + this.#rules.halfOpenShare;
    const earned = this.#credit > 1 - 1e-9 && silent < this.#rules.halfOpenMaxProbes;
    if (!earned && this.#probes.size > 0) return MAY.not;
    this.#credit = Math.max(0, this.#credit - 1);
    this.#probes.set(id, { process, atUs: nowUs, content: false, heardUs: nowUs });
    return MAY.probe;
  }

  #ended(nowUs: number, verdict: number, count: number, id: string): void {
    if (this.#state === HALF_OPEN) {
      const held = this.#probes.delete(id);
      if (verdict === VERDICT.success) this.#close(nowUs);
      else if (verdict === VERDICT.failure) this.#open(nowUs, 'probe_failed');
      else if (held) this.#credit++;
      return;
    }
    if (verdict === VERDICT.success) {
      this.#add(nowUs, count, 0);
      this.#consecutive = 0;
    } else if (verdict === VERDICT.failure) {
      for (let i = 0; i < count && this.#state !== OPEN; i++) this.#failed(nowUs);
    }
  }

  #failed(nowUs: number): void {
    const { consecutiveFailures, errorRatio, minCalls, windowUs } = this.#rules;
    this.#add(nowUs, 1, 1);
    if (nowUs - this.#lastFailureUs > windowUs) this.#consecutive = 0;
    this.#lastFailureUs = nowUs;
    this.#consecutive++;
    const { calls, failures } = this.#sums(nowUs);
    if (consecutiveFailures > 0 && this.#consecutive >= consecutiveFailures) {
      this.#open(nowUs, 'consecutive_failures');
    } else if (errorRatio > 0 && calls >= minCalls && failures >= errorRatio * calls) this.#open(nowUs, 'error_ratio');
  }

  #close(nowUs: number): void {
    this.#newEpoch(nowUs);
    this.#closedAtUs = nowUs;
    this.#consecutive = 0;
    this.#window = [];
    this.#change(this.#rules.rampUs > 0 ? RAMPING : CLOSED, 'probe_succeeded');
  }

  #open(atUs: number, reason: BreakerChangeReason): void {
    const { openUs, openFactor, openCapUs, steadyProbes, windowUs } = this.#rules;
    const wasStable = this.#state !== HALF_OPEN && atUs - this.#closedAtUs >= windowUs;
    if (wasStable) this.#growths = this.#failedProbes = 0;
    else if (reason !== 'probe_failed' || ++this.#failedProbes > steadyProbes) this.#growths++;
    // Multiplied step by step: powers are not the same in both languages.
    let openForUs = openUs;
    for (let i = 0; i < this.#growths && openForUs < openCapUs; i++) openForUs *= openFactor;
    this.#openForUs = Math.floor(Math.min(openCapUs, openForUs));
    this.#openUntilUs = atUs + this.#openForUs;
    this.#newEpoch(atUs);
    this.#change(OPEN, reason);
  }

  #newEpoch(nowUs: number): void {
    this.#epoch = Math.max(this.#epoch + 1, nowUs);
    this.#credit = 0;
    this.#probes.clear();
  }

  #change(to: number, reason: BreakerChangeReason): void {
    this.#state = to;
    this.#reason = REASONS.indexOf(reason);
    this.#changes.push([to, this.#reason, this.#op]);
  }

  // The window, in ten steps

  #step(nowUs: number): number {
    return Math.floor(nowUs / Math.max(1, Math.floor(this.#rules.windowUs / STEPS)));
  }

  #add(nowUs: number, calls: number, failures: number): void {
    const step = this.#step(nowUs);
    this.#window = this.#window.filter((each) => each.step > step - STEPS && each.step <= step);
    const newest = this.#window.at(-1);
    if (newest?.step === step) {
      newest.calls += calls;
      newest.failures += failures;
    } else this.#window.push({ step, calls, failures });
  }

  #sums(nowUs: number): { readonly calls: number; readonly failures: number } {
    const step = this.#step(nowUs);
    let calls = 0;
    let failures = 0;
    for (const each of this.#window) {
      if (each.step <= step - STEPS || each.step > step) continue;
      calls += each.calls;
      failures += each.failures;
    }
    return { calls, failures };
  }
}
