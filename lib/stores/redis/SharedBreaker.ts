import { randomUUID } from 'node:crypto';
import { Observable } from 'rxjs';
import type { SluiceError } from '../../core/errors.ts';
import { DROPPED_UNSENT } from '../../core/outcome.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { AcquireRequest, BreakerPass, BreakerSnapshot } from '../../core/ports.ts';
import type { Runtime } from '../../core/runtime.ts';
import { checkBreakerOptions, judge } from '../../limits/breakerRules.ts';
import type { CheckedBreakerOptions, CircuitBreakerOptions } from '../../limits/breakerRules.ts';
import { CircuitBreaker } from '../../limits/CircuitBreaker.ts';
import type { BreakerChange, BreakerCourse, BreakerTicket } from '../../limits/CircuitBreaker.ts';
import type { SharedBreaker as SharedBreakerPort } from '../../limits/LimitStore.ts';
import { Alarm } from './Alarm.ts';
import { breakerRules, MAY, readReply, REASONS, STATES, VERDICT } from './BreakerCall.ts';
import type { BreakerCall, BreakerOp, BreakerReply } from './BreakerCall.ts';
import { BreakerFacts } from './BreakerFacts.ts';
import { joined } from './breakerOps.ts';
import type { Asking, Telling } from './breakerOps.ts';
import { BreakerPasses } from './BreakerPasses.ts';
import type { HeldPass } from './BreakerPasses.ts';
import { BreakerView, stateOf } from './BreakerView.ts';
import { OneCall } from './OneCall.ts';
import { circuitOpen, storeClosed } from './refusals.ts';
import { Script } from './Script.ts';
import type { SharedBreakerOptions, SharedBreakerSettings } from './SharedBreakerOptions.ts';
import type { LinkUser, StoreLink } from './StoreLink.ts';

/** Successes are told within this time, together with what else there is; failures at once. */
const LATER_MS = 20;

const SCRIPT = Script.read('breaker.lua');

/**
 * The breaker of all processes, as one of them sees it. While the store is lost it stands alone: a breaker of this process goes
 * on from there.
 */
export class SharedBreaker implements SharedBreakerPort, LinkUser {
  readonly #settings: SharedBreakerSettings;
  readonly #link: StoreLink;
  readonly #runtime: Runtime;
  readonly #keys: readonly string[];
  readonly #view: BreakerView;
  readonly #facts: BreakerFacts;
  readonly #passes: BreakerPasses;
  readonly #calls: OneCall;
  readonly #alarm: Alarm;
  #options: CheckedBreakerOptions;
  #alone: CircuitBreaker | undefined;
  /** How it stood when it ceased to be alone, until the store has been told. */
  #course: BreakerCourse | undefined;
  #owner: string = randomUUID();
  #former = '';
  #named = 0;
  #asking: Asking[] = [];
  #asked: readonly Asking[] = [];
  #telling: Telling[] = [];
  #told: readonly Telling[] = [];
  #tellAtMs = Infinity;
  #closed = false;

