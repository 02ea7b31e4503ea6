import type { Observable } from 'rxjs';
import type { Attempt, AttemptSource, WireData, WireHead } from '../../core/attempt.ts';
import type { Restart } from '../../core/restart.ts';
import { attemptBy } from '../../sources/attemptStream.ts';
import { attemptSettingsOf, sourceOf } from '../attempts.ts';
import { checkedCallOptions } from '../CallOptions.ts';
import type { CallOptions } from '../CallOptions.ts';
import { callPipeline } from '../callPipeline.ts';
import type { CallPlan, Fields } from '../CallPlan.ts';
import type { Engine } from '../Engine.ts';
import { sameFields } from './sameFields.ts';

/** A call for somebody who speaks the language of the provider, and wants the answer in it. */
export interface WireCall {
  readonly id: string;
  readonly api: 'chat' | 'responses';
  readonly stream: boolean;
  readonly model: string;
  readonly request: Fields;
  /** `request` as it came. Sent as it stands where nothing in it has to be changed. */
  readonly bytes: Uint8Array | undefined;
  readonly options: CallOptions;
  /** See {@link CallPlan}. */
  readonly onBegin: CallPlan<WireData>['onBegin'];
  /** An attempt at `model` leaves. */
  readonly onAttempt: (model: string) => void;
  /** Its answer is there. */
  readonly onHead: (head: WireHead) => void;
}

/**
 * The call with all that the policy puts around it. Emits events as they came off the wire, or the whole answer as one.
 *
 * @throws SluiceError `invalid_option`
 */
export function wireCall(engine: Engine, call: WireCall): Observable<WireData | Restart> {
  const { id, api, stream, model, request, onHead } = call;
  return callPipeline<WireData>(engine, {
    id,
    api,
    stream,
    model,
    request,
    options: checkedCallOptions(call.options),
    policyFallbacks: true,
    onBegin: call.onBegin,
    attempt: (target, body = {}) => {
      call.onAttempt(target.model);
      const provider = engine.clients.source(target.deployment.client);
      const asked = { api, request: body, stream, provider, wire: true, onHead };
      return attemptBy(sourceOf(asItCame(provider, call), target), asked, attemptSettingsOf(engine, target));
    },
  });
}

function asItCame(source: AttemptSource, { request, bytes }: WireCall): AttemptSource {
  if (bytes === undefined) return source;
  return (attempt: Attempt) => source(sameFields(attempt.request, request) ? { ...attempt, bytes } : attempt);
}

/** What the call emitted, as an event of the wire: a lesser answer in place of a failure has not come off it. */
export function asWireData(emitted: WireData): WireData {
  return emitted.kind === 'data' ? emitted : { kind: 'data', value: emitted, event: undefined };
}
