import type { Observable } from 'rxjs';
import type { Restart } from '../core/restart.ts';
import { retrying } from '../operators/retryWithJitter.ts';
import type { Policy } from '../policy/Policy.ts';
import type { CallPlan } from './CallPlan.ts';
import type { Engine } from './Engine.ts';
import { ModelAsk } from './ModelAsk.ts';

/** One model's part of a call: its attempts, each of which is admitted first. */
export function askModel<T>(engine: Engine, policy: Policy, plan: CallPlan<T>, model: string): Observable<T | Restart> {
  const ask = new ModelAsk(engine, policy, plan, model);
  return retrying<T>(ask)(ask.attempt());
}