  constructor(options: SharedBreakerOptions, link: StoreLink, settings: SharedBreakerSettings) {
    this.#options = checkBreakerOptions(options);
    this.#settings = settings;
    this.#link = link;
    this.#runtime = link.runtime;
    this.#keys = ['state', 'probes'].map((part) => `${settings.key}:${part}`);
    this.#view = new BreakerView(settings.leaseMs / 3);
    this.#facts = new BreakerFacts(settings.name, options.onFact);
    this.#passes = new BreakerPasses({
      firstContent: (held) => this.#firstContent(held),
      released: (held, outcome) => this.#released(held, outcome),
      moved: () => this.#watch(),
    });
    this.#calls = new OneCall(
      (current) => this.#call(current),
      () => this.#watch(),
    );
    this.#alarm = new Alarm(link.runtime, () => this.#ring());
    link.use(this);
    if (!link.up) this.lost();
  }

  acquire(request: AcquireRequest): Observable<BreakerPass> {
    // Hand-written: the store may have to be asked, and whoever has gone by then gives the pass back.
    return new Observable((subscriber) => this.#enter({ request, subscriber, id: `${this.#owner}/${this.#named++}` }));
  }

  snapshot(): BreakerSnapshot {
    return this.#alone?.snapshot() ?? this.#view.snapshot(this.#nowMs());
  }

  reload(options: CircuitBreakerOptions): void {
    this.#options = checkBreakerOptions(options);
    this.#alone?.reload(options);
  }

  /** Ends those who wait for an answer with `closed`, and all that come. */
  close(): void {
    this.#closed = true;
    for (const { subscriber } of [...this.#asked, ...this.#asking.splice(0)]) subscriber.error(storeClosed());
  }

  wanting(): boolean {
    return !this.#passes.none;
  }

  lost(): void {
    const { epoch } = this.#view;
    const alone = new CircuitBreaker(this.#options, this.#runtime.clock);
    alone.resume(this.#course ?? this.#view.course(this.#nowMs()));
    this.#alone = alone;
    this.#calls.reset();
    this.#former = this.#owner;
    // What the server may still do for the old one must not be taken for the new one's.
    this.#owner = randomUUID();
    for (const held of this.#passes.all) {
      if (held.epoch !== epoch) continue;
      held.ticket = alone.join();
      if (held.content) alone.firstContent(held.ticket);
    }
    for (const told of [...this.#told, ...this.#telling.splice(0)]) {
      if (told.outcome && told.epoch === epoch) this.#settleAlone(alone.join(), told.outcome, told.request);
    }
    const asking = [...this.#asked, ...this.#asking.splice(0)];
    this.#asked = this.#told = [];
    for (const each of asking) this.#enter(each);
    if (this.wanting()) this.#link.wanted();
    this.#watch();
  }

  returned(): void {
    this.#course = this.#alone?.course;
    this.#alone = undefined;
    this.#view.forget();
    for (const held of this.#passes.all) {
      // The store knows nothing of those that it has not let pass.
      if (held.epoch === 0 && held.ticket) held.ticket.settled = true;
      else held.ticket = undefined;
    }
    if (this.wanting() || this.#course?.state !== 'closed') this.#calls.ask();
    this.#watch();
  }

  #enter(asking: Asking): void {
    const { request, subscriber } = asking;
    if (subscriber.closed) return;
    if (this.#closed) {
      subscriber.error(storeClosed());
      return;
    }
    if (this.#alone) {
      this.#link.wanted();
      this.#askAlone(this.#alone, asking);
      return;
    }
    const decision = this.#view.decide(this.#nowMs(), this.#options);
    if (decision === 'pass') this.#give(asking, '');
    else if (decision === 'refuse') subscriber.error(this.#refusal('entry', request.model));
    else {
      this.#asking.push(asking);
      this.#calls.ask();
    }
  }

  #askAlone(alone: CircuitBreaker, asking: Asking): void {
    const decision = alone.ask();
    this.#changedAlone(decision.changes, asking.request);
    if (decision.kind === 'pass') this.#give(asking, '', decision.ticket);
    else asking.subscriber.error(this.#refusal('entry', asking.request.model, decision.retryAfterMs));
  }

  #give({ request, subscriber }: Asking, id: string, ticket?: BreakerTicket): void {
    const pass = this.#passes.give(request, ticket ? 0 : this.#view.epoch, id, ticket);
    if (subscriber.closed) {
      pass.release(DROPPED_UNSENT);
      return;
    }
    subscriber.next(pass);
    subscriber.complete();
    this.#watch();
  }

  async #call(current: () => boolean): Promise<void> {
    this.#asked = this.#asking.splice(0).filter(({ subscriber }) => !subscriber.closed);
    this.#told = this.#telling.splice(0);
    this.#tellAtMs = Infinity;
    const asks = this.#asked.map(({ request, id }) => ({ op: ['ask', id] as const, request }));
    const { ops, by } = joined([...this.#told, ...asks]);
    const { leaseMs, keepMs } = this.#settings;
    const args = [breakerRules(this.#options, leaseMs, keepMs), this.#whole(ops)].map((arg) => JSON.stringify(arg));
    const reply = await this.#link.run(SCRIPT, this.#keys, args);
    if (!current() || reply === undefined) return;
    const asked = this.#asked;
    this.#asked = this.#told = [];
    this.#former = '';
    this.#course = undefined;
    const heard = readReply(reply);
    this.#hear(heard, by);
    asked.forEach((asking, i) => this.#answer(asking, heard.may[i] ?? MAY.not));
  }

  #whole(ops: readonly BreakerOp[]): BreakerCall {
    const { state, leftMs, growths, failedProbes } = this.#course ?? this.#view.course(this.#nowMs());
    return {
      process: this.#owner,
      former: this.#former,
      last: [STATES.indexOf(state), Math.ceil(leftMs * 1000), growths, failedProbes],
      returned: this.#course ? 1 : 0,
      ops,
    };
  }

  #hear(heard: BreakerReply, by: readonly AcquireRequest[]): void {
    this.#view.hear(heard, this.#nowMs());
    const refusal = (model: string | undefined): SluiceError => this.#refusal('queue', model);
    const doomed = this.#view.failing ? this.#passes.doom(heard.epoch, refusal) : [];
    const [state, reason] = heard.before;
    this.#facts.changed(stateOf(state), REASONS[reason] ?? 'probe_succeeded');
    for (const [to, why, op] of heard.changes) {
      this.#facts.changed(stateOf(to), REASONS[why] ?? 'probe_succeeded', by[op]);
    }
    for (const pass of doomed) pass.revoke();
  }

  #answer(asking: Asking, may: number): void {
    if (may === MAY.probe) this.#give(asking, asking.id);
    else if (may === MAY.decide && this.#view.decideFresh(this.#nowMs(), this.#options) === 'pass') {
      this.#give(asking, '');
    } else asking.subscriber.error(this.#refusal('entry', asking.request.model));
  }

  #firstContent({ ticket, id, request, epoch }: HeldPass): void {
    if (this.#alone) {
      if (ticket) this.#alone.firstContent(ticket);
    } else if (id !== '') this.#tell({ op: ['content', id], request, outcome: undefined, epoch }, false);
  }

  #released({ ticket, id, request, epoch }: HeldPass, outcome: Outcome): void {
    const verdict = judge(outcome, this.#options.countRateLimited);
    if (id === '') this.#view.ended(epoch, verdict === 'neutral');
    if (this.#alone) {
      if (ticket) this.#settleAlone(ticket, outcome, request);
    } else if (!ticket && (verdict !== 'neutral' || id !== '')) {
      const op = ['ended', epoch, VERDICT[verdict], 1, id] as const;
      this.#tell({ op, request, outcome, epoch }, id === '' && verdict === 'success');
    }
    this.#watch();
  }

  #tell(telling: Telling, later: boolean): void {
    this.#telling.push(telling);
    if (later) this.#tellAtMs = Math.min(this.#tellAtMs, this.#nowMs() + LATER_MS);
    else this.#calls.ask();
  }

  #settleAlone(ticket: BreakerTicket, outcome: Outcome, request: AcquireRequest): void {
    this.#changedAlone(this.#alone?.settle(ticket, outcome) ?? [], request);
  }

  #changedAlone(changes: readonly BreakerChange[], request?: AcquireRequest): void {
    const opened = changes.some(({ to }) => to === 'open');
    const refusal = (model: string | undefined): SluiceError => this.#refusal('queue', model);
    const doomed = opened ? this.#passes.doom(undefined, refusal) : [];
    for (const { to, reason } of changes) this.#facts.changed(to, reason, request);
    for (const pass of doomed) pass.revoke();
  }

  #refusal(stage: 'entry' | 'queue', model: string | undefined, afterMs?: number): SluiceError {
    const leftMs = afterMs ?? (this.#alone ? this.snapshot().retryAfterMs : this.#view.leftMs(this.#nowMs()));
    return circuitOpen(this.#settings.name, this.snapshot().state, leftMs, stage, model);
  }

  #ring(): void {
    if (this.#alone) this.#changedAlone(this.#alone.advance());
    else if (this.#dueAtMs() <= this.#nowMs()) this.#calls.ask();
    this.#watch();
  }

  #watch(): void {
    // What is under way watches when it is back.
    this.#alarm.set(!this.#alone && this.#calls.busy ? Infinity : this.#dueAtMs());
  }

  /** Those that were not sent yet must hear if it opens, and probes are leased. */
  #dueAtMs(): number {
    const { waiting } = this.#passes;
    if (this.#alone) return waiting ? (this.#alone.stuckAtMs ?? Infinity) : Infinity;
    const follows = waiting || this.#passes.probing(this.#view.epoch);
    return Math.min(this.#tellAtMs, follows ? this.#view.staleAtMs : Infinity);
  }

  #nowMs(): number {
    return this.#runtime.clock.now();
  }
}
