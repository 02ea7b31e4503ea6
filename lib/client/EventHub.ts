import { Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import type { CallObserver, CallStart, ObservedCall } from '../core/CallObserver.ts';
import type { SluiceEvent } from '../core/events.ts';
import type { StoreChange } from '../limits/LimitStore.ts';

/** Tells what happens to those who observe the client. None of them can break a call. */
export class EventHub {
  readonly events$: Observable<SluiceEvent>;
  readonly #observer: CallObserver;
  readonly #events = new Subject<SluiceEvent>();

  constructor(observer: CallObserver = {}) {
    this.#observer = observer;
    this.events$ = this.#events.asObservable();
  }

  /** Whether anybody hears of events by now. */
  get observed(): boolean {
    return this.#observer.onEvent !== undefined || this.#events.observed;
  }

  readonly onEvent = (event: SluiceEvent): void => {
    try {
      this.#observer.onEvent?.(event);
    } catch {
      // An observer's fault is its own.
    }
    if (this.#events.observed) this.#events.next(event);
  };

  /** It belongs to no call. */
  onStoreChange({ type, reason, atMs }: StoreChange): void {
    const nobody = { callId: '', attempt: 0, model: undefined, tenant: undefined, conversation: undefined, atMs };
    this.onEvent({ type: 'store.changed', to: type === 'store.lost' ? 'lost' : 'returned', reason, ...nobody });
  }

  /** Whether anybody wants to know of a call as it begins. */
  get watchesCalls(): boolean {
    return this.#observer.onCall !== undefined;
  }

  onCall(call: CallStart): ObservedCall | undefined {
    try {
      return this.#observer.onCall?.(call) as ObservedCall | undefined;
    } catch {
      // As above.
      return undefined;
    }
  }

  /** What the attempt is sent inside, if anything. */
  aroundOf(callId: string, attempt: number): (<R>(work: () => R) => R) | undefined {
    const { around } = this.#observer;
    return around && ((work) => around({ callId, attempt }, work));
  }

  close(): void {
    this.#events.complete();
  }
}
