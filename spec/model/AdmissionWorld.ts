import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionGrant } from '../../lib/limits/AdmissionGrant.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

export interface Plan {
  readonly model: 'm' | 'n';
  readonly tenant: 'x' | 'y';
  readonly priority: 'interactive' | 'batch';
}

interface Call extends Plan {
  readonly name: string;
  phase: 'new' | 'waiting' | 'running' | 'over';
  ticket?: AdmissionTicket;
  grant?: AdmissionGrant;
  sentAtMs?: number;
}

const BURST = 2;
const PER_MS = 0.25;
const RULES = {
  maxInFlight: 2,
  quota: {
    account: {
      requestsPerMinute: PER_MS * 60_000,
      burstRequests: BURST,
      arrivalMarginMs: 0,
      maxWaitMs: 20,
      maxWaiting: 2,
    },
  },
  models: { m: { concurrency: { limit: 1 }, breaker: { consecutiveFailures: 1, openMs: 3, rampMs: 0 } } },
  tenants: { x: { maxInFlight: 1 }, y: { reservedInFlight: 1 } },
  priorities: { order: ['interactive', 'batch'], levels: { batch: { maxInFlight: 1 } } },
} as const satisfies AdmissionOptions;
export const ADMISSION: AdmissionOptions = RULES;
const ENDS: readonly [string, Outcome][] = [
  ['succeeds', SUCCESS],
  ['is cancelled unsent', DROPPED_UNSENT],
  ['fails', { kind: 'failure', error: new SluiceError('server_error', 'failed', { status: 500 }) }],
];

/** Calls of two tenants and two priorities for two models, through every kind of limit at once. */
export class AdmissionWorld implements World {
  readonly #clock = new ModelClock();
  readonly #admission: Admission;
  readonly #calls: readonly Call[];
  readonly #history: string[] = [];
  #untilMs = Infinity;
  #ticks: number;

