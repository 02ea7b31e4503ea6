import { Subscription } from 'rxjs';
import type { Observable } from 'rxjs';
import { estimateCost, isRestart, isSluiceError, startTimer } from '../../../lib/index.ts';
import type { CallOptions, Runtime, Sluice } from '../../../lib/index.ts';
import { modelPolicy } from '../../../lib/policy/modelPolicy.ts';
import type { PlannedCall } from '../plan/ChaosPlan.ts';
import { requestOf } from '../plan/requestOf.ts';
import type { Sabotage } from '../sabotage/Sabotage.ts';
import { askSdk } from './askSdk.ts';
import { contentOf } from './contentOf.ts';
import type { CallTrace } from './Fact.ts';
import type { FetchCallers } from './FetchCallers.ts';
import type { GatewayClients } from './GatewayClients.ts';
import type { History } from './History.ts';

export interface CallerOptions {
  readonly runtime: Runtime;
  readonly sabotage: Sabotage;
  /** Where calls of the plan are made through them. */
  readonly gateways: GatewayClients | undefined;
  /** Where there are addresses that SDKs can have. */
  readonly fetchers: FetchCallers | undefined;
  /** No call is open. */
  atRest(): void;
}

/** Makes the calls of a plan, takes what comes, and leaves as planned. */
export class Caller {
  readonly #sluices: readonly Sluice[];
  readonly #history: History;
  readonly #runtime: Runtime;
  readonly #sabotage: Sabotage;
  readonly #gateways: GatewayClients | undefined;
  readonly #fetchers: FetchCallers | undefined;
  /** Of all calls that are not aborted by one of their own. */
  readonly #longLived = new AbortController();
  readonly #atRest: () => void;
  #open = 0;

  constructor(sluices: readonly Sluice[], history: History, options: CallerOptions) {
    const { runtime, sabotage, gateways, fetchers, atRest } = options;
    this.#sluices = sluices;
    this.#history = history;
    this.#runtime = runtime;
    this.#sabotage = sabotage;
    this.#gateways = gateways;
    this.#fetchers = fetchers;
    this.#atRest = atRest;
  }

  get open(): number {
    return this.#open;
  }

  get signal(): AbortSignal {
    return this.#longLived.signal;
  }

  make(planned: PlannedCall, index: number): void {
    const history = this.#history;
    const { process = 0, leaves, restarts = false } = planned;
    const own = leaves?.how === 'abort' ? new AbortController() : undefined;
    const { policy } = history;
    const nowMs = history.nowMs();
    const call: CallTrace = {
      index,
      planned,
      process,
      askedMs: nowMs,
      begun: false,
      deadlineAtMs: Infinity,
      policy,
      attempts: [],
      text: '',
      restarts: 0,
      startedOverAt: 0,
      values: 0,
      leftMs: undefined,
      endedMs: undefined,
      code: undefined,
      goneMs: undefined,
    };
    history.asked(call);
    this.#open++;
    const sabotage = this.#sabotage;
    const options = this.#optionsOf(planned, index, own?.signal ?? this.#longLived.signal);
    const asked$ = this.#ask(planned, index, { ...(sabotage.options?.(options) ?? options), restarts });
    const call$ = sabotage.call?.(asked$) ?? asked$;

    const subscription = new Subscription();
    let stopLeaving = (): void => {};
    const gone = (): void => {
      if (call.goneMs !== undefined) return;
      stopLeaving();
      this.#open--;
      call.goneMs = history.nowMs();
      history.tell({ kind: 'gone', call });
      if (this.#open === 0) this.#atRest();
    };
    const leave = (): void => {
      if (call.leftMs !== undefined || call.goneMs !== undefined) return;
      call.leftMs = history.nowMs();
      if (own !== undefined) own.abort();
      else subscription.unsubscribe();
      history.tell({ kind: 'left', call });
    };
    const running = call$.subscribe({
      next: (value) => {
        if (isRestart(value)) {
          call.restarts++;
          call.startedOverAt = call.attempts.length - 1;
          call.text = '';
        } else {
          call.values++;
          call.text += contentOf(value);
        }
        history.tell({ kind: 'value', call });
        if (leaves && 'atValue' in leaves && call.values === leaves.atValue) leave();
      },
      error: (error: unknown) => {
        call.code = isSluiceError(error) ? error.code : 'unknown';
        this.#ended(call, error);
      },
      complete: () => this.#ended(call, undefined),
    });
    running.add(gone);
    subscription.add(running);
    if (leaves && 'afterMs' in leaves && call.goneMs === undefined) {
      stopLeaving = startTimer(this.#runtime, leaves.afterMs, leave);
    }
  }

  #ended(call: CallTrace, error: unknown): void {
    call.endedMs = this.#history.nowMs();
    this.#history.tell({ kind: 'ended', call, error });
  }

  #optionsOf(planned: PlannedCall, index: number, signal: AbortSignal): CallOptions {
    const { tenant, conversation, priority, deadlineMs, attempts, fallback } = planned;
    return {
      signal,
      attributes: { call: index },
      ...(tenant !== undefined && { tenant }),
      ...(conversation !== undefined && { conversation }),
      ...(priority !== undefined && { priority }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(attempts !== undefined && { attempts }),
      ...(fallback !== undefined && { fallback }),
    };
  }

  #ask(planned: PlannedCall, index: number, options: CallOptions): Observable<unknown> {
    const { api, by, process = 0 } = planned;
    const request = requestOf(planned, index);
    if (by === 'gateway') return (this.#gateways as GatewayClients).ask(planned, index, options.signal as AbortSignal);
    if (by === 'fetch') {
      const home = modelPolicy(this.#history.policy, planned.model).client;
      return (this.#fetchers as FetchCallers).ask(planned, index, home, options);
    }
    const sluice = this.#sluices[process] as Sluice;
    if (by === 'call') {
      return sluice.call<unknown>(
        planned.model,
        (client, signal, model) => askSdk(client, api, { ...request, model }, { signal }),
        // Of a call that brings its own transport nothing is known but what it says.
        { ...options, cost: estimateCost(request) },
      );
    }
    if (api === 'complete') return sluice.complete(request, options);
    const both = options as CallOptions & { readonly restarts: true };
    return api === 'chat' ? sluice.chat(request, both) : sluice.respond(request, both);
  }
}
