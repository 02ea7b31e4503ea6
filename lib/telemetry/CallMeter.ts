import type { CallStart } from '../core/CallObserver.ts';
import { isLocalCode } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { BreakerState, SluiceEvent } from '../core/events.ts';
import { BoundedNames } from './BoundedNames.ts';
import { CallTally } from './CallTally.ts';
import type { EventOf } from './CallTally.ts';
import type { GenAiMeter } from './GenAiMeter.ts';
import type { MetricBook } from './MetricBook.ts';
import { outcomeName } from './outcomeName.ts';

const SENT = 'sent';
export const BREAKER_LEVEL: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, ramping: 1, open: 2 };

/** Turns the facts of calls into the numbers of a {@link MetricBook}. */
export class CallMeter {
  readonly #book: MetricBook;
  readonly #genAi: GenAiMeter;
  readonly #models: BoundedNames;
  readonly #tenants: BoundedNames;
  readonly #breakers: BoundedNames;
  readonly #limiters: BoundedNames;

  /** `models` is shared with `genAi`. */
  constructor(book: MetricBook, genAi: GenAiMeter, models: BoundedNames, maxTenants: number, maxModels: number) {
    this.#book = book;
    this.#genAi = genAi;
    this.#models = models;
    this.#tenants = new BoundedNames(maxTenants);
    this.#breakers = new BoundedNames(maxModels);
    this.#limiters = new BoundedNames(maxModels);
  }

  started(start: CallStart): void {
    const { calls } = this.#book;
    const known = calls.get(start.callId);
    if (known === undefined) calls.set(start.callId, new CallTally(start, this));
    else known.joined(this);
  }

  hear(event: SluiceEvent): void {
    const book = this.#book;
    if (book.calls.get(event.callId)?.counts(event, this) === false) return;
    switch (event.type) {
      case 'queued': {
        const waiting = book.queueSize.at(event.where, this.#tenants.of(event.tenant));
        return this.#tally(event).hold(event.where, event.attempt, waiting);
      }
      case 'granted':
        return this.#granted(event);
      case 'left':
        return this.#letGo(event, event.where);
      case 'attempt.started': {
        const inflight = book.inflight.at(this.#models.of(event.model), this.#tenants.of(event.tenant));
        return this.#tally(event).hold(SENT, event.attempt, inflight);
      }
      case 'committed': {
        const call = book.calls.get(event.callId);
        if (call !== undefined) call.firstContentAtMs ??= event.atMs;
        return;
      }
      case 'attempt.ended':
        return this.#attemptEnded(event);
      case 'retry.scheduled':
        book.retries.at(this.#models.of(event.model), event.code).value++;
        return;
      case 'breaker.changed': {
        const breaker = this.#breakers.of(event.breaker);
        book.breakerState.at(breaker).value = BREAKER_LEVEL[event.to];
        book.breakerTransitions.at(breaker, event.from, event.to).value++;
        return;
      }
      case 'limit.changed':
        book.concurrencyLimit.at(this.#limiters.of(event.limiter)).value = event.to;
        return;
      case 'cooldown':
        book.cooldowns.at(this.#models.of(event.model), event.reason).value++;
        return;
      case 'fallback':
        book.fallbacks.at(this.#models.of(event.from), this.#models.of(event.to), event.code).value++;
        return;
      case 'refused':
        return this.#refused(event);
      case 'settled':
        book.tokensReserved.at(this.#models.of(event.model)).value += event.reservedTokens;
        return;
      case 'call.ended':
        return this.#callEnded(event);
      case 'store.changed':
        if (event.to === 'lost') book.storeLosses.at(event.reason).value++;
        return;
      case 'hints':
      case 'restart':
    }
  }

  #granted(event: EventOf<'granted'>): void {
    this.#letGo(event, event.where);
    const { model, tenant, where, waitedMs } = event;
    if (waitedMs <= 0) return;
    const attributes = this.#book.byQueue.at(this.#models.of(model), where, this.#tenants.of(tenant));
    this.#book.queueWait.record(waitedMs / 1000, attributes);
  }

  #attemptEnded(event: EventOf<'attempt.ended'>): void {
    const { code, status, durationMs, usage = event.estimatedUsage } = event;
    const model = this.#models.of(event.model);
    const outcome = outcomeName(event.outcome, code);
    const error = outcome === 'failure' ? (code ?? '_OTHER') : undefined;
    const requests = this.#book.requests.at(model, outcome, status, error);
    requests.value++;
    // Both metrics have the same attributes.
    this.#book.attemptDuration.record(durationMs / 1000, requests.attributes);
    if (usage !== undefined) {
      const tokens = usage.inputTokens + usage.outputTokens;
      this.#book.tokensUsed.at(model).value += tokens;
      if (outcome !== 'success') this.#book.tokensWasted.at(model).value += tokens;
    }
    const call = this.#book.calls.get(event.callId);
    if (call?.start !== undefined) {
      call.ended(event);
      this.#genAi.attemptEnded(call.start, call, event);
    }
    this.#letGo(event, SENT);
  }

  #refused({ model, code, callId, attempt }: EventOf<'refused'>): void {
    this.#refuse(model, code);
    const call = this.#book.calls.get(callId);
    if (call === undefined) return;
    call.lastRefusal = code;
    call.letGoOfQueues(attempt, SENT);
    this.#forgetIdle(callId, call);
  }

  #refuse(model: string | undefined, code: ErrorCode): void {
    this.#book.refusals.at(this.#models.of(model), code).value++;
  }

  #callEnded(event: EventOf<'call.ended'>): void {
    const call = this.#book.calls.get(event.callId);
    if (event.cost) {
      this.#book.cost.at(this.#models.of(event.model), this.#tenants.of(event.tenant)).value += event.cost;
    }
    if (call?.endsNow() === false) return;
    this.#book.calls.delete(event.callId);
    const { code, attempts } = event;
    const model = this.#models.of(call?.start?.model ?? event.model);
    const outcome = outcomeName(event.outcome, code);
    const error = outcome === 'failure' ? (code ?? '_OTHER') : undefined;
    this.#book.ended.at(model, outcome, error).value++;
    if (attempts > 0) this.#book.callAttempts.record(attempts, this.#book.byModel.at(model));
    if (call === undefined) return;
    call.letGoOfAll();
    if (call.start === undefined) return;
    // Some refusals are known by the end of the call only.
    if (outcome === 'failure' && code !== undefined && isLocalCode(code) && call.lastRefusal !== code) {
      this.#refuse(model, code);
    }
    this.#genAi.callEnded(call.start, call, event, outcome, error);
  }

  #tally({ callId }: SluiceEvent): CallTally {
    const { calls } = this.#book;
    let call = calls.get(callId);
    if (call === undefined) calls.set(callId, (call = new CallTally(undefined, this)));
    return call;
  }

  #letGo({ callId, attempt }: SluiceEvent, where: string): void {
    const call = this.#book.calls.get(callId);
    if (call === undefined) return;
    call.letGo(where, attempt);
    this.#forgetIdle(callId, call);
  }

  #forgetIdle(callId: string, call: CallTally): void {
    if (call.start === undefined && call.holdsNothing) this.#book.calls.delete(callId);
  }
}
