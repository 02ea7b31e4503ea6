import type { AttemptSource } from '../../../lib/core/attempt.ts';
import type { Observable } from 'rxjs';
import type { CallObserver } from '../../../lib/core/CallObserver.ts';
import type { HttpListener } from '../../../lib/http/gateway/GatewayOptions.ts';
import type { CallOptions, PolicyInput, Runtime } from '../../../lib/index.ts';

type Fetch = typeof globalThis.fetch;

/** Breaks the client on purpose, behind the back of the invariants. */
export interface Sabotage {
  policy?(policy: PolicyInput): PolicyInput;
  /** Where the client has transports of its own. */
  source?(source: AttemptSource): AttemptSource;
  /** Where it has SDKs: what everything is sent by. */
  network?(fetch: Fetch): Fetch;
  /** `sluice.fetch`, as an SDK gets it. */
  fetch?(fetch: Fetch): Fetch;
  runtime?(runtime: Runtime): Runtime;
  telemetry?(observer: CallObserver): CallObserver;
  options?(options: CallOptions): CallOptions;
  call?<T>(call$: Observable<T>): Observable<T>;
  /** `runtime`: whose time the plan goes by. */
  gateway?(listener: HttpListener, runtime: Runtime): HttpListener;
}
