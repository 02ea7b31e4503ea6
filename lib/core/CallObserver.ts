import type { EventListener } from './events.ts';

/** What is known of a call when it starts. */
export interface CallStart {
  readonly callId: string;
  /** `undefined` for a call that brings its own transport. */
  readonly api: 'chat' | 'responses' | undefined;
  /** The model that is asked first. */
  readonly model: string;
  readonly stream: boolean;
  readonly tenant: string | undefined;
  readonly conversation: string | undefined;
  readonly priority: string | undefined;
  /** As the request names them; holds no message. */
  readonly parameters: Readonly<Record<string, number>>;
  /** What the application says of the call. */
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

/** Observes the calls of a client, such as for tracing. What it throws is ignored. */
export interface CallObserver {
  /** A call is being subscribed to; runs in the tick, and so in the context, of its consumer. */
  readonly onCall?: ((call: CallStart) => void) | undefined;
  /** Hears every fact of every call. */
  readonly onEvent?: EventListener | undefined;
  /** Runs what sends an attempt inside something, such as a trace context. Must call `work` once and return its result. */
  readonly around?:
    (<R>(attempt: { readonly callId: string; readonly attempt: number }, work: () => R) => R) | undefined;
}
