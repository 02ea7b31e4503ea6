import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { LimitReading, Usage } from '../../lib/core/hints.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionGrant } from '../../lib/limits/AdmissionGrant.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import type { AdmissionRefusal } from '../../lib/limits/admissionRefusals.ts';
import type { AdmissionAsk, AdmissionStep } from '../../lib/limits/AdmissionStep.ts';
import type { AdmissionTarget } from '../../lib/limits/AdmissionTarget.ts';

export interface BenchAsk extends Partial<Omit<AdmissionAsk, 'cost'>> {
  readonly requests?: number;
  readonly tokens?: number;
  /** Default: false. */
  readonly guessed?: boolean;
}

export const failure = (code: ErrorCode, fields: ConstructorParameters<typeof SluiceError>[2] = {}): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'it failed', fields),
});

export const left = (remaining: number | undefined): LimitReading => ({
  limit: undefined,
  remaining,
  resetMs: undefined,
  windowMs: 60_000,
});

export const usage = (totalTokens: number): Usage => ({
  inputTokens: totalTokens,
  outputTokens: 0,
  totalTokens,
  cachedInputTokens: undefined,
  reasoningTokens: undefined,
});

/** An admission in time that is moved by hand, with no margin of arrival and nothing at random. */
export class AdmissionBench {
  readonly machine: Admission;
  nowMs = 0;
  draw = 0;

  constructor(options: AdmissionOptions = {}) {
    const account = { arrivalMarginMs: 0, ...options.quota?.account };
    const quota = { ...options.quota, account };
    this.machine = new Admission({ ...options, quota }, { now: () => this.nowMs }, () => this.draw);
  }

  ask(ask: BenchAsk = {}): AdmissionTicket | AdmissionRefusal {
    const { requests = 1, tokens = 0, guessed = false, ...rest } = ask;
    return this.machine.ask({ model: 'm', ...rest, cost: { requests, tokens, explicit: !guessed } });
  }

  join(ask: BenchAsk = {}): AdmissionTicket {
    const ticket = this.ask(ask);
    if (ticket.kind === 'refused') throw new Error(`refused: ${ticket.code}`);
    return ticket;
  }

  refusal(ask: BenchAsk = {}): AdmissionRefusal {
    const refusal = this.ask(ask);
    if (refusal.kind !== 'refused') throw new Error('not refused');
    return refusal;
  }

  /** The next step, which is a grant. */
  granted(): Extract<AdmissionStep, { kind: 'granted' }> {
    const step = this.machine.next();
    if (step.kind !== 'granted') throw new Error(`no grant: ${step.kind}`);
    return step;
  }

  /** Asks, and is granted at once; then it is sent. */
  take(ask: BenchAsk = {}): AdmissionGrant {
    this.join(ask);
    const { grant } = this.granted();
    grant.dispatched(this.nowMs);
    return grant;
  }

  /** All that can be done now; whom it grants, and whom it refuses with what. */
  serve(): {
    readonly granted: AdmissionTicket[];
    readonly refused: [AdmissionTicket, string][];
    readonly untilMs: number;
  } {
    const granted: AdmissionTicket[] = [];
    const refused: [AdmissionTicket, string][] = [];
    for (;;) {
      const step = this.machine.next();
      if (step.kind === 'wait') return { granted, refused, untilMs: step.untilMs };
      if (step.kind === 'granted') {
        step.grant.dispatched(this.nowMs);
        granted.push(step.ticket);
      } else if (step.kind === 'refused') refused.push([step.ticket, step.refusal.code]);
    }
  }

  end(grant: AdmissionGrant, outcome: Outcome): ReturnType<Admission['end']> {
    const ended = this.machine.end(grant, outcome);
    this.machine.close(grant);
    return ended;
  }

  target(model = 'm', at = 0): AdmissionTarget {
    return this.machine.poolOf(model).targets[at] as AdmissionTarget;
  }
}

/** With a quota of the account. */
export const account = (
  rates: NonNullable<NonNullable<AdmissionOptions['quota']>['account']>,
  rest: AdmissionOptions = {},
): AdmissionBench => new AdmissionBench({ ...rest, quota: { account: rates } });
