import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { nonEmpty, zeroOrInfinity } from '../core/checks.ts';
import type { Admitted, AdmissionPort, Cost, Deployment } from '../core/ports.ts';
import { AdmissionHold } from './AdmissionHold.ts';
import type { AdmitOptions } from './AdmitOptions.ts';
import { costOption } from './costOption.ts';
import { guarded } from './holding.ts';

/**
 * Subscribes to the source once `admission` has granted everything that an attempt needs.
 *
 * ```text
 * slots:   1
 * first:   (s)--a--|
 * second:  -(s)                  subscribed to at 1, held back
 * result:  --------b--|          its source is subscribed to as the first ends
 * ```
 *
 * Takes the place of `throttleByBucket`, `limitConcurrency` and `circuitBreak` together. It guards the subscription, so a
 * retry further down passes through it again; it belongs next to the source.
 *
 * The admission belongs to the caller; all subscriptions of all pipelines that are given it share it. What the source says
 * of limits, waits and usage reaches it by itself.
 *
 * - **End of the source:** quota, breaker and limits get the verdict before the end is passed on. What is in flight is given
 *   back once nothing of the attempt runs any more, at the latest a second later.
 * - **Unsubscribe:** while waiting, leaves the queue and takes nothing; before the request is sent, gives all back;
 *   afterwards it is neutral, and what was taken of the quota stays taken.
 *
 * Emits as errors, before the source was subscribed to: `circuit_open` (also where the breaker opens before the request
 * has been sent), `cost_too_large`, `queue_full`, `queue_timeout`, `timeout_deadline`; `invalid_option` where neither the
 * options nor the call name a model; and what a `cost` function throws.
 *
 * @param admission - See {@link createAdmission}.
 * @throws SluiceError `invalid_option` for a wrong option.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { admit, chat, createAdmission, estimateCost, retryWithJitter, text } from 'sluice';
 *
 * const admission = createAdmission({ quota: { account: { requestsPerMinute: 3000, tokensPerMinute: 1_000_000 } } });
 * const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }] };
 *
 * chat(new OpenAI({ maxRetries: 0 }), request)
 *   .pipe(admit(admission, { model: request.model, cost: estimateCost(request) }), retryWithJitter(), text())
 *   .subscribe((piece) => process.stdout.write(piece));
 * ```
 */
export function admit<T>(admission: AdmissionPort, options: AdmitOptions = {}): MonoTypeOperatorFunction<T> {
  const gate = gateOf<T>(admission, options);
  return (source) => gate(() => source);
}

/**
 * Like {@link admit}, for a source that depends on the deployment that was chosen: `ask` is called as the attempt is
 * granted.
 *
 * @param ask - Makes the source. What it throws is emitted, and neutral.
 * @throws SluiceError `invalid_option` for a wrong option.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { admitTo, chat, createAdmission, text } from 'sluice';
 *
 * const clients: Record<string, OpenAI> = { main: new OpenAI(), azure: new OpenAI({ baseURL: 'https://example.com/v1' }) };
 * const admission = createAdmission({
 *   models: { 'gpt-5.5': { deployments: [{ client: 'main' }, { client: 'azure', model: 'gpt-55-eu' }] } },
 * });
 * const messages = [{ role: 'user' as const, content: 'Hello' }];
 *
 * admitTo(admission, ({ client, model }) => chat(clients[client] as OpenAI, { model, messages }), { model: 'gpt-5.5' })
 *   .pipe(text())
 *   .subscribe((piece) => process.stdout.write(piece));
 * ```
 */
export function admitTo<T>(
  admission: AdmissionPort,
  ask: (deployment: Deployment) => Observable<T>,
  options: AdmitOptions = {},
): Observable<T> {
  return gateOf<T>(admission, options)(ask);
}

function gateOf<T>(
  admission: AdmissionPort,
  options: AdmitOptions,
): (ask: (deployment: Deployment) => Observable<T>) => Observable<T> {
  const { model, cost = 0, tenant, priority, maxWaitMs } = options;
  const checked = costOption(cost);
  if (model !== undefined) nonEmpty('model', model);
  if (tenant !== undefined) nonEmpty('tenant', tenant);
  if (priority !== undefined) nonEmpty('priority', priority);
  if (maxWaitMs !== undefined) zeroOrInfinity('maxWaitMs', maxWaitMs);
  return (ask) => admitting(admission, options, checked, ask);
}

/** {@link admitTo} with what has been checked before. */
export function admitting<T>(
  admission: AdmissionPort,
  options: Omit<AdmitOptions, 'cost'>,
  cost: Cost | (() => Cost),
  ask: (deployment: Deployment) => Observable<T>,
): Observable<T> {
  return guarded<T, Admitted>(new AdmissionHold(admission, options, cost), ({ deployment }) => ask(deployment));
}
