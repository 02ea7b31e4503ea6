import { defer, Observable, tap } from 'rxjs';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import { ProviderLimits } from '../../emulator/model/ProviderLimits.ts';
import type { ProviderModel } from '../../emulator/model/ProviderLimits.ts';
import { dialectOf, PROVIDER_DEFAULTS } from '../../emulator/model/settings.ts';
import { countPromptTokens } from '../../emulator/model/request.ts';
import { LinkedQueue } from '../../limits/LinkedQueue.ts';
import { createLanes } from '../../operators/createLanes.ts';
import { inConversation } from '../../operators/inConversation.ts';
import { modelPolicy } from '../../policy/modelPolicy.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import { deadlinePassed } from '../../sources/failures.ts';
import type { SimulatedCall } from '../load/CallDrawer.ts';
import type { Scenario, Upstream } from '../scenario/Scenario.ts';
import { bareAttempt } from './bareAttempt.ts';
import type { Strategy } from './Strategy.ts';

/**
 * The yardstick: first come, first served, by someone who knows the provider's own counts to the token and all its
 * outages beforehand, and whose requests arrive in the order in which they were sent. Turns of a conversation wait for each other.
 * What is down is not asked: a model that the policy falls back to is, or else the end of the outage is waited for. A call
 * waits no longer than its deadline, so that no more wait than come in that time, however long there is more load than quota.
 *
 * To be run against `unlimited` providers. No schedule in the order of arrival begins earlier.
 */
export function bestSchedule(scenario: Scenario): Strategy {
  return (world) => {
    const { runtime } = world;
    const policy = parsePolicy(scenario.policy ?? {}, { clients: Object.keys(scenario.upstreams) });
    const lanes = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
    const gates = Object.fromEntries(
      Object.entries(scenario.upstreams).map(([client, upstream]) => [client, new Gate(upstream, runtime)]),
    );
    const gateOf = (model: string): Gate => gates[world.clientOf(model)] as Gate;
    const ask = (call: SimulatedCall, untilMs: number): Observable<unknown> => {
      const { fallback } = modelPolicy(policy, call.model);
      const up = [call.model, ...fallback].find((model) => gateOf(model).downMs(model) === 0) ?? call.model;
      const attempt$ = bareAttempt(world, call, up, { stream_options: { include_usage: true } });
      return gateOf(up).through(call, up, untilMs, attempt$);
    };
    return (call) => {
      const maxWaitMs = call.deadlineMs ?? policy.deadlineMs;
      const untilMs = runtime.clock.now() + maxWaitMs;
      const asked$ = defer(() => ask(call, untilMs));
      return call.conversation === undefined
        ? asked$
        : asked$.pipe(inConversation(lanes, call.conversation, { maxWaitMs, runtime }));
    };
  };
}

interface Waiter {
  readonly ordinal: number;
  readonly tokens: number;
  readonly untilMs: number;
  readonly enter: (release: (used: number) => void) => void;
  readonly giveUp: () => void;
}

/** The limits of one provider, as they stand there, and who waits for them. */
class Gate {
  readonly #upstream: Upstream;
  readonly #runtime: Runtime;
  readonly #limits: ProviderLimits;
  readonly #settlesUsage: boolean;
  readonly #lines = new Map<string, LinkedQueue<Waiter>>();
  #cancel: Cancel = () => {};

  constructor(upstream: Upstream, runtime: Runtime) {
    this.#upstream = upstream;
    this.#runtime = runtime;
    this.#settlesUsage = (upstream.settle ?? dialectOf(upstream.dialect).settle) === 'usage';
    this.#limits = new ProviderLimits(upstream, runtime.clock.now());
    for (const { atMs, account, models = {} } of upstream.changes ?? []) {
      startTimer(runtime, atMs, () => {
        this.#limits.change(account, models, runtime.clock.now());
        this.#serve();
      });
    }
  }