  constructor(plans: readonly Plan[], ticks: number, make: (clock: ModelClock) => Admission = admissionOf) {
    this.#calls = plans.map((plan, at) => ({ ...plan, name: `call ${at + 1}`, phase: 'new' }));
    this.#ticks = ticks;
    this.#admission = make(this.#clock);
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    const fresh = this.#calls.find(({ phase }) => phase === 'new');
    if (fresh) deeds.push([`${fresh.name} asks`, () => this.#ask(fresh)]);
    for (const call of this.#calls) {
      if (call.phase === 'waiting') deeds.push([`${call.name} leaves`, () => this.#leave(call)]);
      if (call.phase !== 'running') continue;
      for (const [name, outcome] of ENDS) deeds.push([`${call.name} ${name}`, () => this.#end(call, outcome)]);
    }
    if (this.#ticks > 0) deeds.push(['1 ms passes', () => this.#tick()]);
    if (this.#untilMs < Infinity) {
      deeds.push(['the time that was named comes', () => this.#pass(this.#untilMs - this.#clock.nowMs, 'n')]);
    }
    return deeds;
  }

  /** Too much is remembered of what was for two histories to be known to be alike. */
  key(): string {
    return this.#history.join();
  }

  wrong(): string | undefined {
    const running = this.#in('running');
    const waiting = this.#in('waiting');
    const { inFlight } = this.#admission;
    if (inFlight !== running.length) return `${inFlight} in flight, and ${running.length} should be`;
    if (this.#admission.waiting !== waiting.length)
      return `${this.#admission.waiting} wait, and ${waiting.length} should`;
    const over = (what: string, most: number, test: (call: Call) => boolean): string | undefined => {
      const count = running.filter(test).length;
      return count > most ? `${count} of ${what} in flight` : undefined;
    };
    const { maxInFlight, models, tenants, priorities } = RULES;
    return (
      over('all', maxInFlight, () => true) ??
      over('model m', models.m.concurrency.limit, ({ model }) => model === 'm') ??
      over('tenant x', tenants.x.maxInFlight, ({ tenant }) => tenant === 'x') ??
      over('batch', priorities.levels.batch.maxInFlight, ({ priority }) => priority === 'batch') ??
      this.#overQuota() ??
      (waiting.length > 0 && !(this.#untilMs > this.#clock.nowMs && this.#untilMs < Infinity)
        ? `is to be asked again at ${this.#untilMs}, and someone waits`
        : undefined) ??
      (this.ended() && this.#admission.tenants.owedSlots !== 0 ? 'slots are owed to nobody' : undefined)
    );
  }

  ended(): boolean {
    return this.#calls.every(({ phase }) => phase === 'over');
  }

  #in(phase: Call['phase']): Call[] {
    return this.#calls.filter((call) => call.phase === phase);
  }

  #overQuota(): string | undefined {
    const sentAtMs = this.#calls
      .map((call) => call.sentAtMs ?? Infinity)
      .filter((atMs) => atMs < Infinity)
      .sort((a, b) => a - b);
    for (const [i, fromMs] of sentAtMs.entries()) {
      for (const [k, atMs] of sentAtMs.entries()) {
        if (k >= i && k - i + 1 > BURST + PER_MS * (atMs - fromMs) + 1e-9)
          return `${k - i + 1} are sent in ${atMs - fromMs} ms`;
      }
    }
    return undefined;
  }

  #ask(call: Call): unknown {
    const { model, tenant, priority } = call;
    const cost = { requests: 1, tokens: 0, explicit: true };
    const answer = this.#admission.ask({ model, tenant, priority, cost });
    this.#history.push('ask');
    if (answer.kind === 'ticket') {
      call.phase = 'waiting';
      call.ticket = answer;
    } else {
      call.phase = 'over';
      must(answer.code === 'circuit_open' || answer.code === 'queue_full', `is refused with ${answer.code}`);
    }
    return this.#serve();
  }

  #leave(call: Call): unknown {
    call.phase = 'over';
    this.#history.push(`leave ${call.name}`);
    must(this.#admission.cancel(call.ticket as AdmissionTicket), 'was not in the queue');
    must(!this.#admission.cancel(call.ticket as AdmissionTicket), 'leaves twice');
    return this.#serve();
  }

  #end(call: Call, outcome: Outcome): unknown {
    call.phase = 'over';
    this.#history.push(`${outcome.kind} ${call.name}`);
    const grant = call.grant as AdmissionGrant;
    // What was never sent is given back to the quota.
    if (outcome === DROPPED_UNSENT) call.sentAtMs = Infinity;
    else grant.dispatched(this.#clock.nowMs);
    must(this.#admission.end(grant, outcome) !== undefined, 'had ended before');
    must(this.#admission.end(grant, outcome) === undefined, 'ends twice');
    this.#admission.close(grant);
    this.#admission.close(grant);
    return this.#serve();
  }

  #tick(): unknown {
    this.#ticks--;
    return this.#pass(1, 't');
  }

  #pass(ms: number, name: string): unknown {
    this.#clock.nowMs += ms;
    this.#history.push(name);
    return this.#serve();
  }

  /** Does what the shell does after each event: all that can be done now. */
  #serve(): unknown {
    const { nowMs } = this.#clock;
    for (let turn = 0; turn < 20; turn++) {
      const step = this.#admission.next();
      if (step.kind === 'wait') {
        this.#untilMs = step.untilMs;
        const idle = this.#in('waiting').find((call) => this.#couldGo(call));
        must(idle === undefined, `${idle?.name ?? ''} waits and could go`);
        return undefined;
      }
      if (step.kind === 'changed') continue;
      const call = this.#calls.find(({ ticket }) => ticket === step.ticket) as Call;
      must(call.phase === 'waiting', `${call.name} is answered twice`);
      call.phase = step.kind === 'granted' ? 'running' : 'over';
      if (step.kind === 'refused') continue;
      call.grant = step.grant;
      call.sentAtMs = nowMs;
    }
    throw new Error('there is always more to do');
  }

  /** Whether nothing at all is in the way of one that waits. */
  #couldGo({ ticket, tenant, priority }: Call): boolean {
    const running = this.#in('running');
    if (ticket === undefined || running.length >= RULES.maxInFlight) return false;
    if (priority === 'batch' && running.some((call) => call.priority === 'batch')) return false;
    if (tenant === 'x' && running.some((call) => call.tenant === 'x')) return false;
    return ticket.pool.fit(this.#clock.nowMs, ticket, () => true).targets.length > 0;
  }
}

export function admissionOf(clock: ModelClock): Admission {
  return new Admission(RULES, clock, () => 0.5);
}
