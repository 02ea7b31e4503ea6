import type { HrTime } from '@opentelemetry/api';

/**
 * Turns the monotonic instants of a call into times of day. One anchor for all spans of a call: a wall clock that is set
 * while the call runs neither stretches a span nor moves a child out of its parent.
 */
export class SpanClock {
  readonly #offsetMs: number;

  constructor({ atMs, wallAtMs }: { readonly atMs: number; readonly wallAtMs: number }) {
    this.#offsetMs = wallAtMs - atMs;
  }

  /** Not a plain number: the SDK takes a small one for an instant of its own clock. */
  time(atMs: number): HrTime {
    const wallMs = this.#offsetMs + atMs;
    const seconds = Math.floor(wallMs / 1000);
    return [seconds, Math.min(999_999_999, Math.round((wallMs - seconds * 1000) * 1e6))];
  }
}
