import type { Observable } from 'rxjs';
import { nonEmpty, zeroOrInfinity } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { Policy } from '../policy/Policy.ts';
import type { PolicyInput } from '../policy/PolicyInput.ts';
import { attemptBy } from '../sources/attemptStream.ts';
import { fromCall } from '../sources/fromCall.ts';
import { admittedClient } from './admittedClient.ts';
import { attemptOptionsOf, attemptSettingsOf, sourceOf } from './attempts.ts';
import { checkedCallOptions } from './CallOptions.ts';
import type { CallOptions } from './CallOptions.ts';
import { callPipeline } from './callPipeline.ts';
import type { CallPlan, Fields } from './CallPlan.ts';
import { Engine } from './Engine.ts';
import { keepEngine } from './engineOf.ts';
import { sluiceFetch } from './fetch/sluiceFetch.ts';
import type { ClientCall, Sluice } from './Sluice.ts';
import { SLUICE_DEFAULTS } from './SluiceOptions.ts';
import type { Clients, SluiceOptions } from './SluiceOptions.ts';
import { spendOf } from './spendOf.ts';

/**
 * Calls under one policy: quota, queues, retries, breakers, fallbacks, deadlines and conversations around every one of
 * them.
 *
 * ```text
 * outside in: events and signal - deadline - conversation - degrade - fallback - retry - admission - attempt - source
 * ```
 *
 * Each method gives a cold Observable: every subscription is a call of its own, and nothing happens before.
 * Unsubscribing ends the call in the same tick and gives back all that it held.
 *
 * - **Shared:** all calls of the client share its quotas, breakers, limits, budgets and lanes. Make one for a process.
 * - **Retries of the SDK:** off for these calls, whatever the clients were built with.
 *
 * Calls emit as errors ({@link SluiceError}): what the provider failed with, after the retries and fallbacks of the
 * policy; our own refusals (`queue_full`, `queue_timeout`, `circuit_open`, `timeout_deadline`, `retry_budget_exhausted`,
 * `cost_too_large`, `spend_capped`); `aborted` by the signal; `closed`; `invalid_request`.
 *
 * @param clients - An OpenAI client or a transport, which is then called `main`, or several by name.
 * @param policy - What `parsePolicy` or `loadPolicy` return, or a value that `parsePolicy` takes.
 * @param options - See {@link SluiceOptions}.
 * @throws SluiceError `invalid_option`, `invalid_policy`.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice, text } from 'sluice';
 *
 * const sluice = createSluice(new OpenAI(), {
 *   preset: 'interactive',
 *   quota: { account: { requestsPerMinute: 600, tokensPerMinute: 1_000_000 } },
 *   models: { 'gpt-5.5': { fallback: ['gpt-5.5-mini'] }, default: {} },
 * });
 * sluice
 *   .chat({ model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] }, { conversation: 'c-17', tenant: 'acme' })
 *   .pipe(text())
 *   .subscribe((part) => process.stdout.write(part));
 * ```
 */
export function createSluice(clients: Clients, policy: Policy | PolicyInput, options: SluiceOptions = {}): Sluice {
  const engine = new Engine(clients, policy, options);

  const ask = (
    api: 'chat' | 'responses',
    stream: boolean,
    request: object,
    callOptions: CallOptions,
  ): Observable<never> => {
    if (typeof request !== 'object' || request === null) throw invalidOption('request', 'an object', request);
    const plan: CallPlan<unknown> = {
      api,
      stream,
      model: String((request as Fields)['model']),
      request: request as Fields,
      options: checkedCallOptions(callOptions),
      policyFallbacks: true,
      attempt: (target, body = {}) => {
        const provider = engine.clients.source(target.deployment.client);
        const call = { api, request: body, stream, provider };
        return attemptBy(sourceOf(provider, target), call, attemptSettingsOf(engine, target));
      },
    };
    return callPipeline(engine, plan) as Observable<never>;
  };

  const sluice: Sluice = {
    chat: (request: object, callOptions: CallOptions = {}) => ask('chat', true, request, callOptions),
    respond: (request: object, callOptions: CallOptions = {}) => ask('responses', true, request, callOptions),
    complete: (request, callOptions = {}) => ask('chat', false, request, { ...callOptions, restarts: false }),
    call: <T>(model: string, call: ClientCall<T>, callOptions: CallOptions = {}) => {
      if (typeof call !== 'function') throw invalidOption('call', 'a function', call);
      const plan: CallPlan<T> = {
        api: undefined,
        stream: false,
        model: nonEmpty('model', model),
        request: undefined,
        options: checkedCallOptions({ ...callOptions, restarts: false }),
        policyFallbacks: false,
        attempt: (target) => {
          const client = admittedClient(engine.clients.sdk(target.deployment.client));
          const { headers: _, includeUsage: __, ...attempt } = attemptOptionsOf(engine, target);
          const name = target.deployment.model ?? target.model;
          return fromCall((signal) => call(client, signal, name) as PromiseLike<T>, {
            ...attempt,
            model: target.model,
          });
        },
      };
      return callPipeline(engine, plan) as Observable<T>;
    },
    fetch: sluiceFetch(engine),
    events$: engine.hub.events$,
    reload: (next) => engine.reload(next),
    snapshot: () => ({
      closed: engine.calls.closed,
      calls: engine.calls.size,
      callsByTenant: engine.calls.byTenant(),
      conversations: engine.lanes.snapshot(),
      admission: engine.admissions.snapshot(),
      spend: spendOf(engine),
    }),
    close: async ({ drainMs = SLUICE_DEFAULTS.drainMs } = {}) => {
      await engine.calls.close(zeroOrInfinity('drainMs', drainMs));
      engine.close();
    },
  };
  return keepEngine(sluice, engine);
}
