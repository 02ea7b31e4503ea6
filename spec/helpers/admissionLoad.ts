import type { Subscription } from 'rxjs';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { Admitted, AdmissionPort, AdmissionRequest } from '../../lib/core/ports.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

export interface LoadCall extends Partial<Omit<AdmissionRequest, 'cost'>> {
  readonly tokens?: number;
  /** A guess, which is clamped. Default: false. */
  readonly guessed?: boolean;
  /** Default: 0. `Infinity`: until the test ends it. */
  readonly takesMs?: number;
  readonly outcome?: Outcome;
}

export interface Started {
  readonly askedAtMs: number;
  readonly subscription: Subscription;
  startedAtMs: number | undefined;
  admitted: Admitted | undefined;
  error: unknown;
}

/** Asks now, sends as soon as it is granted, and ends after `takesMs`. */
export function callNow(admission: AdmissionPort, runtime: VirtualRuntime, call: LoadCall = {}): Started {
  const { tokens = 0, guessed = false, takesMs = 0, outcome = SUCCESS, ...request } = call;
  const started: { -readonly [K in keyof Started]?: Started[K] } & { askedAtMs: number } = {
    askedAtMs: runtime.clock.now(),
  };
  const subscription = admission
    .acquire({ model: 'm', ...request, cost: { requests: 1, tokens, explicit: !guessed } })
    .subscribe({
      next(admitted) {
        started.admitted = admitted;
        started.startedAtMs = runtime.clock.now();
        admitted.dispatched();
        if (takesMs === Infinity) return;
        if (takesMs === 0) admitted.release(outcome);
        else runtime.scheduler.schedule(() => admitted.release(outcome), takesMs);
      },
      error: (error: unknown) => (started.error = error),
    });
  return Object.assign(started, { subscription }) as Started;
}

export function callAt(
  admission: AdmissionPort,
  runtime: VirtualRuntime,
  atMs: number,
  call: LoadCall,
  onStart?: (started: Started) => void,
): void {
  runtime.scheduler.schedule(() => {
    const started = callNow(admission, runtime, call);
    onStart?.(started);
  }, atMs - runtime.clock.now());
}
