import { Observable } from 'rxjs';
import { SluiceError } from '../../core/errors.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import { LinkedQueue } from '../../limits/LinkedQueue.ts';
import type { QueueNode } from '../../limits/LinkedQueue.ts';
import type { BucketRate } from '../scenario/Recipe.ts';

/** Less than this is missing by rounding only. */
const ROUNDING = 1e-6;

/**
 * A token bucket as everybody writes it: a burst, a refill, and a line that is served in order. It knows nothing of the
 * network between it and the provider, and hears nothing of what the provider says.
 */
export class PlainBucket {
  readonly #runtime: Runtime;
  readonly #burst: number;
  readonly #perMs: number;
  readonly #line = new LinkedQueue<() => void>();
  #level: number;
  #levelAtMs: number;
  #cancel: Cancel = () => {};

  constructor({ requestsPerMinute, burstRequests }: BucketRate, runtime: Runtime) {
    this.#runtime = runtime;
    this.#perMs = requestsPerMinute / 60_000;
    this.#burst = burstRequests ?? Math.max(1, requestsPerMinute / 60);
    this.#level = this.#burst;
    this.#levelAtMs = runtime.clock.now();
  }

  /** Emits once a token was taken, and completes; fails with `queue_timeout` after `maxWaitMs` in line. */
  take(maxWaitMs: number): Observable<void> {
    // Hand-written: a place in line that is left again.
    return new Observable((subscriber) => {
      const enter = (): void => {
        subscriber.next();
        subscriber.complete();
      };
      if (this.#line.size === 0 && this.#has()) {
        this.#level--;
        enter();
        return undefined;
      }
      let stop: Cancel = () => {};
      const place: QueueNode<() => void> = this.#line.push(() => {
        stop();
        enter();
      });
      stop = startTimer(this.#runtime, maxWaitMs, () => {
        this.#leave(place);
        subscriber.error(new SluiceError('queue_timeout', 'no token came in time'));
      });
      if (this.#line.size === 1) this.#serve();
      return () => {
        stop();
        this.#leave(place);
      };
    });
  }

  giveBack(): void {
    this.#refill();
    this.#level = Math.min(this.#burst, this.#level + 1);
    this.#serve();
  }

  #leave(place: QueueNode<() => void>): void {
    if (this.#line.remove(place) && this.#line.size === 0) this.#cancel();
  }

  #serve(): void {
    this.#cancel();
    while (this.#line.size > 0 && this.#has()) {
      this.#level--;
      this.#line.shift()?.();
    }
    if (this.#line.size === 0) return;
    this.#cancel = startTimer(this.#runtime, (1 - this.#level) / this.#perMs, () => this.#serve());
  }

  #has(): boolean {
    this.#refill();
    return this.#level >= 1 - ROUNDING;
  }

  #refill(): void {
    const nowMs = this.#runtime.clock.now();
    this.#level = Math.min(this.#burst, this.#level + (nowMs - this.#levelAtMs) * this.#perMs);
    this.#levelAtMs = nowMs;
  }
}