  /** How long the model is still down. */
  downMs(model: string): number {
    const nowMs = this.#runtime.clock.now();
    const ends = (this.#upstream.outages ?? [])
      .filter((outage) => outage.model === undefined || outage.model === model)
      .filter(({ fromMs, toMs }) => nowMs >= fromMs && nowMs < toMs)
      .map(({ toMs }) => toMs - nowMs);
    return Math.max(0, ...ends);
  }

  /** `attempt$`: its values are chunks, the last one with usage. */
  through(call: SimulatedCall, model: string, untilMs: number, attempt$: Observable<unknown>): Observable<unknown> {
    // Hand-written: a place in line that is left again, or ends when the attempt does.
    return new Observable((subscriber) => {
      const line = this.#lines.get(model) ?? new LinkedQueue<Waiter>();
      this.#lines.set(model, line);
      const tokens = this.#tokensOf(call, model);
      let waits = true;
      const enter = (release: (used: number) => void): void => {
        waits = false;
        let used = tokens;
        subscriber.add(() => release(used));
        const counted$ = attempt$.pipe(tap((chunk) => (used = totalOf(chunk) ?? used)));
        subscriber.add(counted$.subscribe(subscriber));
      };
      const giveUp = (): void => {
        waits = false;
        subscriber.error(deadlinePassed('queue'));
      };
      const place = line.push({ ordinal: call.ordinal, tokens, untilMs, enter, giveUp });
      subscriber.add(() => waits && line.remove(place));
      this.#serve();
    });
  }

  #serve(): void {
    this.#cancel();
    const nowMs = this.#runtime.clock.now();
    let waitMs = Infinity;
    const late: Waiter[] = [];
    const first = (line: LinkedQueue<Waiter>): number => line.peek()?.ordinal ?? Infinity;
    const heads = [...this.#lines].sort(([, a], [, b]) => first(a) - first(b));
    for (const [name, line] of heads) {
      const model = this.#limits.model(name, nowMs);
      if (model === undefined) continue;
      for (let head = line.peek(); head !== undefined; head = line.peek()) {
        if (nowMs >= head.untilMs) {
          line.shift();
          late.push(head);
          continue;
        }
        const headMs = Math.max(this.downMs(name), this.#waitMs(model, head.tokens, nowMs));
        if (headMs > 0) {
          waitMs = Math.min(waitMs, headMs);
          break;
        }
        line.shift();
        this.#admit(model, head);
      }
    }
    this.#cancel = startTimer(this.#runtime, waitMs, () => this.#serve());
    // Last, as what comes of it may be served at once.
    for (const { giveUp } of late) giveUp();
  }

  #waitMs(model: ProviderModel, tokens: number, nowMs: number): number {
    const verdict = this.#limits.check(model, tokens, nowMs);
    // Where it can never pass it is let go, to fail as it would anywhere.
    if (verdict.kind === 'refused') return verdict.by === 'too_large' ? 0 : Math.max(0.001, verdict.retryAfterMs);
    return this.#limits.hasSlot(model) ? 0 : Infinity;
  }

  #admit(model: ProviderModel, { tokens, enter }: Waiter): void {
    this.#limits.start(model, tokens, this.#runtime.clock.now());
    enter((used) => {
      this.#limits.end(model, tokens, this.#settlesUsage ? used : tokens, this.#runtime.clock.now());
      const bounded = model.settings.maxConcurrent !== undefined || this.#upstream.maxConcurrent !== undefined;
      if (bounded || this.#settlesUsage) this.#serve();
    });
  }

  #tokensOf({ request }: SimulatedCall, model: string): number {
    const settings = this.#limits.model(model, this.#runtime.clock.now())?.settings ?? this.#upstream;
    const output =
      request.max_completion_tokens ?? settings.reservedOutputTokens ?? PROVIDER_DEFAULTS.reservedOutputTokens;
    return countPromptTokens(request as unknown as Readonly<Record<string, unknown>>) + output;
  }
}

function totalOf(chunk: unknown): number | undefined {
  return (chunk as { readonly usage?: { readonly total_tokens?: number } | null }).usage?.total_tokens;
}
